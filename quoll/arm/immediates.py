"""Constants in encodings of data processing: ARM (A5.2.4), Thumb (A6.2, A6.3.1 to A6.3.3)."""

from __future__ import annotations

from quoll.arm.insn import Insn, ShiftKind
from quoll.arm.operation import Operation

__all__ = ["added_constant", "arm_constant", "immediate_operand"]

WORD = 1 << 32
WITH_CONSTANT = frozenset(
    ["adc", "add", "and", "bic", "cmn", "cmp", "eor", "mov", "msr", "mvn", "orn", "orr", "rsb",
     "rsc", "sbc", "sub", "teq", "tst"]
)  # fmt: skip
ARM_SUBTRACTS = 2  # A5.2.3, bits 24 to 21
MOVW, THUMB_MOVW = 0b10000, 0b00100  # bits 24 to 20 (A8.8.102)
THUMB_SUBTRACTS = (0b1101, 0b0101)  # the same bits in A6.3.1 and A6.3.3


def arm_constant(word: int) -> int:
    """The modified immediate constant of an ARM instruction (A5.2.4)."""
    value, rotation = word & 0xFF, word >> 7 & 30
    return (value >> rotation | value << 32 - rotation) % WORD


def immediate_operand(insn: Insn) -> int | None:
    """The last operand of data processing or msr, if it is a constant, from 0 to 2**32 - 1.

    None for a register, and for other instructions (movt is one).
    """
    if insn.mnemonic not in WITH_CONSTANT or insn.memory is not None:
        return None
    word = insn.encoding
    if not insn.thumb:
        if word >> 25 & 7 != 1:
            return None
        return word >> 4 & 0xF000 | word & 0xFFF if word >> 20 & 31 == MOVW else arm_constant(word)
    if insn.size == 2:
        return _narrow(word)
    if word >> 27 != 0b11110 or word & 1 << 15:
        return None
    return _plain(word) if word & 1 << 25 else _modified(word)


def left_shift(insn: Insn) -> int | None:
    """The constant by which ``lsl`` shifts its register; None for other instructions."""
    if insn.mnemonic != "mov" or insn.shift is not ShiftKind.IMMEDIATE:
        return None
    word = insn.encoding
    if not insn.thumb:
        return word >> 7 & 31 if not word >> 5 & 3 else None
    if insn.size == 2:
        return word >> 6 & 31 if not word >> 11 else None
    return word >> 10 & 0x1C | word >> 6 & 3 if not word >> 4 & 3 else None


def added_constant(insn: Insn) -> int | None:
    """The constant that add or sub adds to its register, negative for sub; None for others."""
    constant = immediate_operand(insn)
    if constant is None or insn.operation not in (Operation.ADD, Operation.SUBTRACT):
        return None
    return -constant if _subtracts(insn) else constant


def _subtracts(insn: Insn) -> bool:
    """Whether the encoding subtracts; adr is called add in both directions."""
    word = insn.encoding
    if insn.size == 2:
        return insn.operation is Operation.SUBTRACT
    code = word >> 21 & 15
    return code in THUMB_SUBTRACTS if insn.thumb else code == ARM_SUBTRACTS


def _narrow(half: int) -> int | None:
    """The constant of a 16-bit Thumb instruction (A6.2.1, A6.2.5)."""
    match half >> 11:
        case 0b00011 if half & 1 << 10:
            return half >> 6 & 7
        case 0b00100 | 0b00101 | 0b00110 | 0b00111:
            return half & 0xFF
        case 0b10100 | 0b10101:
            return 4 * (half & 0xFF)
        case 0b10110 if half >> 8 == 0xB0:
            return 4 * (half & 0x7F)
    return None


def _plain(word: int) -> int:
    """The constant of addw, subw and movw (A6.3.3)."""
    upper = word >> 4 & 0xF000 if word >> 20 & 31 == THUMB_MOVW else 0
    return upper | (word >> 26 & 1) << 11 | (word >> 12 & 7) << 8 | word & 0xFF


def _modified(word: int) -> int:
    """The modified immediate constant of Thumb (A6.3.2)."""
    small = word & 0xFF
    rotation = (word >> 26 & 1) << 4 | (word >> 12 & 7) << 1 | word >> 7 & 1
    if rotation >= 8:
        return (small | 0x80) << 32 - rotation
    return small * (1, 0x00010001, 0x01000100, 0x01010101)[rotation >> 1]
