"""Executions of a program against its refined bound, and against each exclusion."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.recordings.follow import follow
from tests.testing.wcet.infeasible_programs import DEVICE
from tests.testing.wcet.programs import run
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import SilentStageLog
from wcet.refinement.passes import passes_of
from wcet.refinement.refine import RefinedBound, refine

__all__ = ["broken_exclusions", "paths_of", "refined"]


def refined(elf: Path, seconds: float = 60.0) -> RefinedBound:
    """The refined bound of ``main``, without facts."""
    options = AnalysisOptions(
        entries=("main",),
        platform="kzm",
        l2=None,
        facts=(),
        neighbouring_facts=False,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(budget=Budget(seconds=4), workers=1),
    )
    return refine(elf, options, seconds, SilentStageLog())


def paths_of(found: RefinedBound, runs: int, seed: int) -> Iterator[list[int]]:
    """The edges of executions of ``main`` with random arguments and memory.

    Raises AssertionError for one that takes more cycles than the refined bound.
    """
    graph = found.graph
    for number in range(runs):
        random = Random(f"{seed} {number}")
        pcs, _ = run(found.image, found.entry.address, random, changing=(DEVICE, DEVICE + 3))
        steps = [PathStep(v.node, v.edge) for v in follow(graph, found.image, pcs)]
        charged = path_cycles(found.entry.costs, steps)
        assert charged <= found.cycles, (seed, number, charged, found.cycles)
        yield [step.edge for step in steps if step.edge is not None]


def broken_exclusions(found: RefinedBound, path: list[int]) -> list[tuple[int, ...]]:
    """The exclusions that a path violates: a pass takes all of their edges."""
    passes = passes_of(AcyclicGraph.of(found.graph), path)
    return [
        core.edges
        for core in found.cores
        if any(one.loop == core.loop and {*core.edges} <= {*one.edges} for one in passes)
    ]
