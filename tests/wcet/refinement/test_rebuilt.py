"""Exclusions of an earlier build: used in a rebuilt program if they are proved again there."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quoll.results.results_store import NOWHERE, ResultsStore
from tests.testing.quoll.building import build
from tests.testing.wcet.refined_runs import options
from wcet.analysis.analysis import analyse
from wcet.analysis.stage_times import SilentStageLog
from wcet.refinement import carry_over as stage
from wcet.refinement.carry_over import carry_over
from wcet.refinement.refine import RefinedBound, refine

pytestmark = pytest.mark.slow("refines programs several times")
SOURCE = """
static volatile unsigned log;
volatile unsigned kind, other;
__attribute__((noinline)) void unrelated(void) {{ {unrelated} }}
__attribute__((noinline)) void work(void) {{ log = 1; log = 2; log = 3; log = 4; }}
__attribute__((noinline)) void more(void) {{ log = 5; log = 6; log = 7; log = 8; }}
unsigned main(unsigned a, unsigned b) {{
    unsigned n = 0;
    if (kind == 1) {{ work(); n++; }}
    if (a > b) n += 2;
    {stored} = b;
    if (kind != 1) {{ more(); n += 3; }}
    if (b == 3) work();
    n += log;
    if (b != 3) more();
    return n;
}}
"""
LONGER = "log = 1; log = 2; log = 3; log = 4; log = 5; log = 6; log = 7;"


class Rebuilt:
    """A program in a folder, with a store."""

    def __init__(self, folder: Path) -> None:
        self.elf = folder / "prog.elf"
        self.asked = options(store=ResultsStore(folder / "store"))

    def make(self, unrelated: str = "log = 1;", stored: str = "other") -> None:
        """Build another version at the same place; functions before it move the others."""
        source = SOURCE.format(unrelated=unrelated, stored=stored)
        link = ("-Wl,-Ttext=0xf0010000", "-Wl,-Tdata=0xf0040000")
        shutil.copy(build(source, optimise="-O1", link=link), self.elf)

    def analysed(self) -> int:
        """The bound of the analysis that the command makes."""
        carry_over(self.elf, self.asked, SilentStageLog())
        return analyse(self.elf, self.asked, SilentStageLog()).entries["main"].cycles

    def refined(self, *, stored: bool = True) -> RefinedBound:
        asked = self.asked if stored else replace(self.asked, store=NOWHERE)
        return refine(self.elf, asked, 60.0, SilentStageLog())


def test_they_are_proved_again_in_each_build(tmp_path: Path) -> None:
    program = Rebuilt(tmp_path)
    program.make()
    first = program.refined()
    assert first.cycles < first.entry.cycles
    program.make(unrelated=LONGER)
    fresh = program.refined(stored=False)
    assert fresh.image.symbol("main") != first.image.symbol("main")
    assert program.analysed() == fresh.cycles
    again = program.refined()
    assert again.cycles == fresh.cycles < again.entry.cycles
    assert again.rounds[0].stored
    assert {core.key for core in again.cores} == {core.key for core in fresh.cores}
    assert len(again.cores) == len(first.cores)
    assert {*again.assumptions} == {*fresh.assumptions}
    program.make(stored="kind")
    changed, fresh = program.refined(), program.refined(stored=False)
    assert changed.cycles == fresh.cycles
    assert {core.key for core in changed.cores} == {core.key for core in fresh.cores}
    assert len(changed.cores) < len(first.cores)
    assert changed.image.symbol("main") == first.image.symbol("main")
    program.make(unrelated="log = 1; log = 2;")
    assert program.analysed() == program.refined(stored=False).cycles


def test_proofs_for_another_build_have_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Rebuilt(tmp_path)
    program.make()
    first = program.refined()
    program.make(unrelated=LONGER)
    monkeypatch.setattr(stage, "SECONDS", -1.0)
    assert program.analysed() == program.refined(stored=False).entry.cycles > first.cycles
