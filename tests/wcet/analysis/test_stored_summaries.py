"""Stored results of entries whose costs contain the bounds of summaries (rules 30 and 31)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.testing.quoll.building import build
from wcet.analysis.integer_programs import paths_result
from wcet.analysis.result import EntryResult
from wcet.cli import main

pytestmark = pytest.mark.slow("several whole analyses")

CODE = "-Wl,-Ttext=0xf0010000"
SOURCE = """\
volatile unsigned *volatile word;
__attribute__((noinline)) void one(void) { *word; *word; *word; LOADS }
__attribute__((noinline)) void two(void) { *word; *word; *word; *word; *word; }
__attribute__((noinline)) void leaf(unsigned a) { if (a & 1) one(); if (a & 2) two(); *word; }
__attribute__((noinline)) void drain(void) {
    while (*word)
        *word;
}
__attribute__((noinline)) void middle(unsigned a) { leaf(a); leaf(a + *word); drain(); *word; }
unsigned main(unsigned a) { middle(a); middle(a + 1); middle(a + *word); return a; }
"""
LOOP = "loop prog.c:6 at most 5\n"


class Runs:
    """Runs on one program with one cache, where functions have summaries."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.facts, self.elf = folder, folder / "my.facts", folder / "prog.elf"
        self.facts.write_text(LOOP)
        self.build("")

    def build(self, loads: str) -> None:
        """The program again, with more code in a function that others call."""
        shutil.copy(build(SOURCE.replace("LOADS", loads), "-fno-inline", link=(CODE,)), self.elf)

    def __call__(self, *more: str, store: bool = True) -> dict[str, Any]:
        """The JSON of a run without the times, and whether it was ``recalled``."""
        out = self.folder / "out.json"
        arguments = ["analyse", str(self.elf), "--platform", "kzm", "--quiet", "--entry", "main"]
        arguments += ["--share", "always", "--facts", str(self.facts), "--json", str(out)]
        kept = ["--cache", str(self.folder / "cache")] if store else ["--no-cache"]
        assert main([*arguments, *kept, *more]) == 0
        document: dict[str, Any] = json.loads(out.read_text())
        for loop in document["entries"]["main"]["loops"]:
            loop.pop("seconds", None)
        return document | {"recalled": "extract" not in document.pop("stages")}

    def as_new(self, *more: str) -> dict[str, Any]:
        """A run that has to compute everything, with the result of a run without stored results."""
        found = self(*more)
        assert not found["recalled"]
        assert found == self(*more, store=False)
        return found


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def cycles(document: dict[str, Any]) -> int:
    found: int = document["entries"]["main"]["cycles"]
    return found


def test_a_second_run_recalls_the_summaries(runs: Runs) -> None:
    first, second = runs(), runs()
    assert first["entries"]["main"]["shared_functions"]
    assert (first.pop("recalled"), second.pop("recalled")) == (False, True)
    assert first == second


def test_a_constraint_inside_a_summary_makes_another_record(runs: Runs) -> None:
    """Only integer programs read it, but the costs of the entry contain such a solution."""
    before = cycles(runs())
    for text in ("one conflicts with two in leaf", "one executes at most 1 times"):
        runs.facts.write_text(f"{LOOP}{text}\n")
        after = runs.as_new()
        assert cycles(after) < before
        assert runs() == after | {"recalled": True}
    runs.facts.write_text(LOOP)
    assert cycles(runs()) == before


def test_a_loop_fact_inside_a_summary_makes_another_record(runs: Runs) -> None:
    before = cycles(runs())
    runs.facts.write_text(LOOP.replace("5", "6"))
    assert cycles(runs.as_new()) > before


def test_lines_of_facts_make_another_record(runs: Runs) -> None:
    """Bounds by counts name the facts by their lines."""
    limit = "one executes at most 1 times\n"
    runs.facts.write_text(LOOP + limit)
    before = runs()
    runs.facts.write_text(f"# one line more\n{LOOP}{limit}")
    after = runs.as_new()
    assert cycles(after) == cycles(before)
    assert any("my.facts:3" in text for text in after["assumptions"])


def test_a_parameter_inside_a_summary_makes_another_record(runs: Runs) -> None:
    runs.facts.write_text(LOOP.replace("5", "n"))
    few = runs.as_new("--set", "n=3")
    many = runs.as_new("--set", "n=30")
    assert cycles(few) < cycles(many)
    assert runs("--set", "n=3") == few | {"recalled": True}


def test_an_edited_callee_of_a_summary_makes_another_record(runs: Runs) -> None:
    before = cycles(runs())
    runs.build("*word; *word;")
    assert cycles(runs.as_new()) > before


def test_another_platform_makes_another_record(runs: Runs) -> None:
    before = cycles(runs())
    after = runs("--platform", "kzm-paper")
    assert not after["recalled"]
    assert cycles(after) != before


def test_a_summary_that_the_clock_cut_off_is_not_stored(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_to_the_end(*given: Any, **more: Any) -> EntryResult:
        found = paths_result(*given, **more)
        cut = replace(found.solution, cycles=found.solution.cycles + 10, optimal=False)
        return replace(found, solution=cut)

    with monkeypatch.context() as patch:
        patch.setattr("wcet.analysis.summaries.paths_result", not_to_the_end)
        assert not runs()["recalled"]
    assert not runs()["recalled"]
    assert runs()["recalled"]
