"""Extraction against graphs drawn by hand: direct flow, calls, tail calls and tables."""

from __future__ import annotations

from tests.testing.quoll.sketch import assemble, drawn, extracted, sketch


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


def test_a_call_that_comes_back_elsewhere() -> None:
    """As Linux calls system calls: through a table, with lr computed before.

    ``both`` is reached with either of two return addresses.
    """
    drawn(
        """
        main:   push {r4, lr}
                adr r8, table
                cmp r0, #1
                beq traced
                cmp r7, #2
                adr lr, back
                ldrcc pc, [r8, r7, lsl #2]
        both:   mov r0, #0
                b missing
        traced: cmp r7, #2
                adr lr, slow
                ldrcc pc, [r8, r7, lsl #2]
                b both
        slow:   mov r0, #1
        back:   pop {r4, pc}
        table:  .word first, second
                .type first, %function
        first:  push {r4, lr}
                pop {r4, pc}
                .type second, %function
        second: bx lr
                .type missing, %function
        missing: bx lr
        """,
        """
        main
          main (4): fallthrough main+16, taken traced
          main+16 (3): calls first, calls second, fallthrough both, across back
          both (2): calls missing, across slow, across back
          traced (3): calls first, calls second, fallthrough traced+12, across slow
          traced+12 (1): taken both
          slow (1): fallthrough back
          back (1): returns
        first
          first (2): returns
        second
          second (1): returns
        missing
          missing (1): returns
        """,
    )


def test_an_unknown_call_that_comes_back_elsewhere() -> None:
    drawn(
        """
        main:   push {r4, lr}
                adr lr, back
                mov pc, r0
                nop
        back:   cmp r0, #0
                addne lr, pc, #0
                movne pc, r5
                pop {r4, pc}
        """,
        """
        main
          main (3): across back
          back (3): across back+12, fallthrough back+12
          back+12 (1): returns
        ? main+8: the targets of mov pc, r0 are not known: the target depends on r0 at entry
        ? back+8: the targets of movne pc, r5 are not known: the target depends on r5 at entry
        """,
    )


def test_an_address_in_lr_of_a_jump_inside_a_function_makes_no_call() -> None:
    """The targets are no functions: it is a switch, and ``bx lr`` a jump."""
    drawn(
        """
        main:   adr r8, table
                adr lr, back
                cmp r7, #2
                push {r4}
                ldrcc pc, [r8, r7, lsl #2]
                nop
        back:   pop {r4}
                mov pc, r2
        table:  .word one, two
        one:    mov r0, #1
                bx lr
        two:    mov r0, #2
                bx lr
        """,
        """
        main
          main (5): fallthrough main+20, indirect one, indirect two
          main+20 (1): fallthrough back
          back (2): stops
          one (2): indirect back
          two (2): indirect back
        ? back+4: the targets of mov pc, r2 are not known: the target depends on r2 at entry
        """,
    )


def test_raw_words_that_control_reaches_are_code() -> None:
    """Marked $d, as the assembler does with ``.word``."""
    image = assemble("main: mov r0, #0\n .word 0xee070f15\n .word 0xe12fff1e")
    assert image.is_marked_data(0x8004)
    assert sketch(image, extracted(image)) == "main\n  main (3): returns"
