"""Exclusions of an earlier build of a kernel, proved again before an analysis of another build.

Analyses read exclusions by the content of the kernel (``ilp.constraints.proved_exclusions``). After
a rebuild none has this key. Those of the build that was refined last are placed by names and proved
in the new build; the ones with a proof are stored under its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ilp.constraints.proved_exclusions import NOTHING_PROVED, ProvedExclusions, exclusions_key
from quoll.errors import UnboundedLoop
from quoll.processes.processor_time import own
from wcet.analysis.analysis import cached_or_valued
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.integer_programs import constraints_of, start_programs
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.refinement.core_names import CoreName, named_cores

__all__ = ["carry_over"]

SECONDS = 60.0  # of processor time, for the proofs of one entry


def carry_over(kernel: Path, options: AnalysisOptions, stages: StageLog) -> None:
    """Store the exclusions of an earlier build that are proved again, for each requested entry.

    Raises as ``wcet.analysis.analysis.analyse`` does.
    """
    named = named_cores(options.store, kernel)
    if not named:
        return
    run = AnalysisRun.begin(kernel, options, stages)
    for name, address in run.entries.items():
        if named.get(name):
            _carry_over(run, name, address, named[name])


def _carry_over(run: AnalysisRun, name: str, address: int, names: Sequence[CoreName]) -> None:
    """Store the exclusions of one entry, also if there are none, unless some are stored."""
    try:
        prepared, entry = cached_or_valued(run, name, address)
        graphs = (paths.graph for paths in prepared.paths)
        key = exclusions_key(run.store.identity(name, address), graphs)
        if run.options.store.load(key, ProvedExclusions) is not None:
            return
        limits = constraints_of(run, name, prepared)
        programs = start_programs(run, name, address, prepared, limits)
    except UnboundedLoop:  # the analysis reports it
        return
    if any(one.answer.parametric for one in programs):
        return
    from wcet.refinement.rounds import RefinementRounds  # it loads the SMT solver

    with run.stages.stage("refine", name):
        rounds = RefinementRounds.begin(run, name, address, programs, NOTHING_PROVED, entry)
        rounds.carried_over(names, own() + SECONDS)
        run.options.store.save(key, rounds.proved())
