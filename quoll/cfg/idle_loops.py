"""Loops that only wait: a jump to itself, or back over waits, barriers and moves alone.

    1:  wfi                     1:  dsb
        b 1b                        mcr p15, 0, r0, c7, c0, 4
                                    b 1b

Only an interrupt leaves such a loop, and an iteration has no effect but on registers that no code
reads. A loop with a call, an access to memory or a change of the status is none.
"""

from __future__ import annotations

from collections.abc import Callable

from quoll.arm.insn import PC, ControlFlow, Insn
from quoll.arm.operation import Operation

__all__ = ["is_idle", "may_be_idle"]

LONGEST = 8  # instructions
HARMLESS = frozenset(
    [Operation.DATA_BARRIER, Operation.HINT, Operation.INSTRUCTION_BARRIER, Operation.MOVE]
)


def may_be_idle(insn: Insn) -> bool:
    """Whether a path that ends at ``insn`` may end in a loop that only waits."""
    backwards = insn.target is not None and insn.target <= insn.addr
    jump = insn.flow is ControlFlow.JUMP and not insn.conditional and backwards
    return jump or insn.flow is ControlFlow.WAIT


def is_idle(insn: Insn, decoded: Callable[[int], Insn | None]) -> bool:
    """Whether ``insn`` is a wait, or the jump, of a loop that only waits.

    ``decoded`` gives the instruction at an address, None where there is none.
    """
    if not may_be_idle(insn):
        return False
    jump = _jump_behind(insn, decoded)
    if jump is None or jump.target is None or not jump.target <= insn.addr:
        return False
    first = decoded(jump.target)
    return first is not None and _jump_behind(first, decoded) == jump


def _jump_behind(insn: Insn, decoded: Callable[[int], Insn | None]) -> Insn | None:
    """The unconditional jump that control comes to, if only harmless instructions are before it."""
    at: Insn | None = insn
    for _ in range(LONGEST):
        if at is None or (at.flow is ControlFlow.JUMP and not at.conditional):
            return at
        if not _waits(at):
            return None
        at = decoded(at.next)
    return None


def _waits(insn: Insn) -> bool:
    plain = insn.flow is ControlFlow.NEXT and insn.memory is None and PC not in insn.writes
    return insn.flow is ControlFlow.WAIT or (plain and insn.operation in HARMLESS)
