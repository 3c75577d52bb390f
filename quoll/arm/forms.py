"""Forms of ARM instructions: instructions that differ only in registers and numbers.

One decoded instruction then serves for its form.

A kernel has hundreds of thousands of distinct instruction words, most of them data processing
(A5.2.1 to A5.2.3) or loads and stores (A5.2.8, A5.3), and disassembling the operands of each one
dominates the time of decoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from quoll.arm.immediates import arm_constant
from quoll.arm.insn import SP

__all__ = ["form_of", "number_named", "registers_named"]

RN, RD, RS, RM = 16, 12, 8, 0  # lowest bits of register fields
IMMEDIATE, SHIFT_AMOUNT, SPLIT_IMMEDIATE = 0xFFF, 0xF80, 0xF0F
UNCONDITIONAL = 0xF0
COMPARES = range(8, 12)  # tst, teq, cmp, cmn: no destination; without S another instruction
MOVES = (13, 15)  # mov, mvn: no first operand
ARITHMETIC = (*range(2, 8), 10, 11)  # flags depend on the value, not on its rotation
OFFSET, SPLIT_OFFSET, NUMBER = 0x5A8, 0xA5, 0xAB  # representatives of all immediates


def form_of(word: int) -> tuple[int, Mapping[int, int]] | None:
    """An instruction of the same form, and the actual register for each of its registers.

    A number stays zero or nonzero, and a register from sp on is unchanged, as those may have a
    special meaning. None if the word has no other representative.
    """
    found = _fields(word >> 20, word >> 4 & 15)
    if found is None:
        return None
    registers, number = found
    if word & number:
        word = word & ~number | number & -number
    names = {}
    for name, field in enumerate(registers):
        register = word >> field & 15
        if register < SP:
            word = word & ~(15 << field) | name << field
            names[name] = register
    return word, names


def registers_named(word: int) -> tuple[int, Mapping[int, int]] | None:
    """``word`` with r0, r1 and so on for its registers, and the actual registers.

    Different registers stay different, as an instruction may write one before it reads another.
    None if the word has no other representative.
    """
    found = _fields(word >> 20, word >> 4 & 15)
    if found is None:
        return None
    names: dict[int, int] = {}
    for field in found[0]:
        register = word >> field & 15
        if register < SP:
            name = names.setdefault(register, len(names))
            word = word & ~(15 << field) | name << field
    return word, {name: register for register, name in names.items()}


def number_named(word: int) -> tuple[int, int, int] | None:
    """``word`` with the representative number, that number, and the actual number.

    None without a number, for 0, and if more than its value matters.
    """
    found = _fields(word >> 20, word >> 4 & 15)
    if found is None or not word & found[1] or found[1] == SHIFT_AMOUNT:
        return None
    if found[1] == SPLIT_IMMEDIATE:
        split = (SPLIT_OFFSET & 0xF0) << 4 | SPLIT_OFFSET & 15
        return word & ~SPLIT_IMMEDIATE | split, SPLIT_OFFSET, word >> 4 & 0xF0 | word & 15
    if word >> 25 & 7 == 2:
        return word & ~IMMEDIATE | OFFSET, OFFSET, word & IMMEDIATE
    rotation, sets_flags = word >> 7 & 30, word >> 20 & 1
    if rotation and sets_flags and word >> 21 & 15 not in ARITHMETIC:
        return None  # the carry flag
    value = arm_constant(word)
    return (word & ~IMMEDIATE | NUMBER, NUMBER, value) if value else None


@cache
def _fields(high: int, low: int) -> tuple[tuple[int, ...], int] | None:
    """The register fields, and the bits of the number, given bits 31 to 20 and 7 to 4."""
    kind, immediate = high >> 5 & 7, high & 4
    if high >= UNCONDITIONAL << 4 or kind > 3 or (kind == 3 and low & 1):
        return None
    if kind == 2:
        return (RN, RD), IMMEDIATE
    if kind == 3:
        return (RN, RD, RM), SHIFT_AMOUNT
    if kind == 0 and low & 9 == 9:
        if low & 6 == 0 or (not high & 1 and low & 6 != 2):
            return None  # multiplications and the like; pairs of registers
        return ((RN, RD), SPLIT_IMMEDIATE) if immediate else ((RN, RD, RM), 0)
    return _data_processing_fields(high >> 1 & 15, bool(high & 1), kind, low)


def _data_processing_fields(
    operation: int, sets_flags: bool, kind: int, low: int
) -> tuple[tuple[int, ...], int] | None:
    if operation in COMPARES and not sets_flags:
        return None
    fields: tuple[int, ...] = () if operation in COMPARES else (RD,)
    fields += () if operation in MOVES else (RN,)
    if kind:
        return fields, IMMEDIATE
    return ((*fields, RM, RS), 0) if low & 1 else ((*fields, RM), SHIFT_AMOUNT)
