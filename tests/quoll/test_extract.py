"""Extraction against graphs drawn by hand."""

from __future__ import annotations

from textwrap import dedent

import pytest

from quoll.errors import FactsError, UsageError
from quoll.facts import Facts, NeverReturns, Source, Targets
from quoll.image import Image
from tests.quoll.building import build
from tests.quoll.sketch import assemble, extracted, sketch

SOURCE = Source("k.facts", 1, "the fact")


def drawn(text: str, expected: str, *entries: str, thumb: bool = False, **options: object) -> None:
    """Compare the sketch of assembly ``text`` with a drawing."""
    image = assemble(text, thumb=thumb, cpu="cortex-a8" if thumb else "arm1136jf-s")
    program = extracted(image, *entries, **options)  # type: ignore[arg-type]
    assert shortened(sketch(image, program)) == dedent(expected).strip()


def shortened(text: str) -> str:
    """The drawing with the reasons that values give in few words."""
    text = text.replace("known: it does not come from constants and an index with few values", "X")
    text = text.replace("not X", "not constant")
    text = text.replace("some targets are outside the function and start no other", "too far")
    return text.replace(" as it was when the function was entered", " at entry")


def test_branches_calls_and_returns() -> None:
    drawn(
        """
        main:   push {r4, lr}
        loop:   bl helper
                subs r4, r4, #1
                bne loop
                pop {r4, pc}
                .type helper, %function
        helper: cmp r0, #3
                bxeq lr
                mov pc, lr
        """,
        """
        main
          main (1): fallthrough loop
          loop (1): calls helper, across loop+4
          loop+4 (2): taken loop, fallthrough loop+12
          loop+12 (1): returns
        helper
          helper (2): returns, fallthrough helper+8
          helper+8 (1): returns
        """,
    )


def test_conditional_calls_and_literal_pools() -> None:
    drawn(
        """
        main:   ldr r0, =0xe12fff1e     @ bx lr as data: never decoded
                push {lr}
                cmp r1, #0
                bleq helper
                ldmfd sp!, {pc}
                .ltorg
                .type helper, %function
        helper: str lr, [sp, #-4]!
                ldr pc, [sp], #4
        """,
        """
        main
          main (4): calls helper, across main+16, fallthrough main+16
          main+16 (1): returns
        helper
          helper (2): returns
        """,
    )


def test_functions_that_never_return() -> None:
    """Padding behind calls of them is not code; mutual recursion without a way out counts."""
    drawn(
        """
        main:   cmp r0, #0
                bne ok
                bl panic
                .word 0xffffffff
        ok:     bl ping
                .word 0xffffffff
                .type panic, %function
        panic:  b panic
                .type ping, %function
        ping:   push {lr}
                bl pong
                .type pong, %function
        pong:   push {lr}
                bl ping
        """,
        """
        main never returns
          main (2): fallthrough main+8, taken ok
          main+8 (1): calls panic
          ok (1): calls ping
        panic never returns
          panic (1): taken panic
        ping never returns
          ping (2): calls pong
        pong never returns
          pong (2): calls ping
        """,
    )


def test_a_function_that_may_return_in_one_way_only() -> None:
    drawn(
        """
        main:   bl even
                bx lr
                .type even, %function
        even:   push {lr}
                bl odd
                pop {pc}
                .type odd, %function
        odd:    push {lr}
                subs r0, r0, #1
                popmi {pc}
                bl even
                pop {pc}
        """,
        """
        main
          main (1): calls even, across main+4
          main+4 (1): returns
        even
          even (2): calls odd, across even+8
          even+8 (1): returns
        odd
          odd (3): returns, fallthrough odd+12
          odd+12 (1): calls even, across odd+16
          odd+16 (1): returns
        """,
    )


def test_tail_calls_and_shared_tails() -> None:
    """A jump to a function is a tail call; a tail without a name belongs to all who use it."""
    drawn(
        """
        main:   cmp r0, #0
                beq helper
                push {lr}
                bl second
                pop {lr}
                b shared
                .type second, %function
        second: add r0, r0, #1
        shared: add r0, r0, #2
                bx lr
                .type helper, %function
        helper: b second
        """,
        """
        main
          main (2): tail calls helper, fallthrough main+8
          main+8 (2): calls second, across main+16
          main+16 (2): taken shared
          shared (2): returns
        second
          second (3): returns
        helper
          helper (1): tail calls second
        """,
    )


