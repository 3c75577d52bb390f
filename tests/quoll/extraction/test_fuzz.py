"""Damaged ELF files give a result or a clear error: a small share of the campaign."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from campaigns import fuzz_elf
from campaigns.fuzz_elf import campaign
from tests.testing.harness.cases import cases

PARTS, CASES = 2, cases(12)


@pytest.mark.slow("extracts many damaged files")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_is_analysed_or_refused(part: int) -> None:
    tally = campaign(CASES, seed=1_000_000 + part * CASES)
    assert tally.failures == []
    assert tally.outcomes["result"] > CASES // 5
    assert tally.outcomes["InputError"] > CASES // 5
    assert tally.outcomes.total() == CASES


def test_a_hang_is_noticed_by_processor_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fuzz_elf, "LIMIT", 0.1)
    monkeypatch.setattr(fuzz_elf, "analyse", lambda path: sum(count()))
    status, usage = fuzz_elf.try_file(tmp_path)
    assert fuzz_elf._outcome(status) == "hang"
    assert usage.ru_utime < 5
