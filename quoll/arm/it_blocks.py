"""Instructions that an IT block must not contain: UNPREDICTABLE by ARM ARM A8.8.54 (DDI 0406C)."""

from __future__ import annotations

from quoll.arm.insn import ControlFlow, Insn

__all__ = ["misplaced_in_it_block"]

NOWHERE = frozenset(["cbnz", "cbz", "hvc", "it", "setend"])  # A8.8.29, B9.3.4, A8.8.54, A8.8.157
CHANGES_STATE = "cps"  # cpsie, cpsid, cps: B9.3.2
ONLY_LAST = frozenset(["smc"])  # B9.3.14
TRANSFERS = frozenset(
    [
        ControlFlow.JUMP,
        ControlFlow.CALL,
        ControlFlow.INDIRECT,
        ControlFlow.INDIRECT_CALL,
        ControlFlow.EXCEPTION_RETURN,
    ]
)
ALWAYS = 14  # conditions from here on mean none


def misplaced_in_it_block(insn: Insn, *, left: int) -> str | None:
    """Why ``insn`` is UNPREDICTABLE at its place, or None.

    ``left``: remaining instructions of its IT block, itself included; 0 outside of one.
    """
    name = insn.mnemonic
    if not left:
        return _wrong_condition(insn) if name == "it" else None
    if name in NOWHERE or name.startswith(CHANGES_STATE) or _has_own_condition(insn):
        return f"{insn.text} stands in an IT block"
    if left > 1 and (insn.flow in TRANSFERS or name in ONLY_LAST):
        return f"{insn.text} transfers control in the middle of an IT block"
    return None


def _has_own_condition(insn: Insn) -> bool:
    """Whether the encoding is a ``b`` with a condition: T1 or T3 (A8.8.18)."""
    if insn.mnemonic != "b":
        return False
    word = insn.encoding
    if insn.size == 2:
        return word >> 12 == 0xD and word >> 8 & 15 < ALWAYS
    return word & 0xF800D000 == 0xF0008000 and word >> 22 & 15 < ALWAYS


def _wrong_condition(insn: Insn) -> str | None:
    first, mask = insn.encoding >> 4 & 15, insn.encoding & 15
    if first > ALWAYS or (first == ALWAYS and mask.bit_count() != 1):
        return f"{insn.text} has a condition that is none, or the opposite of always"
    return None