def test_a_target_becomes_a_function_when_it_is_called_later() -> None:
    """``late`` has no function symbol; main jumps there before the call of it is seen."""
    drawn(
        """
        main:   cmp r0, #0
                beq late
                push {lr}
                bl late
                pop {pc}
        late:   bx lr
        """,
        """
        main
          main (2): tail calls late, fallthrough main+8
          main+8 (2): calls late, across main+16
          main+16 (1): returns
        late
          late (1): returns
        """,
    )


def test_a_jump_to_the_own_entry_is_a_loop_and_falling_into_a_function_shares_it() -> None:
    drawn(
        """
        main:   subs r0, r0, #1
                bne main
                bl next
                .type next, %function
        next:   bx lr
        """,
        """
        main
          main (2): taken main, fallthrough main+8
          main+8 (1): calls next, across next
          next (1): returns
        next
          next (1): returns
        """,
    )


@pytest.mark.parametrize(
    "instruction",
    ["movs pc, lr", "subs pc, lr, #4", "ldm sp!, {r0-r3, pc}^", "rfeia sp!"],
)
def test_exception_returns_are_exits(instruction: str) -> None:
    drawn(
        f"main: mov r0, #0\n {instruction}\n .word 0xffffffff",
        """
        main never returns
          main (2): exits
        """,
    )


def test_a_conditional_exception_return_and_mode_switches() -> None:
    drawn(
        """
        main:   cps #0x13
                msr cpsr_c, #0xd2
                cmp r0, #0
                movseq pc, lr
                b main
        """,
        """
        main never returns
          main (4): exits, fallthrough main+16
          main+16 (1): taken main
        """,
    )


def test_a_path_ends_where_it_is_told_to() -> None:
    image = assemble("main: mov r0, #1\n mov r0, #2\nhere: mov r0, #3\n mov r0, #4\n bx lr")
    here = image.symbol("here")
    assert here
    program = extracted(image, ends=frozenset({here.addr}))
    assert sketch(image, program) == "main never returns\n  main (3): exits"


def test_traps() -> None:
    """An svc in the mode that it enters overwrites lr: what follows is no proved return."""
    drawn(
        """
        main:   cmp r0, #0
                bne other
                .word 0xe7f000f0        @ udf
                .word 0xffffffff
        other:  svc #1
                bx lr
        """,
        """
        main
          main (2): fallthrough main+8, taken other
          main+8 (1): stops
          other (1): fallthrough other+4
          other+4 (1): stops
        ? other: svc #1 raises an exception inside the analysed code
        ? other+4: bx lr is not proved to return to the caller: the target is not constant
        """,
    )


def test_vectors_through_literals_and_branches() -> None:
    drawn(
        """
        main:   ldr pc, =handler
        two:    b handler
                .ltorg
                .type handler, %function
        handler: movs pc, lr
        """,
        """
        main never returns
          main (1): tail calls handler
        two never returns
          two (1): tail calls handler
        handler never returns
          handler (1): exits
        """,
        "main",
        "two",
    )


def test_a_call_by_mov_lr_pc() -> None:
    drawn(
        """
        main:   push {lr}
                mov lr, pc
                ldr pc, =helper
                pop {pc}
                .ltorg
                .type helper, %function
        helper: bx lr
        """,
        """
        main
          main (3): calls helper, across main+12
          main+12 (1): returns
        helper
          helper (1): returns
        """,
    )


def test_raw_words_that_control_reaches_are_code() -> None:
    """Marked $d, as the assembler does with ``.word``."""
    image = assemble("main: mov r0, #0\n .word 0xee070f15\n .word 0xe12fff1e")
    assert image.is_marked_data(0x8004)
    assert sketch(image, extracted(image)) == "main\n  main (3): returns"


