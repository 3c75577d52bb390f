"""Analyses of small programs for proofs of facts."""

from __future__ import annotations

from pathlib import Path

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.proving.entry_basis import EntryBasis

__all__ = ["basis_of", "options_for"]


def options_for(*facts: Path) -> AnalysisOptions:
    """An analysis of ``main`` on the KZM, with short proofs."""
    return AnalysisOptions(
        entries=("main",),
        platform="kzm",
        facts=facts,
        time_limit=20.0,
        bounds=BoundOptions(budget=Budget(seconds=1), workers=0),
    )


def basis_of(elf: Path) -> EntryBasis:
    """The analysis of ``main`` without a fact."""
    run = AnalysisRun.begin(elf, options_for(), SilentStageLog())
    ((name, address),) = run.entries.items()
    return EntryBasis.of(run, name, address, run.facts)
