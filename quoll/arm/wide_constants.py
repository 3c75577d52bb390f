"""Constants computed by code: movw and movt pairs, sums with the pc, and immediates, anywhere.

Encodings in the ARM Architecture Reference Manual: movw and movt, A8.8.102 and A8.8.106, T3, A2 and
T1, A1; ADR, A8.8.12, T1 to T3, A1, A2; ADD (register) with pc, A8.8.7, T2, A1, after LDR (literal),
A8.8.64, T1, T2, A1, or after a pair; MOV (immediate), A8.8.102, T2, A1, with constants of A5.2.4
and A6.3.2. Code is searched without decoding: data that resembles one of these adds a constant,
which is harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from quoll.arm.insn import Insn

__all__ = ["immediates", "relative_addresses", "upper_half", "wide_constants"]

ARM_TOP = re.compile(rb"(?=..[\x40-\x4f].)", re.DOTALL)
THUMB_TOP = re.compile(rb"(?=[\xc0-\xcf][\xf2\xf6].[\x00-\x7f])", re.DOTALL)
ARM_IMMEDIATE = re.compile(rb"(?=..[\x4f\x8f].)", re.DOTALL)
ARM_SUM = re.compile(rb"(?=..[\x80-\x8f].)", re.DOTALL)
THUMB_ADR = re.compile(rb"(?=.[\xa0-\xa7])", re.DOTALL)
THUMB_WIDE_ADR = re.compile(rb"(?=[\xaf\x0f][\xf2\xf6].[\x00-\x7f])", re.DOTALL)
THUMB_SUM = re.compile(rb"(?=[\x78-\x7f\xf8-\xff]\x44)", re.DOTALL)
ARM_MOVE = re.compile(rb"(?=..[\xa0\xb0].)", re.DOTALL)
THUMB_MOVE = re.compile(rb"(?=[\x4f\x5f][\xf0\xf4].[\x00-\x7f])", re.DOTALL)
BEFORE = 64  # most instructions between two that make a constant together
WORD = 0xFFFFFFFF


def wide_constants(code: bytes) -> Iterator[int]:
    """The constants in ``code``, which begins at a multiple of 4."""
    for match in ARM_TOP.finditer(code):
        if match.start() % 4 == 0:
            yield from _pairs(code, match.start(), 4, _arm_half)
    for match in THUMB_TOP.finditer(code):
        if match.start() % 2 == 0:
            yield from _pairs(code, match.start(), 2, _thumb_half)


def relative_addresses(code: bytes, start: int) -> Iterator[int]:
    """The addresses, of which bit 0 may be set; ``code`` begins at ``start``, a multiple of 4."""
    for match in ARM_IMMEDIATE.finditer(code):
        if match.start() % 4 == 0:
            yield from _arm_adr(code, match.start(), start)
    for match in ARM_SUM.finditer(code):
        if match.start() % 4 == 0:
            yield from _arm_sum(code, match.start(), start)
    for match in THUMB_ADR.finditer(code):
        at = match.start()
        if at % 2 == 0:
            yield (start + at + 4 & ~3) + 4 * code[at]
    for match in THUMB_WIDE_ADR.finditer(code):
        if match.start() % 2 == 0:
            yield from _thumb_adr(code, match.start(), start)
    for match in THUMB_SUM.finditer(code):
        if match.start() % 2 == 0:
            yield from _thumb_sum(code, match.start(), start)


def immediates(code: bytes) -> Iterator[int]:
    """The constants of moves in ``code``, which begins at a multiple of 4."""
    for match in ARM_MOVE.finditer(code):
        word = _word(code, match.start())
        if match.start() % 4 == 0 and word >> 28 != 15 and word >> 24 & 15 == 3:
            yield _turned(word & 0xFF, word >> 7 & 30)
    for match in THUMB_MOVE.finditer(code):
        if match.start() % 2 == 0:
            first, second = _word(code, match.start(), 2), _word(code, match.start() + 2, 2)
            yield _expanded((first & 1 << 10) << 1 | (second & 0x7000) >> 4 | second & 0xFF)


def upper_half(insn: Insn) -> int | None:
    """The constant of movt, which becomes the upper half of its register; None for others."""
    if insn.mnemonic != "movt":
        return None
    half = (_thumb_half if insn.thumb else _arm_half)(insn.raw)
    return None if half is None else half[2]


def _turned(byte: int, right: int) -> int:
    return (byte << 32 | byte) >> right & WORD


def _expanded(twelve: int) -> int:
    """The constant of a Thumb instruction, by the 12 bits of its immediate."""
    byte = twelve & 0xFF
    if twelve >> 10:
        return _turned(byte & 0x7F | 0x80, twelve >> 7)
    return byte * (1, 0x10001, 0x1000100, 0x1010101)[twelve >> 8]


_Half = tuple[bool, int, int]  # whether it is the upper half, the register, the constant


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


def _constant_before(code: bytes, at: int, register: int, *, thumb: bool) -> Iterator[int]:
    """The constant that the nearest pair before ``at`` loads into ``register``, if any."""
    step, half = (2, _thumb_half) if thumb else (4, _arm_half)
    for start in range(at - step, max(at - BEFORE * 4, 0) - 1, -step):
        top = half(code[start : start + 4])
        if top is not None and top[0] and top[1] == register:
            yield from _pairs(code, start, step, half)
            return


def _word(code: bytes, at: int, size: int = 4) -> int:
    return int.from_bytes(code[at : at + size], "little") if at >= 0 else 0


def _arm_adr(code: bytes, at: int, start: int) -> Iterator[int]:
    word = _word(code, at)
    if word >> 28 == 15 or word >> 16 & 0xFFF not in (0x28F, 0x24F):
        return
    constant = _turned(word & 0xFF, word >> 7 & 30)
    down = word >> 16 & 0xFFF == 0x24F
    yield start + at + 8 + (-constant if down else constant) & WORD


def _arm_sum(code: bytes, at: int, start: int) -> Iterator[int]:
    word = _word(code, at)
    if word >> 28 == 15 or word >> 20 & 0xFE != 0x08 or word & 0xFF0:
        return
    registers = word >> 16 & 15, word & 15
    if 15 not in registers:
        return
    register = registers[0] if registers[1] == 15 else registers[1]
    for before in range(at - 4, max(at - 4 * BEFORE, 0) - 1, -4):
        load = _word(code, before)
        if load >> 16 & 0xF7F == 0x51F and load >> 12 & 15 == register:
            distance = load & 0xFFF if load & 1 << 23 else -(load & 0xFFF)
            yield start + at + 8 + _word(code, before + 8 + distance) & WORD
            break
    for constant in _constant_before(code, at, register, thumb=False):
        yield start + at + 8 + constant & WORD


def _thumb_adr(code: bytes, at: int, start: int) -> Iterator[int]:
    first, second = _word(code, at, 2), _word(code, at + 2, 2)
    if first & 0xFBFF not in (0xF20F, 0xF2AF):
        return
    constant = (first & 1 << 10) << 1 | (second & 0x7000) >> 4 | second & 0xFF
    down = first & 0xFBFF == 0xF2AF
    yield (start + at + 4 & ~3) + (-constant if down else constant) & WORD


def _thumb_sum(code: bytes, at: int, start: int) -> Iterator[int]:
    register = code[at] & 7 | (code[at] & 0x80) >> 4
    for before in range(at - 2, max(at - 2 * BEFORE, 0) - 1, -2):
        first, second = _word(code, before, 2), _word(code, before + 2, 2)
        base = before + 4 & ~3
        if first >> 8 == 0x48 | register and register < 8:
            yield start + at + 4 + _word(code, base + 4 * (first & 0xFF)) & WORD
            break
        if first & 0xFF7F == 0xF85F and second >> 12 == register:
            distance = second & 0xFFF if first & 1 << 7 else -(second & 0xFFF)
            yield start + at + 4 + _word(code, base + distance) & WORD
            break
    for constant in _constant_before(code, at, register, thumb=True):
        yield start + at + 4 + constant & WORD
