"""Damage to a file: flipped bits, cut ends, and absurd numbers in its tables."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

__all__ = ["DAMAGES", "damaged"]

HEADER, PROGRAM_HEADER, SECTION_HEADER = 52, 32, 40  # bytes
ABSURD = (0, 1, 2, 3, 4, 7, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC)
MOST_FLIPS = 64


def damaged(random: Random, data: bytes) -> bytes:
    """``data`` with one to three kinds of damage."""
    content = bytearray(data)
    for _ in range(random.randint(1, 3)):
        random.choice(DAMAGES)(random, content)
    return bytes(content)


def flip_anywhere(random: Random, content: bytearray) -> None:
    """Flip bits, few or many, all over the file."""
    for _ in range(random.randint(1, MOST_FLIPS)):
        _flip(random, content, 0, len(content))


def flip_table(random: Random, content: bytearray) -> None:
    """Flip bits in the ELF header or in one of the tables that it points to."""
    low, high = random.choice(_tables(content))
    for _ in range(random.randint(1, 8)):
        _flip(random, content, low, high)


def flip_code(random: Random, content: bytearray) -> None:
    """Flip bits in the first loadable segment: instructions, jump tables, literals."""
    offset, size = _first_segment(content)
    for _ in range(random.randint(1, 16)):
        _flip(random, content, offset, offset + size)


def put_absurd(random: Random, content: bytearray) -> None:
    """Put extreme numbers, or other numbers of the file, into words of a table."""
    low, high = random.choice(_tables(content))
    for _ in range(random.randint(1, 4)):
        if high - low < 4:
            return
        at = low + 4 * random.randrange((high - low) // 4)
        near = random.choice((0, 4, len(content), len(content) - 1))
        value = random.choice((*ABSURD, near, random.getrandbits(32)))
        if at + 4 <= len(content):
            content[at : at + 4] = struct.pack("<I", value)


def truncate(random: Random, content: bytearray) -> None:
    """Cut the end off."""
    del content[random.randint(0, len(content)) :]


def zero(random: Random, content: bytearray) -> None:
    """Set some bytes to 0."""
    at = random.randrange(len(content) + 1)
    size = min(random.choice((1, 16, 256, 4096)), len(content) - at)
    content[at : at + size] = bytes(size)


def copy(random: Random, content: bytearray) -> None:
    """Copy some bytes over others."""
    size = random.choice((4, 32, 40, 256))
    if len(content) > size:
        source, target = (random.randrange(len(content) - size) for _ in range(2))
        content[target : target + size] = content[source : source + size]


DAMAGES: tuple[Callable[[Random, bytearray], None], ...] = (
    flip_anywhere,
    flip_table,
    flip_code,
    put_absurd,
    put_absurd,
    truncate,
    zero,
    copy,
)


def _flip(random: Random, content: bytearray, low: int, high: int) -> None:
    high = min(high, len(content))
    if low < high:
        content[random.randrange(low, high)] ^= 1 << random.randrange(8)


def _word(content: bytearray, at: int) -> int:
    return int.from_bytes(content[at : at + 4], "little")


def _tables(content: bytearray) -> list[tuple[int, int]]:
    """The extents of the header, of program and section headers, and of the sections' contents."""
    phoff, shoff = _word(content, 28), _word(content, 32)
    phnum, shnum = (int.from_bytes(content[at : at + 2], "little") for at in (44, 48))
    found = [(0, HEADER), (0, HEADER)]
    found.append((phoff, phoff + phnum * PROGRAM_HEADER))
    found.append((shoff, shoff + shnum * SECTION_HEADER))
    for index in range(min(shnum, 64)):
        at = shoff + index * SECTION_HEADER
        found.append((_word(content, at + 16), _word(content, at + 16) + _word(content, at + 20)))
    return [(low, high) for low, high in found if low < high]


def _first_segment(content: bytearray) -> tuple[int, int]:
    at = _word(content, 28)
    return _word(content, at + 4), _word(content, at + 16)
