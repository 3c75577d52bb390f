"""Constants that pairs of movw and movt make, wherever they stand in code.

Encodings: movw and movt, A8.8.102 and A8.8.106 of the ARM Architecture Reference Manual, T3, A2 and
T1, A1. Code is looked through without being decoded: what only looks like a pair gives a constant
too many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from quoll.arm.insn import Insn

__all__ = ["constant_before", "upper_half", "wide_constants"]

ARM_TOP = re.compile(rb"(?=..[\x40-\x4f].)", re.DOTALL)
THUMB_TOP = re.compile(rb"(?=[\xc0-\xcf][\xf2\xf6].[\x00-\x7f])", re.DOTALL)
BEFORE = 64  # instructions between the two halves


def wide_constants(code: bytes) -> Iterator[int]:
    """The constants; ``code`` begins at a multiple of 4."""
    for match in ARM_TOP.finditer(code):
        if match.start() % 4 == 0:
            yield from _pairs(code, match.start(), 4, _arm_half)
    for match in THUMB_TOP.finditer(code):
        if match.start() % 2 == 0:
            yield from _pairs(code, match.start(), 2, _thumb_half)


def constant_before(code: bytes, at: int, register: int, *, thumb: bool) -> Iterator[int]:
    """What the nearest pair before ``at`` puts into ``register``, if there is one."""
    step, half = (2, _thumb_half) if thumb else (4, _arm_half)
    for start in range(at - step, max(at - BEFORE * 4, 0) - 1, -step):
        top = half(code[start : start + 4])
        if top is not None and top[0] and top[1] == register:
            yield from _pairs(code, start, step, half)
            return


def upper_half(insn: Insn) -> int | None:
    """The constant of movt, which becomes the upper half of its register; None for others."""
    if insn.mnemonic != "movt":
        return None
    half = (_thumb_half if insn.thumb else _arm_half)(insn.raw)
    return None if half is None else half[2]


_Half = tuple[bool, int, int]  # whether it is the upper one, the register, the constant


def _pairs(code: bytes, at: int, step: int, half: Callable[[bytes], _Half | None]) -> Iterator[int]:
    top = half(code[at : at + 4])
    if top is None or not top[0]:
        return
    for start in range(at - step, max(at - BEFORE * 4, 0) - 1, -step):
        low = half(code[start : start + 4])
        if low is not None and not low[0] and low[1] == top[1]:
            yield top[2] << 16 | low[2]
            return


def _arm_half(raw: bytes) -> _Half | None:
    word = int.from_bytes(raw, "little")
    if word >> 28 == 15 or word >> 20 & 0xFB != 0x30:
        return None
    return bool(word & 1 << 22), word >> 12 & 15, word >> 4 & 0xF000 | word & 0xFFF


def _thumb_half(raw: bytes) -> _Half | None:
    first, second = int.from_bytes(raw[:2], "little"), int.from_bytes(raw[2:4], "little")
    if first & 0xFB70 != 0xF240 or second & 1 << 15:
        return None
    constant = (first & 15) << 12 | (first & 1 << 10) << 1 | (second & 0x7000) >> 4 | second & 0xFF
    return bool(first & 1 << 7), second >> 8 & 15, constant
