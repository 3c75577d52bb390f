"""Extraction where control ends, leaves the code or is not understood."""

from __future__ import annotations

from textwrap import dedent

import pytest

from quoll.arm.insn import ControlFlow
from quoll.assumptions import EXCEPTION_RETURN
from quoll.errors import FactsError, UsageError
from quoll.facts.control_flow_facts import NeverReturnsFact, ReturnsFact, TargetsFact
from quoll.facts.fact import FactSource
from quoll.facts.guidance import ReturnsEndFact
from quoll.facts.read import Facts, parse
from quoll.image.image import Image
from tests.testing.quoll.building import address, build
from tests.testing.quoll.sketch import assemble, drawn, extracted, sketch

SOURCE = FactSource("k.facts", 1, "the fact")


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
    """An svc in the mode that it enters overwrites lr: the next return is not proved."""
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
        ? other: svc #1 calls the supervisor inside the analysed code
        ? other+4: bx lr is not proved to return to the caller: the target is not constant; \
lost at svc #1
        """,
    )


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
    facts = Facts((TargetsFact(SOURCE, "site", ("one", "two")), NeverReturnsFact(SOURCE, "two")))
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
    assert [a for a in map(str, program.assumptions) if "k.facts:1" in a] == [
        "fact: k.facts:1: targets of site are one, two",
        "fact: k.facts:1: two never returns",
    ]
    (table,) = program.jump_tables
    assert [image.place(t)[11:] for t in table.targets] == ["<one> prog.S:11", "<two> prog.S:13"]


RESTORING = """
    main:   push {r4, lr}
            bl restore
            pop {r4, pc}
            .type restore, %function
    restore:
            msr cpsr_c, r0
    back:   bx lr
"""


def test_a_status_word_that_is_an_argument_has_the_mode_of_its_function() -> None:
    image = assemble(RESTORING)
    program = extracted(image)
    assert program.unresolved == ()
    assert program.restoring == {address(image, "restore")}
    (assumed,) = (text for text in map(str, program.assumptions) if text.startswith("mode:"))
    assert "<restore>" in assumed
    saving = assemble(RESTORING.replace("msr", "str sp, [r1]\n msr"))
    assert address(saving, "back") in {u.addr for u in extracted(saving).unresolved}
    moved = assemble(RESTORING.replace("msr cpsr_c, r0", "cps #0x12\n msr cpsr_c, r0"))
    assert address(moved, "back") in {u.addr for u in extracted(moved).unresolved}


def test_a_return_that_is_stated() -> None:
    """The return address is not known after another mode, whose lr is another register."""
    image = assemble(RESTORING.replace("msr cpsr_c, r0", "cps #0x12\n msr cpsr_c, r0"))
    program = extracted(image)
    assert address(image, "back") in {u.addr for u in program.unresolved}
    assert all("PLACE returns to its caller" in u.hint for u in program.unresolved)
    program = extracted(image, facts=Facts((ReturnsFact(SOURCE, "back"),)))
    assert program.unresolved == ()
    *_, assumed = program.assumptions
    assert str(assumed).startswith(
        "fact: k.facts:1: back returns to its caller; it preserves r4 to"
    )
    assert extracted(image, facts=Facts((ReturnsFact(SOURCE, "main+8"),))).unresolved


def test_facts_about_places_without_an_indirect_transfer() -> None:
    with pytest.raises(FactsError, match=r"main is no indirect jump or call.*push"):
        extracted(assemble(RESTORING), facts=Facts((ReturnsFact(SOURCE, "main"),)))
    image = assemble("main: mov r0, #0\n bx lr")
    with pytest.raises(FactsError, match=r"main is no indirect jump or call.*mov r0, #0"):
        extracted(image, facts=Facts((TargetsFact(SOURCE, "main", ("main",)),)))
    with pytest.raises(FactsError, match="no symbol absent"):
        extracted(image, facts=Facts((NeverReturnsFact(SOURCE, "absent"),)))


def test_entries_must_be_code() -> None:
    image = Image.load(build("int data = 1; int main(void) { return data; }"))
    with pytest.raises(UsageError, match="not code"):
        extracted(image, "data")
    constant = assemble("main: bx lr\n .type table, %object\ntable: .word 1")
    with pytest.raises(UsageError, match="is data"):
        extracted(constant, "table")


SWITCHES = """
    main:   push {{r4, lr}}
            bl switch
            mov r4, #3
            pop {{r4, pc}}
            .type switch, %function
    switch: {}
