"""Exclusions of an earlier run: used while nothing changes that a proof reads, and never else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quoll.errors import WcetError
from quoll.results.results_store import ResultsStore
from tests.testing.harness.cases import cases
from tests.testing.wcet.infeasible_programs import build_pairs
from tests.testing.wcet.refined_runs import options
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import SilentStageLog
from wcet.refinement.refine import RefinedBound, refine
from wcet.refinement.rounds import Ending, RefinementRounds
from wcet.reports.json_document import to_json
from wcet.reports.result_text import TextStyle, to_text

LATE = "work executes at most 7 times\n"  # read by integer programs only
EARLY = "register r1 at main is at most 9\n"
pytestmark = pytest.mark.slow("analyses a program several times")


class Stored:
    """A program in a folder of its own, with the store that the run ``first`` has filled."""

    def __init__(self, folder: Path, first: RefinedBound) -> None:
        self.elf = folder / "prog.elf"
        self.asked = options(store=ResultsStore(folder / "store"))
        self.first = first

    def refined(self) -> RefinedBound:
        return refine(self.elf, self.asked, 60.0, SilentStageLog())

    def bound(self, **changed: Any) -> EntryResult:
        asked: AnalysisOptions = replace(self.asked, **changed)
        return analyse(self.elf, asked, SilentStageLog()).entries["main"]

    @property
    def facts(self) -> Path:
        return self.elf.with_suffix(".facts")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RefinedBound]:
    """A folder with a program and a store, and the first refined bound."""
    folder = tmp_path_factory.mktemp("stored")
    shutil.copy(build_pairs(("global",), 1, "-O1").elf, folder / "prog.elf")
    asked = options(store=ResultsStore(folder / "store"))
    late = refine(folder / "prog.elf", asked, 1e-6, SilentStageLog())
    assert late.ending is Ending.TIME
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(RefinementRounds, "begin")
        again = refine(folder / "prog.elf", asked, 1e-6, SilentStageLog())
    assert (again.cycles, again.ending) == (late.cycles, Ending.TIME)
    return folder, refine(folder / "prog.elf", asked, 60.0, SilentStageLog())


@pytest.fixture
def stored(tmp_path: Path, filled: tuple[Path, RefinedBound]) -> Stored:
    folder, first = filled
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return Stored(tmp_path, first)


def test_an_analysis_uses_and_prints_them(stored: Stored) -> None:
    assert stored.first.cycles < stored.first.entry.cycles
    result = analyse(stored.elf, stored.asked, SilentStageLog())
    entry = result.entries["main"]
    assert entry.cycles == stored.first.cycles
    assert entry.proved == stored.first.rounds[0].exclusions
    assert {*stored.first.assumptions} == {*entry.assumptions}
    place = entry.proved[0].decisions[0].place
    assert place in to_text(result, TextStyle(color=False, paths="none", stats=False))
    assert f'"place": "{place}"' in to_json(result)
    assert place not in " ".join(map(str, entry.assumptions))
    assert stored.bound(store=ResultsStore(None)).cycles == stored.first.entry.cycles


def test_nothing_is_proved_again(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(RefinementRounds, "begin")
    again = stored.refined()
    assert (again.cycles, again.ending) == (stored.first.cycles, stored.first.ending)
    assert again.entry.cycles == stored.first.entry.cycles
    [one] = again.rounds
    assert one.stored
    assert {*again.cores} == {*stored.first.cores}


def test_rounds_go_on_where_they_stopped(stored: Stored) -> None:
    """The first run of the fixture had no time."""
    assert stored.first.ending is Ending.NOT_REFUTED
    assert stored.first.cycles < stored.first.entry.cycles


def test_a_fact_about_counts_leaves_them_valid(stored: Stored) -> None:
    stored.facts.write_text(LATE)
    assert stored.bound().cycles == stored.first.cycles


def other_fact(stored: Stored, _: Random) -> EntryResult:
    stored.facts.write_text(EARLY)
    return stored.bound()


def other_platform(stored: Stored, _: Random) -> EntryResult:
    return stored.bound(platform="kzm-paper")


def other_instruction(stored: Stored, random: Random) -> EntryResult:
    """Flips one bit of a word in the code of ``main``, until the program can be analysed."""
    symbol = stored.first.image.symbol("main")
    assert symbol is not None
    content = stored.elf.read_bytes()
    code = stored.first.image.read(symbol.addr, symbol.size) or b""
    begin = content.index(code)
    while True:
        changed = bytearray(content)
        changed[begin + random.randrange(symbol.size)] ^= 1 << random.randrange(8)
        stored.elf.write_bytes(changed)
        try:
            return stored.bound()
        except WcetError:
            continue


CHANGES = [other_fact, other_platform, *[other_instruction] * cases(3)]


@pytest.mark.parametrize(("number", "change"), list(enumerate(CHANGES)))
def test_no_change_lets_them_through(
    number: int, change: Callable[[Stored, Random], EntryResult], stored: Stored
) -> None:
    assert change(stored, Random(number)).proved == ()
