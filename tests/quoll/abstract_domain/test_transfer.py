"""Random instruction sequences: the concrete result is in the abstract result."""

from __future__ import annotations

from collections import Counter

import pytest

from quoll.abstract_domain.function_values import BlockCode
from quoll.arm.decode import decode
from quoll.intervals.strided_interval import ValueSet
from tests.testing.harness.cases import cases
from tests.testing.values.sequences import check


@pytest.mark.slow("many random instruction sequences and states")
@pytest.mark.parametrize("thumb", [False, True], ids=["arm", "thumb"])
def test_covers_execution(thumb: bool) -> None:
    counts: Counter[str] = Counter()
    for seed in range(cases(350)):
        counts += check(seed, thumb)
    assert counts["checked"] > 250
    assert counts["stored"] > 120
    assert counts["registers_known"] > 10 * counts["checked"]
    if not thumb:
        assert counts["left"] > 40
        assert counts["conditional"] > 120


@pytest.mark.slow("many random instruction sequences and states")
def test_covers_execution_with_maintenance() -> None:
    """Rules 44 and 48: an invalidated line loses stores; addresses may name other memory."""
    counts: Counter[str] = Counter()
    for seed in range(cases(350)):
        counts += check(seed, thumb=False, maintained=True)
    assert counts["checked"] > 200
    assert counts["discarded"] > 75
    assert counts["retranslated"] > 75
    assert counts["stored"] > 75


@pytest.mark.slow("many random instruction sequences and states")
@pytest.mark.parametrize("thumb", [False, True], ids=["arm", "thumb"])
def test_covers_execution_where_bits_are_known(thumb: bool) -> None:
    """Fields of device registers go through masks, shifts, comparisons and joins."""
    counts: Counter[str] = Counter()
    for seed in range(cases(350)):
        counts += check(seed, thumb, fields=3)
    assert counts["checked"] > 250
    assert counts["fields"] > 150


def test_blocks_are_compiled_once_for_each_instruction_set() -> None:
    """Bytes at one place may be ARM code in one image and Thumb code in another."""
    raw = bytes.fromhex("4ff00100")  # mov.w r0, #1, or a conditional and into the pc
    arm, thumb = (BlockCode()((decode(raw, 0x8000, is_thumb),)) for is_thumb in (False, True))
    assert arm is not thumb
    assert BlockCode()((decode(raw, 0x8000, True),)) is thumb
    fact = BlockCode({0x8000: ((1, ValueSet.of(3)),)})
    assert fact((decode(raw, 0x8000, True),)) is not thumb
