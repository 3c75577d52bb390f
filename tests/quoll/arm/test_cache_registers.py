"""Registers that identify caches: which instructions read them or select a cache."""

from __future__ import annotations

import pytest

from quoll.arm.cache_registers import CacheRegister, may_select, read_by, selected_by
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.image.cache_words import CacheType, CacheWords, size_word

READ, WRITE = 0xEE100F10, 0xEE000F10


def transferred(
    form: int, opc1: int, crn: int, crm: int, opc2: int, register: int = 3, *, thumb: bool = False
) -> Insn:
    word = form | opc1 << 21 | crn << 16 | register << 12 | opc2 << 5 | crm
    if thumb:
        word = word >> 16 | (word & 0xFFFF) << 16
    return decode(word.to_bytes(4, "little"), 0x8000, thumb)


@pytest.mark.parametrize("thumb", [False, True], ids=["arm", "thumb"])
def test_reads_and_writes_are_told_apart(thumb: bool) -> None:
    assert read_by(transferred(READ, 1, 0, 0, 1, thumb=thumb)) is CacheRegister.LEVELS
    assert read_by(transferred(READ, 1, 0, 0, 0, thumb=thumb)) is CacheRegister.SIZES
    for others in ((2, 0, 0, 0), (0, 0, 0, 1), (1, 0, 0, 7), (1, 1, 0, 0)):
        assert read_by(transferred(READ, *others, thumb=thumb)) is None
    written = transferred(WRITE, 2, 0, 0, 0, 5, thumb=thumb)
    assert selected_by(written) == 5
    assert may_select(written)
    assert read_by(written) is None
    for form, known in ((READ, (2, 0, 0, 0)), (WRITE, (0, 7, 10, 2)), (WRITE, (0, 7, 5, 4))):
        other = transferred(form, *known, thumb=thumb)
        assert selected_by(other) is None
        assert not may_select(other)


def test_a_write_that_no_table_knows_may_select_a_cache() -> None:
    assert may_select(transferred(WRITE, 5, 9, 9, 3))


def test_words_of_known_caches() -> None:
    """16 KiB and 32 KiB with lines of 64 bytes in 4 ways, 256 KiB in 8: Cortex-A8 TRM, CCSIDR."""
    assert size_word(64, 4, 64) == 0x007E01A
    assert size_word(128, 4, 64) == 0x00FE01A
    assert size_word(512, 8, 64) == 0x03FE03A
    assert size_word(1 << 15, 1 << 10, 2048) == 0x0FFFFFFF
    assert None is size_word(1 << 16, 4, 64) is size_word(64, 2048, 64) is size_word(64, 4, 8)


def test_levels_of_a_word() -> None:
    words = CacheWords(0x0A000023, ())
    assert [words.type_of(level) for level in (1, 2, 3)] == [
        CacheType.SEPARATE,
        CacheType.UNIFIED,
        CacheType.NONE,
    ]
    assert CacheWords(7, ()).type_of(1) is None
