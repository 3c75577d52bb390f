"""The references of an entry with their classes, on its worst path.

The result of a cached entry has no classes; they are computed again here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cache.reference import CacheClassification, Reference
from pipeline.charge import due_cycles, latencies
from pipeline.costs import CostCause
from pipeline.timing_model import MemoryLatencies
from pipeline.write_backs import victim_cycles
from quoll.arm.insn import Insn
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import PendingSegment, undivided
from wcet.analysis.entry_stages import (
    AnalysisTarget,
    ValuedCode,
    classified,
    divided,
    hierarchy_of,
    iterations,
    with_bounds,
)
from wcet.analysis.preparation import valued
from wcet.analysis.result import EntryResult
from wcet.analysis.run import AnalysisRun

__all__ = [
    "ClassifiedEntry",
    "WeighedReference",
    "known_line",
    "on_all_paths",
    "on_worst_path",
    "weighed",
]


@dataclass(frozen=True, slots=True)
class DroppedVictims:
    """The nodes whose loads are charged no victims on the path, because few lines are dirty.

    ``remaining``: cycles of victims that are charged at the start of the path instead.
    """

    nodes: frozenset[int]
    remaining: int


NO_VICTIMS_DROPPED = DroppedVictims(frozenset(), 0)


@dataclass(frozen=True, slots=True)
class ClassifiedEntry:
    """An entry with its classes, executions per node on the worst path, and latencies."""

    graph: Supergraph
    classes: CacheClassification
    counts: tuple[int, ...]
    memory: MemoryLatencies
    dropped: DroppedVictims = NO_VICTIMS_DROPPED

    def due(self, node: int, reference: Reference) -> int:
        """The cycles that the path is charged for a reference in one execution of ``node``."""
        gone = node in self.dropped.nodes
        victim = victim_cycles(reference, self.memory, due_cycles) if gone else 0
        return due_cycles(reference, self.memory) - victim


def on_all_paths(run: AnalysisRun, name: str, address: int) -> ClassifiedEntry:
    """The classes of one entry; without a worst path every node counts once."""
    entry = valued(AnalysisTarget(run, name, address))
    with entry.code.stage("cache"):
        return _classified(entry, undivided(entry.graph))


def on_worst_path(run: AnalysisRun, name: str, result: EntryResult) -> ClassifiedEntry:
    """The classes of the paths from the worst start, and the worst path's counts (rule 21)."""
    entry = valued(AnalysisTarget(run, name, run.entries[name]), preemptible=True)
    segment = next(
        p
        for p in divided(entry)
        if p.start == result.starts[0].place and p.graph.nodes == result.graph.nodes
    )
    with entry.code.stage("cache"):
        found = _classified(entry, segment)
    counts = result.solution.nodes or found.counts
    execution = next((p.execution for p in result.paths if p.start == segment.start), None)
    rounds = iterations(result.bounds)
    classes = with_bounds(entry, segment, found.classes, rounds, execution)
    return replace(found, classes=classes, counts=tuple(counts), dropped=dropped_victims(result))


def dropped_victims(entry: EntryResult) -> DroppedVictims:
    """The victims that the charge of the worst path leaves out (``pipeline.write_backs``)."""
    costs, solution, cause = entry.costs, entry.solution, CostCause.LOAD_MISS
    path = costs.on_path(solution.nodes, solution.edges, solution.calls)
    both = enumerate(zip(costs.nodes, path.nodes, strict=True))
    nodes = frozenset(node for node, (all_, less) in both if all_[cause] != less[cause])
    return DroppedVictims(nodes, path.start[cause] - costs.start[cause])


def _classified(valued: ValuedCode, part: PendingSegment) -> ClassifiedEntry:
    """The references of a segment, each node once."""
    hierarchy, timing = hierarchy_of(valued, part), valued.code.run.platform.timing
    memory = latencies(part.graph, hierarchy, timing.memory)
    return ClassifiedEntry(
        part.graph, classified(valued, part), (1,) * len(part.graph.nodes), memory
    )


@dataclass(frozen=True, slots=True)
class WeighedReference:
    """A reference in one context: executions on the worst path, and cycles charged for all."""

    node: int
    insn: Insn
    reference: Reference
    executions: int
    cycles: int


def weighed(entry: ClassifiedEntry) -> Iterator[WeighedReference]:
    """The references of executed nodes, without those past transfers, which edges charge."""
    for node, count in enumerate(entry.counts):
        if not count:
            continue
        insns = entry.graph.nodes[node].block.insns
        for reference in entry.classes.references[node]:
            cycles = entry.due(node, reference)
            yield WeighedReference(node, insns[reference.insn], reference, count, count * cycles)


def known_line(reference: Reference, line_bytes: int) -> int | None:
    """The line of a cached reference of known address."""
    low, high = reference.low, reference.high
    if low is None or high is None or not reference.cacheable:
        return None
    return low // line_bytes if low // line_bytes == high // line_bytes else None
