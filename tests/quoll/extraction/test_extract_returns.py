"""Returns and tail calls are proved: their form alone may be wrong."""

from __future__ import annotations

import pytest

from quoll.cfg.cfg import Cfg
from quoll.indirect.returns import FunctionConfirmation, ReturnConfirmer
from tests.testing.quoll.sketch import assemble, drawn, extracted


def test_returns_that_are_none() -> None:
    """The popped word is not the pushed one, and sp has changed."""
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
        ? main+12: pop {r4, pc} leaves with a stack pointer that is not the caller's: it may go on \
in another context; lost at ldr sp, [r0]
        ? helper+8: pop {r4, pc} is not proved to return to the caller: the target is not constant
        """,
    )


def test_a_return_is_asked_for_after_the_calls_that_values_are_to_decide() -> None:
    """Values lose the processor mode, which the proof of returns follows."""
    drawn(
        """
        main:   push {r4, lr}
                mrs r4, cpsr
                cpsid i
                cmp r2, #0
                beq out
                ldr r3, [r0, r1]
                blx r3
        out:    msr cpsr_c, r4
                pop {r4, pc}
        """,
        """
        main
          main (5): fallthrough main+20, taken out
          main+20 (2): across out
          out (2): returns
        ? main+24: the targets of blx r3 are not known: the target is not constant
        """,
    )


def test_a_jump_that_leaves_sp_changed_is_no_tail_call() -> None:
    """``epilogue`` has a function symbol, but pops main's words: it belongs to main."""
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
    assert str(program.assumptions[-1]) == (
        "return by its form: pop {r4, pc} at 0x00008010 <main+0x10> prog.S:10 returns to the "
        "caller and restores the callee-saved registers"
    )


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


def test_values_are_not_asked_again_of_a_call_that_they_do_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, set[int]]] = []
    confirm = ReturnConfirmer.__call__

    def noted(
        confirmer: ReturnConfirmer, cfg: Cfg, undecided: set[int]
    ) -> FunctionConfirmation | str:
        asked.append((cfg.name, set(undecided)))
        return confirm(confirmer, cfg, undecided)

    monkeypatch.setattr(ReturnConfirmer, "__call__", noted)
    text = "main: push {r4, lr}\n ldr r3, [r0]\n mul r3, r3, r1\n blx r3\n pop {r4, pc}\n"
    program = extracted(assemble(text))
    assert [u.addr for u in program.unresolved] == [0x800C]
    assert program.functions[0x8000].returns
    assert asked == [("main", {0x800C})]


@pytest.mark.parametrize("thumb", [False, True])
def test_a_jump_to_what_a_call_returns_is_refused_once(thumb: bool) -> None:
    """It stands where the call comes back to; that is no jump of the call to it."""
    text = "main: push {r4, lr}\n bl f\n bx r0\n .type f, %function\nf: movs r0, #0\n bx lr\n"
    program = extracted(assemble(text, thumb=thumb))
    (unresolved,) = program.unresolved
    assert "the targets of bx r0 are not known" in unresolved.reason
    assert len(program.functions) == 2
