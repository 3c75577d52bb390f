"""Competing lines in each set of the first-level caches, and their cycles on a worst path.

Sets and lines come from the graph of the worst start, over all contexts; references without a known
line have no set, and are summed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cache.geometry import CacheGeometry
from cache.reference import Reference, ReferenceKind
from ilp.paths.solution import IlpSolution
from pipeline.charge import due_cycles, entry_cycles
from wcet.analysis.result import AnalysisResult
from wcet.analysis.run import AnalysisRun
from wcet.reports.references import ClassifiedEntry, known_line, on_worst_path

__all__ = ["CacheUse", "MemoryUse", "memory_uses"]

LEVELS = (
    ("L1 instruction cache", (ReferenceKind.FETCH, ReferenceKind.PREFETCH)),
    ("L1 data cache", (ReferenceKind.LOAD, ReferenceKind.STORE)),
)


@dataclass(frozen=True, slots=True)
class LineUse:
    """A line: executions of references to it on the worst path, and cycles charged for them."""

    address: int
    executions: int
    cycles: int


@dataclass(frozen=True, slots=True)
class CacheUse:
    """A cache; ``unknown``: the sum of the references without a line.

    ``sets``: the sets that the known bits of the index distinguish; the cache has ``all_sets``.
    """

    name: str
    line_bytes: int
    ways: int
    all_sets: int
    sets: tuple[tuple[LineUse, ...], ...]
    unknown: LineUse

    def with_unknown(self, cycles: int) -> CacheUse:
        """The same with more cycles out of lines."""
        return replace(self, unknown=replace(self.unknown, cycles=self.unknown.cycles + cycles))

    def document(self) -> dict[str, Any]:
        """The cache as JSON values: a line is its address, executions and cycles."""
        return {
            "name": self.name,
            "line_bytes": self.line_bytes,
            "ways": self.ways,
            "all_sets": self.all_sets,
            "sets": [[[u.address, u.executions, u.cycles] for u in uses] for uses in self.sets],
            "unknown": [self.unknown.executions, self.unknown.cycles],
        }


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """An entry: its caches, and per node the charges of its own references on the worst path.

    ``waits``: charges by position in the block, without charges on edges, for lines fetched past a
    transfer of control and for first misses of loops.
    """

    caches: tuple[CacheUse, ...]
    waits: Mapping[int, Mapping[int, int]]


def memory_uses(run: AnalysisRun, result: AnalysisResult) -> dict[str, MemoryUse]:
    """The memory use of each entry that has counts."""
    found: dict[str, MemoryUse] = {}
    for name, entry in result.entries.items():
        if not entry.solution.nodes:
            continue
        hierarchy = run.platform.hierarchy
        classes = on_worst_path(run, name, entry)
        charged = list(charged_references(classes, entry.solution))
        sides = (hierarchy.l1i, hierarchy.l1d)
        code, data = (
            cache_use(title, [c for c in charged if c[0].kind in kinds], side)
            for (title, kinds), side in zip(LEVELS, sides, strict=True)
        )
        data = data.with_unknown(classes.dropped.remaining)
        found[name] = MemoryUse((code, data), waits_of(classes, entry.solution))
    return found


def waits_of(classes: ClassifiedEntry, solution: IlpSolution) -> dict[int, dict[int, int]]:
    """``MemoryUse.waits`` of an entry."""
    found: dict[int, dict[int, int]] = {}
    for node, count in enumerate(solution.nodes):
        for reference in classes.classes.references[node] if count else ():
            cycles = count * classes.due(node, reference)
            if cycles:
                of_node = found.setdefault(node, {})
                of_node[reference.insn] = of_node.get(reference.insn, 0) + cycles
    return found


def charged_references(
    classes: ClassifiedEntry, solution: IlpSolution
) -> Iterator[tuple[Reference, int, int]]:
    """Every reference of the graph, its executions on the path, and cycles charged for all of them.

    As in ``pipeline.charge``, a reference is charged at its node or edge; first misses where their
    loop is entered, or the path starts in it; lines fetched past the end of a path at its last
    node.
    """
    found, memory = classes.classes, classes.memory
    due = partial(due_cycles, memory=memory)
    entered = partial(entry_cycles, memory=memory)
    for node, references in enumerate(found.references):
        yield from _times(references, solution.nodes[node], partial(classes.due, node))
    for node, references in found.leaving.items():
        yield from _times(references, solution.nodes[node], due)
    for edge, count in enumerate(solution.edges):
        yield from _times(found.prefetches[edge], count, due)
        for reference, _, cycles in _times(found.first_misses[edge], count, entered):
            yield reference, 0, cycles  # its node has the executions
    for reference in found.start_misses:
        yield reference, 0, entered(reference)


def _times(
    references: Sequence[Reference], count: int, cycles: Callable[[Reference], int]
) -> Iterator[tuple[Reference, int, int]]:
    for reference in references:
        yield reference, count, count and count * cycles(reference)


def cache_use(
    name: str, charged: Sequence[tuple[Reference, int, int]], geometry: CacheGeometry
) -> CacheUse:
    """The use of one cache by an entry."""
    lines: dict[int | None, list[int]] = {None: [0, 0]}
    for reference, executions, cycles in charged:
        sums = lines.setdefault(known_line(reference, geometry.line_bytes), [0, 0])
        sums[0] += executions
        sums[1] += cycles
    unknown = LineUse(0, *lines.pop(None))
    by_set: list[list[LineUse]] = [[] for _ in range(geometry.index_sets)]
    for line, sums in sorted((line, sums) for line, sums in lines.items() if line is not None):
        by_set[geometry.index_set_of(line)].append(LineUse(line * geometry.line_bytes, *sums))
    sets = tuple(tuple(uses) for uses in by_set)
    return CacheUse(name, geometry.line_bytes, geometry.ways, geometry.sets, sets, unknown)
