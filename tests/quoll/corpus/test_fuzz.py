"""Damaged ELF files give a result or a clear error: a small share of the campaign."""

from __future__ import annotations

import pytest

from tests.campaigns.fuzz_elf import campaign

PARTS, CASES = 4, 75


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_is_analysed_or_refused(part: int) -> None:
    tally = campaign(CASES, seed=1_000_000 + part * CASES)
    assert tally.failures == []
    assert tally.outcomes["result"] > CASES // 5
    assert tally.outcomes["InputError"] > CASES // 5
    assert tally.outcomes.total() == CASES
