"""A small program, linked into the kernel window, bounded under a text of facts."""

from __future__ import annotations

from pathlib import Path

from loopbounds.proof.options import BoundOptions
from quoll.results.results_store import NOWHERE, ResultsStore
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog

__all__ = ["AT", "bounded"]

AT = "-Wl,-Ttext=0xf0010000"


def bounded(
    elf: Path,
    folder: Path,
    facts: str,
    *entries: str,
    platform: str = "cubieboard",
    store: ResultsStore = NOWHERE,
) -> AnalysisResult:
    """The entries of ``elf`` under ``facts``. Raises WcetError as ``wcet analyse`` does."""
    file = folder / "test.facts"
    file.write_text(facts)
    options = AnalysisOptions(
        entries=entries,
        platform=platform,
        l2=None,
        facts=(file,),
        neighbouring_facts=False,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(workers=1),
        store=store,
    )
    return analyse(elf, options, StageLog(verbose=False))
