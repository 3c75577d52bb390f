"""Extraction against graphs drawn by hand: direct flow, calls, tail calls and tables."""

from __future__ import annotations

from tests.quoll.sketch import assemble, drawn, extracted, sketch


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


def test_raw_words_that_control_reaches_are_code() -> None:
    """Marked $d, as the assembler does with ``.word``."""
    image = assemble("main: mov r0, #0\n .word 0xee070f15\n .word 0xe12fff1e")
    assert image.is_marked_data(0x8004)
    assert sketch(image, extracted(image)) == "main\n  main (3): returns"
