"""The shipped kernel at levels of optimisation that it is not shipped with: nothing is unresolved.

``make campaign-extraction ARGS=kernel`` tries all levels, and Clang; see docs/extraction.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.corpora_kernel import build_kernel
from campaigns.extraction import entries_of
from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.harness.cases import spread
from tests.testing.quoll.invariants import verify_program
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import StageLog

OPTIONS = AnalysisOptions(
    entries=("interrupt", "undefined"),
    platform="kzm",
    l2=None,
    facts=(),
    neighbouring_facts=False,
    exits=(),
    solver="highs",
    time_limit=60.0,
    bounds=BoundOptions(budget=Budget(seconds=10), workers=1),
)


@pytest.mark.slow("builds and analyses the kernel at another level")
@pytest.mark.parametrize("level", spread(["Os", "O0"], 1))
def test_everything_is_resolved_and_bounded(level: str, tmp_path: Path) -> None:
    """No fact is given; the system call takes too long for a test."""
    elf = build_kernel(tmp_path, "gcc", level)
    image = Image.load(elf)
    program = extract(image, entries_of(image))
    verify_program(program)
    calls, waits = program.unresolved
    assert "<idle_loop+" in calls.where
    assert "<idle_loop+" in waits.where
    assert "waits for an interrupt" in waits.reason
    assert len(program.functions) > 80
    assert len([table for table in program.jump_tables if len(table.targets) > 1]) > 4
    entries = analyse(elf, OPTIONS, StageLog(verbose=False)).entries
    assert entries["undefined"].cycles > entries["interrupt"].cycles > 10_000
    assert entries["undefined"].bounds
    assert all(bound.method == "nusmv" for e in entries.values() for bound in e.bounds)