"""


@pytest.mark.parametrize(
    "code",
    [
        "push {r4-r11, lr}\n str sp, [r0]\n ldr sp, [r1]\n pop {r4-r11, pc}",
        "push {r4-r11, lr}\n str sp, [r0]\n mov sp, r1\n pop {r4-r11, pc}",
        "stmia r0, {r4-r11, sp, lr}\n ldmia r1, {r4-r11, sp, lr}\n bx lr",
        "stmia r0, {r4-r11, sp, lr}\n ldmia r1, {r4-r11, sp, pc}",
        "ldm r0, {sp, pc}^",
        "ldm r0, {r0-r14}^\n movs pc, lr",
        "mov sp, r0\n rfeia sp!",
        "ldr lr, [r0]\n subs pc, lr, #4",
        "cmp r0, #0\n bxeq lr\n movs pc, lr",
        "b leave\n .type leave, %function\nleave: movs pc, lr",
        "push {r4, lr}\n msr cpsr_c, #0xd2\n pop {r4, pc}",
        "push {r4, lr}\n cps #0x1f\n pop {r4, pc}",
    ],
)
def test_leaving_by_another_context_is_unresolved(code: str) -> None:
    """Not "never returns": code after the call is reached when that context continues.

    Before, exception returns inside functions that are called ended paths, and nothing said so.
    """
    program = extracted(assemble(SWITCHES.format(code)), ends=frozenset())
    assert program.unresolved
    assert all("PLACE" in place.hint for place in program.unresolved)


def test_an_exception_return_that_is_said_to_end_paths() -> None:
    image = assemble(SWITCHES.format("mov r0, r0\nout: ldm r0, {sp, pc}^"))
    program = extracted(image, ends=frozenset({address(image, "out")}))
    assert program.unresolved == ()
    assert not any(a.kind is EXCEPTION_RETURN for a in program.assumptions)


def test_exception_returns_are_listed_where_nobody_says_what_ends_paths() -> None:
    image = assemble(SWITCHES.format("mov r0, r0\nout: ldm r0, {sp, pc}^"))
    program = extracted(image)
    assert program.unresolved == ()
    place = image.place(address(image, "out"))
    assert EXCEPTION_RETURN.of(insn="ldm r0, {sp, pc} ^", place=place) in program.assumptions


def test_an_exception_return_of_the_entry_itself_is_listed() -> None:
    image = assemble("main: mov r0, #0\nout: subs pc, lr, #4")
    assumed = extracted(image).assumptions
    assert (
        EXCEPTION_RETURN.of(insn="subs pc, lr, #4", place=image.place(address(image, "out")))
        in assumed
    )


EVERY = Facts((ReturnsEndFact(SOURCE),))


@pytest.mark.parametrize("ends", [None, frozenset()])
@pytest.mark.parametrize("code", ["ldm r0, {sp, pc}^", "ldm r0, {r0-r14}^\n movs pc, lr"])
def test_one_statement_is_about_every_exception_return(
    code: str, ends: frozenset[int] | None
) -> None:
    program = extracted(assemble(SWITCHES.format(code)), facts=EVERY, ends=ends)
    assert program.unresolved == ()
    assert [text for text in map(str, program.assumptions) if "exception return" in text] == [
        "fact: k.facts:1: path must end at every exception return"
    ]


HALTS = """
main:   push {{r4, lr}}
        cmp r0, #0
        bne wait
        blmi halt
        pop {{r4, pc}}
wait:   subs r0, r0, #1
        beq wait
again:  b again
halt:   cpsid i
1:      {}
        b 1b
"""
JUMPS_END = "path must end at every jump to itself"


@pytest.mark.parametrize(
    ("idle", "jumps"),
    [
        ("", 2),
        ("wfi", 1),
        ("wfe\n nop", 1),
        ("mcr p15, 0, r0, c7, c0, 4", 1),
        ("mov r0, #0\n dsb\n mcr p15, 0, r0, c7, c0, 4\n isb", 1),
        ("nop", 2),
    ],
)
def test_one_statement_is_about_every_loop_that_only_waits(idle: str, jumps: int) -> None:
    """A path ends at the wait, else at the jump; a loop with a way out is none."""
    image = assemble(HALTS.format(idle), cpu="cortex-a8")
    program = extracted(image, facts=parse(JUMPS_END, "k"))
    assert program.unresolved == ()
    ends = [block.last for cfg in program.functions.values() for block in cfg.blocks if block.exits]
    assert len(ends) == 2
    assert sum(last.flow is ControlFlow.JUMP for last in ends) == jumps
    assert f"fact: k:1: {JUMPS_END}" in map(str, program.assumptions)
    edges = [(cfg, edge) for cfg in program.functions.values() for edge in cfg.edges]
    assert not any(cfg.blocks[edge.src].exits for cfg, edge in edges)


@pytest.mark.parametrize(
    "work",
    [
        "ldr r0, [r1]",
        "str r0, [r1]",
        "bl main",
        "cpsie i",
        "bne main",
        "msr cpsr_c, r0",
        "b 2f\n2:",
    ],
)
@pytest.mark.parametrize("wait", ["nop", "wfi"])
def test_a_loop_with_work_is_no_jump_to_itself(work: str, wait: str) -> None:
    image = assemble(HALTS.format(f"{wait}\n {work}"), cpu="cortex-a8")
    program = extracted(image, facts=parse(JUMPS_END, "k"))
    ends = [block.last for cfg in program.functions.values() for block in cfg.blocks if block.exits]
    assert [last.target == last.addr for last in ends] == [True]


def test_it_is_about_no_other_way_of_leaving_by_another_context() -> None:
    code = "push {r4-r11, lr}\n str sp, [r0]\n ldr sp, [r1]\n pop {r4-r11, pc}"
    program = extracted(assemble(SWITCHES.format(code)), facts=EVERY, ends=frozenset())
    assert program.unresolved
    assert not any("exception return" in text for text in map(str, program.assumptions))