def test_what_is_not_known_is_listed() -> None:
    drawn(
        """
        main:   push {lr}
                blx r3
                cmp r0, #1
                ldrls pc, [r1, r0]
                .word 0xffffffff
        """,
        """
        main
          main (2): across main+8
          main+8 (2): fallthrough main+16
          main+16 (1): stops
        ? main+4: the targets of blx r3 are not known: the target depends on r3 at entry
        ? main+12: the targets of ldrls pc, [r1, r0] are not known: the target is not constant
        ? main+16: .inst 0xffffffff is no known instruction
        """,
    )


def test_returns_that_are_none() -> None:
    """What is popped here is not what was pushed, and sp is not what it was."""
    drawn(
        """
        main:   push {r4, lr}
                bl helper
                ldr sp, [r0]
                pop {r4, pc}
                .type helper, %function
        helper: push {lr}
                bl other
                pop {r4, pc}
                .type other, %function
        other:  bx lr
        """,
        """
        main
          main (2): calls helper, across main+8
          main+8 (2): stops
        helper
          helper (2): calls other, across helper+8
          helper+8 (1): stops
        other
          other (1): returns
        ? main+12: pop {r4, pc} is not proved to return to the caller: the target is not constant
        ? helper+8: pop {r4, pc} is not proved to return to the caller: the target is not constant
        """,
    )


def test_a_jump_that_leaves_sp_changed_is_no_tail_call() -> None:
    """``epilogue`` has a function symbol, but it pops what main has pushed: a part of main."""
    drawn(
        """
        main:   push {r4, lr}
                bl other
                b epilogue
                .type other, %function
        other:  push {r4, lr}
                b epilogue
                .type epilogue, %function
        epilogue: pop {r4, pc}
        """,
        """
        main
          main (2): calls other, across main+8
          main+8 (1): taken epilogue
          epilogue (1): returns
        other
          other (2): taken epilogue
          epilogue (1): returns
        """,
    )


def test_an_unproved_return_that_restores_sp_is_an_assumption() -> None:
    """A store at an unknown index of a local array may hit the return address."""
    image = assemble(
        "main: push {r4, lr}\n sub sp, sp, #8\n str r1, [sp, r0, lsl #2]\n add sp, sp, #8\n"
        " pop {r4, pc}"
    )
    program = extracted(image)
    assert program.unresolved == ()
    assert program.assumptions[-1] == (
        "pop {r4, pc} at 0x00008010 <main+0x10> prog.S:10 returns to the caller "
        "and restores the callee-saved registers"
    )


def test_control_that_leaves_the_code() -> None:
    drawn(
        "main: cmp r0, #0\n beq main - 0x100\n mov r0, #1",
        """
        main
          main (2): fallthrough main+8
          main+8 (1): stops
        ? main+4: control may pass to 0x00007f00, which is not code
        ? main+8: control runs on to 0x0000800c, which is not code
        """,
    )


def test_thumb_with_it_blocks_compares_and_interworking() -> None:
    drawn(
        """
        main:   push {r4, lr}
                cbz r0, out
                cmp r1, #0
                it eq
                popeq {r4, pc}
                blx helper
        out:    pop {r4}
                pop {r1}
                bx r1
                .balign 4
                .arm
                .type helper, %function
        helper: bx lr
        """,
        """
        main
          main (2): fallthrough main+4, taken out
          main+4 (3): returns, fallthrough main+10
          main+10 (1): calls helper, across out
          out (3): returns
        helper
          helper (1): returns
        """,
        thumb=True,
    )


def test_a_veneer_changes_the_instruction_set() -> None:
    drawn(
        """
        main:   bx pc
                nop
                .arm
        arm:    add r0, r0, #1
                bx lr
        """,
        """
        main
          main (1): indirect arm
          arm (2): returns
        """,
        thumb=True,
    )


def test_stated_targets_and_functions_that_never_return() -> None:
    text = """
        main:   push {lr}
        site:   blx r3
                pop {pc}
                .type one, %function
        one:    bx lr
                .type two, %function
        two:    bx lr
    """
    image = assemble(text)
    facts = Facts((Targets(SOURCE, "site", ("one", "two")), NeverReturns(SOURCE, "two")))
    program = extracted(image, facts=facts)
    expected = """
        main
          main (2): calls one, calls two, across site+4
          site+4 (1): returns
        one
          one (1): returns
        two never returns
          two (1): stops
    """
    assert sketch(image, program) == dedent(expected).strip()
    assert [a for a in program.assumptions if "k.facts:1" in a] == [
        "the fact (k.facts:1)",
        "two never returns (k.facts:1)",
    ]
    (table,) = program.jump_tables
    assert [image.place(t)[11:] for t in table.targets] == ["<one> prog.S:11", "<two> prog.S:13"]


