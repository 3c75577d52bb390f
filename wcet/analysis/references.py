"""The references of an entry with their classes: where the caches hit on its worst path.

An entry that an earlier run has answered has no classes in its result; they are found again here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cache.classify import classify
from cache.reference import Classification, Reference
from pipeline.charge import due_cycles, latencies
from pipeline.timing import MemoryLatencies
from quoll.arm.insn import Insn
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import SegmentValues
from wcet.analysis.preparation import Preparation, rounds_of
from wcet.analysis.result import EntryResult
from wcet.analysis.run import Run

__all__ = ["Classified", "Weighed", "classified", "known_line", "on_worst_path", "weighed"]


@dataclass(frozen=True, slots=True)
class Classified:
    """An entry with its classes, executions per node on the worst path, and latencies."""

    graph: Supergraph
    classes: Classification
    counts: tuple[int, ...]
    memory: MemoryLatencies


def classified(shared: Run, name: str, address: int) -> Classified:
    """The classes of one entry; until its worst path is known every node counts once."""
    valued = Preparation(shared).valued(name, address)
    with shared.stages.stage("cache", name):
        classes = classify(valued.graph, valued.values, shared.platform.hierarchy)
    memory = latencies(valued.graph, shared.platform.hierarchy, shared.platform.timing.memory)
    return Classified(valued.graph, classes, (1,) * len(valued.graph.nodes), memory)


def on_worst_path(shared: Run, name: str, result: EntryResult) -> Classified:
    """The classes of the paths from the start of the worst one, and its counts (rule 21)."""
    valued = Preparation(shared).valued(name, shared.entries[name])
    part = next(
        p
        for p in Preparation(shared).segments(valued.graph, valued.values)
        if p.start == result.starts[0].place and p.graph.nodes == result.graph.nodes
    )
    with shared.stages.stage("cache", name):
        values = SegmentValues(valued.values, part)
        hierarchy = Preparation(shared).hierarchy_of(part)
        classes = classify(part.graph, values, hierarchy).counted(rounds_of(result.bounds))
    counts = result.solution.nodes or (1,) * len(part.graph.nodes)
    memory = latencies(part.graph, hierarchy, shared.platform.timing.memory)
    return Classified(part.graph, classes, tuple(counts), memory)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A reference in one context: executions on the worst path, and cycles charged for all."""

    node: int
    insn: Insn
    reference: Reference
    executions: int
    cycles: int


def weighed(
    graph: Supergraph, classes: Classification, counts: Sequence[int], memory: MemoryLatencies
) -> Iterator[Weighed]:
    """The references of nodes with a count; those past transfers are charged on edges."""
    for node, count in enumerate(counts):
        if not count:
            continue
        insns = graph.nodes[node].block.insns
        for reference in classes.references[node]:
            cycles = due_cycles(reference, memory)
            yield Weighed(node, insns[reference.insn], reference, count, count * cycles)


def known_line(reference: Reference, line_bytes: int) -> int | None:
    """The line of a cached reference of known address."""
    low, high = reference.low, reference.high
    if low is None or high is None or not reference.cacheable:
        return None
    return low // line_bytes if low // line_bytes == high // line_bytes else None
