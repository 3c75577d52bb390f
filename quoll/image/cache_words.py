"""The words that identify the caches of a core, as a platform says.

CLIDR lists the levels; CCSIDR has the sizes of the cache that CSSELR selects.

Source: ARM Architecture Reference Manual (DDI 0406C), B4.1.19 (CCSIDR), B4.1.20 (CLIDR) and
B4.1.41 (CSSELR).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["KNOWN_BITS", "LEVELS", "SELECTOR_BITS", "CacheType", "CacheWords", "size_word"]

KNOWN_BITS = 0x0FFFFFFF  # of CCSIDR: the others say how stores are written, which no size tells
SELECTOR_BITS = 0xF  # of CSSELR: level less one in bits 3 to 1, instructions in bit 0
LEVELS = 7
LINE_UNIT = 16  # bytes of a line whose field is 0
MOST_SETS, MOST_WAYS, LARGEST_LINE = 1 << 15, 1 << 10, LINE_UNIT << 7


class CacheType(Enum):
    """The caches of one level, as a field of three bits in CLIDR."""

    NONE = 0
    INSTRUCTIONS = 1
    DATA = 2
    SEPARATE = 3
    UNIFIED = 4


@dataclass(frozen=True, slots=True)
class CacheWords:
    """The words that the registers read.

    ``levels``: CLIDR. ``sizes``: by selector, the bits ``KNOWN_BITS`` of CCSIDR, sorted.
    """

    levels: int
    sizes: tuple[tuple[int, int], ...]

    def type_of(self, level: int) -> CacheType | None:
        """The caches of a level, from 1 on; None for a reserved field."""
        field = self.levels >> 3 * (level - 1) & 7
        return CacheType(field) if field <= CacheType.UNIFIED.value else None


def size_word(sets: int, ways: int, line: int) -> int | None:
    """The bits ``KNOWN_BITS`` of CCSIDR for a cache; None if its fields have no room.

    ``line``: bytes, a power of two.
    """
    if not (sets <= MOST_SETS and ways <= MOST_WAYS and LINE_UNIT <= line <= LARGEST_LINE):
        return None
    return (sets - 1) << 13 | (ways - 1) << 3 | ((line // LINE_UNIT).bit_length() - 1)