def test_facts_about_places_without_an_indirect_transfer() -> None:
    image = assemble("main: mov r0, #0\n bx lr")
    with pytest.raises(FactsError, match=r"main is no indirect jump or call.*mov r0, #0"):
        extracted(image, facts=Facts((Targets(SOURCE, "main", ("main",)),)))
    with pytest.raises(FactsError, match="no symbol absent"):
        extracted(image, facts=Facts((NeverReturns(SOURCE, "absent"),)))


def test_entries_must_be_code() -> None:
    image = Image.load(build("int data = 1; int main(void) { return data; }"))
    with pytest.raises(UsageError, match="not code"):
        extracted(image, "data")
    constant = assemble("main: bx lr\n .type table, %object\ntable: .word 1")
    with pytest.raises(UsageError, match="is data"):
        extracted(constant, "table")


def test_thumb_bl_inside_its_function_is_a_long_jump() -> None:
    """GCC reaches beyond 2 KiB this way where lr is saved: bl as b, in both directions."""
    image = assemble(
        """
        main:   push {r4, lr}
                cmp r0, #0
                bne x1
                bl x2
        x1:     adds r0, #1
                pop {r4, pc}
        x2:     adds r0, #2
                bl x1
                .size main, . - main
        """,
        thumb=True,
        cpu="arm926ej-s",
    )
    program = extracted(image)
    expected = """
        main
          main (3): fallthrough main+6, taken x1
          main+6 (1): taken x2
          x1 (2): returns
          x2 (2): taken x1
    """
    assert sketch(image, program) == dedent(expected).strip()


def test_a_computed_lr_is_no_return_address() -> None:
    """The case helpers of libgcc return through a table: by its form ``bx lr`` would be wrong."""
    drawn(
        """
        main:   ldrb r1, [lr, r0]
                add lr, lr, r1, lsl #2
                bx lr
        """,
        """
        main
          main (3): stops
        ? main+8: the targets of bx lr are not known: the target is not constant
        """,
    )


def test_lr_as_a_scratch_register() -> None:
    """Between saving and reloading it lr is computed with; that is no obstacle to a return."""
    drawn(
        """
        main:   cmp r0, #0
                bxeq lr
                str lr, [sp, #-4]!
                add lr, r0, r1
                add r0, lr, lr
                cmp r0, #9
                beq x1
                ldr lr, [sp], #4
                bx lr
        x1:     bx lr
        """,
        """
        main
          main (2): returns, fallthrough main+8
          main+8 (5): fallthrough main+28, taken x1
          main+28 (2): returns
          x1 (1): stops
        ? x1: the targets of bx lr are not known: the target is not constant
        """,
    )


def test_pieces_of_assembly_that_return_for_their_caller() -> None:
    """As in the soft-float multiplication of libgcc: ``piece`` returns to main or past it."""
    drawn(
        """
        main:   push {r4, lr}
                bl piece
                add r0, r0, #1
                pop {r4, pc}
        piece:  cmp r0, #0
                moveq pc, lr
                pop {r4, pc}
        """,
        """
        main
          main (2): taken piece
          main+8 (2): returns
          piece (2): indirect main+8, fallthrough piece+8
          piece+8 (1): returns
        """,
    )


def test_computed_jumps_that_overshoot_their_function_are_one_error() -> None:
    drawn(
        """
        main:   and r0, r0, #31
                add pc, pc, r0, lsl #3
                nop
                mov r1, #1
                bx lr
                mov r1, #2
                bx lr
                .size main, . - main
                .word 0xffffffff, 0xffffffff
        """,
        """
        main
          main (2): stops
        ? main+4: the targets of add pc, pc, r0, lsl #3 are not known: too far
        """,
    )
