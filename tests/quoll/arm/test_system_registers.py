"""The table of system registers: every write is in a row, and each effect reaches the stages."""

from __future__ import annotations

import pytest

from cache.maintenance import cache_operation, refused
from quoll.arm.coprocessor import CoprocessorRegister
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.arm.system_registers import (
    SYSTEM_RANGES,
    SYSTEM_WRITES,
    UNRECOGNISED,
    SystemEffect,
    SystemWrite,
    changes_translation,
    system_write,
)
from quoll.semantics.lift import lift
from quoll.semantics.ops import OpCode


def written(register: CoprocessorRegister, *, thumb: bool = False, source: int = 3) -> Insn:
    opc1, crn, crm, opc2 = register
    word = 0xEE000F10 | opc1 << 21 | crn << 16 | source << 12 | opc2 << 5 | crm
    if thumb:
        word = word >> 16 | (word & 0xFFFF) << 16
    return decode(word.to_bytes(4, "little"), 0x8000, thumb)


@pytest.mark.parametrize("thumb", [False, True], ids=["arm", "thumb"])
@pytest.mark.parametrize(("register", "row"), SYSTEM_WRITES.items())
def test_rows_are_found_and_are_what_the_ops_do(
    register: CoprocessorRegister, row: SystemWrite, thumb: bool
) -> None:
    insn = written(register, thumb=thumb)
    assert system_write(insn) is row
    codes = [op.code for op in lift(insn)]
    loses = {SystemEffect.DISCARDS_LINE, SystemEffect.DISCARDS_ALL_LINES}
    assert (OpCode.DISCARD in codes) == (not row.effects.isdisjoint(loses))
    assert (OpCode.RETRANSLATE in codes) == changes_translation(insn)
    assert cache_operation(insn).recognised == row.recognised
    assert refused(insn) == row.refused


@pytest.mark.slow("decodes thousands of instructions")
def test_every_write_is_in_a_row() -> None:
    """A write without a row may have any effect: it is refused, and memory is unknown after it."""
    known = 0
    for number in range(1 << 14):
        register = CoprocessorRegister(number >> 11, number >> 7 & 15, number >> 3 & 15, number & 7)
        insn = written(register)
        row = system_write(insn)
        assert row is not None
        known += row is not UNRECOGNISED
        assert row.refused or row.recognised
        if row is UNRECOGNISED:
            assert refused(insn)
            assert changes_translation(insn)
            assert not cache_operation(insn).recognised
    assert known > len(SYSTEM_WRITES)


def test_lines_are_lost_only_without_being_written_back() -> None:
    """Rule 48: an operation that drops lines cleans them, or loses stores, or is refused."""
    for row in SYSTEM_WRITES.values():
        effects = row.effects
        drops = not effects.isdisjoint((SystemEffect.DROPS_DATA_LINE, SystemEffect.DROPS_ALL_DATA))
        cleans = not effects.isdisjoint((SystemEffect.CLEANS_LINE, SystemEffect.CLEANS_ALL))
        loses = SystemEffect.DISCARDS_LINE in effects
        all_lost = SystemEffect.DISCARDS_ALL_LINES in effects
        assert drops is (cleans and drops) or loses or all_lost
        assert not all_lost or row.refused


def test_ranges_are_refused_by_name() -> None:
    for (opc1, crm), row in SYSTEM_RANGES.items():
        word = 0xEC410F00 | opc1 << 4 | crm
        insn = decode(word.to_bytes(4, "little"), 0x8000, thumb=False)
        assert system_write(insn) is row
        assert "range" in (refused(insn) or "")
