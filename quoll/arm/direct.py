"""Direct branches: most of the distinct encodings of a program, all alike but for the distance.

Each is split into the encoding with distance 0, which is decoded once, and its distance.
"""

from __future__ import annotations

__all__ = ["split_branch"]

ARM_LINK_AND_CONDITION = 0xFF00_0000
THUMB_OPCODE, THUMB_ZERO = 0xF800, 0x2800  # J1 = J2 = 1 stand for zeros when S is 0
THUMB_BRANCHES = (0xD000, 0x9000)  # second halfword of bl T1 and b T4 (A8.8.18, A8.8.25)


def split_branch(raw: bytes, thumb: bool) -> tuple[bytes, int] | None:
    """``raw`` with distance 0, and its distance in bytes; None for other instructions.

    Those with few distances, and ``blx``, are left to be decoded as they are.
    """
    if not thumb:
        if raw[3] & 0x0E != 0x0A or raw[3] >= 0xF0:
            return None
        word = int.from_bytes(raw, "little")
        return (word & ARM_LINK_AND_CONDITION).to_bytes(4, "little"), _signed(word << 2, 26)
    if len(raw) == 2:
        return None
    first, second = int.from_bytes(raw[:2], "little"), int.from_bytes(raw[2:], "little")
    if first >> 11 != 0b11110 or second & 0xD000 not in THUMB_BRANCHES:
        return None
    sign, j1, j2 = first >> 10 & 1, second >> 13 & 1, second >> 11 & 1
    high = sign << 24 | (1 ^ j1 ^ sign) << 23 | (1 ^ j2 ^ sign) << 22
    distance = high | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    zero = (second & 0xD000) | THUMB_ZERO
    return (first & THUMB_OPCODE).to_bytes(2, "little") + zero.to_bytes(2, "little"), _signed(
        distance, 25
    )


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)
