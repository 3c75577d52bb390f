"""Killed runs, and runs at once, break no output and no cache: a part of the campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.kills import all_runs, campaign, comparable, together
from tests.testing.harness.cases import cases, spread
from tests.testing.quoll.building import build

SOURCE = """\
volatile unsigned left;
unsigned main(unsigned n) {
    for (unsigned i = 0; i < 8; i++) left += n;
    return left;
}
"""
KILLS = cases(2)
KNOWN = dict(spread(all_runs("main").items(), 2))


@pytest.fixture(scope="module")
def elf() -> Path:
    return build(SOURCE, optimise="-O1")


@pytest.mark.slow("kills a run at many moments")
def test_some_kills(elf: Path) -> None:
    tally = campaign(elf, "main", KNOWN, kills=KILLS, seed=3)
    assert tally.before >= 1
    assert tally.before + tally.after == KILLS


@pytest.mark.slow("kills a run at many moments")
def test_two_runs_at_once(elf: Path) -> None:
    together(elf, "main", KNOWN)


def test_half_a_document_is_seen() -> None:
    with pytest.raises(AssertionError, match="half"):
        comparable("a.json", '{"entries": {')
    with pytest.raises(AssertionError, match="half"):
        comparable("a.html", "<!doctype html>\n<html>")
