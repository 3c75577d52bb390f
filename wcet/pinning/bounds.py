"""The bounds of entries for pinned lines, each from the same values and loop bounds.

Only the stages from the caches on depend on pinned lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cache.geometry import CacheHierarchy
from cache.reference import CacheClassification, Reference, ReferenceKind
from pipeline.charge import access_cycles, latencies
from pipeline.timing_model import MemoryLatencies
from quoll.assumptions import Assumption
from quoll.errors import UsageError
from quoll.preemption.segments import PendingSegment
from wcet.analysis.entry_stages import (
    AnalysisTarget,
    BoundedLoops,
    ValuedCode,
    block_timer,
    bounded,
    charged,
    classified,
    divided,
    hierarchy_of,
    iterations,
    of_segment,
    timed,
)
from wcet.analysis.integer_programs import paths_result
from wcet.analysis.preparation import ValuedEntry, assumed_by, valued
from wcet.analysis.prepared import PreparedPaths
from wcet.analysis.result import EntryResult
from wcet.analysis.run import AnalysisRun
from wcet.pinning.pins import NO_PINS, PinnedCache, PinnedLine, Pins, geometry_of, locked
from wcet.reports.references import known_line

__all__ = ["EntryWithPins", "PinnedBounds", "PinnedEntry"]

CACHES = {
    ReferenceKind.FETCH: PinnedCache.INSTRUCTIONS,
    ReferenceKind.PREFETCH: PinnedCache.INSTRUCTIONS,
    ReferenceKind.LOAD: PinnedCache.DATA,
    ReferenceKind.STORE: PinnedCache.DATA,
}


@dataclass(frozen=True, slots=True)
class PinnedEntry:
    """An entry before the caches."""

    name: str
    address: int
    valued: ValuedEntry
    parts: tuple[PendingSegment, ...]
    loops: BoundedLoops
    lines: Pins  # that it may access, as far as addresses are known

    @staticmethod
    def of(run: AnalysisRun, name: str, address: int) -> PinnedEntry:
        """The stages up to loop bounds. Raises UsageError for an entry with summaries."""
        entry = valued(AnalysisTarget(run, name, address))
        if entry.summaries:
            raise UsageError(
                f"{name} has functions that are analysed once for all calls, whose cycles do not "
                "follow pinned lines",
                hint="use --share never",
            )
        parts = tuple(divided(entry))
        with run.stages.stage("loop bounds", name):
            loops = bounded(entry, parts)
        lines = frozenset(line for part in parts for line in _accessed(entry, part))
        return PinnedEntry(name, address, entry, parts, loops, lines)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of values and loop bounds."""
        return assumed_by(self.valued, self.parts, self.loops)


@dataclass(frozen=True, slots=True)
class EntryWithPins:
    """The bound of an entry for some pins.

    ``misses``: by line, its cycles on the worst path. ``order``: the lines of the worst path in
    the order in which it touches them first.
    """

    result: EntryResult
    misses: Mapping[PinnedLine, int]
    order: tuple[PinnedLine, ...]

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of classes, costs and counts."""
        return (*self.result.costs.assumptions, *self.result.assumptions)


@dataclass(frozen=True, slots=True)
class PinnedBounds:
    """All entries; ``ways``: the locked ways of each cache that holds pinned lines."""

    run: AnalysisRun
    entries: tuple[PinnedEntry, ...]
    ways: int

    @property
    def accessed(self) -> frozenset[PinnedLine]:
        """All lines that the entries may access, as far as addresses are known."""
        return frozenset(line for entry in self.entries for line in entry.lines)

    def solved(
        self, pins: Pins, before: Pins = NO_PINS, known: Sequence[EntryWithPins] = ()
    ) -> tuple[EntryWithPins, ...]:
        """The bounds with ``pins``; ``known``: the bounds with ``before``. Raises UnboundedLoop.

        An entry that accesses none of the lines in which the pins differ has the same bound, if the
        same caches have locked ways.
        """
        platform = self.run.platform
        hierarchy = locked(platform.hierarchy, pins, self.ways)
        run = replace(self.run, platform=replace(platform, hierarchy=hierarchy))
        changed = pins ^ before
        same_ways = {line.cache for line in pins} == {line.cache for line in before}
        return tuple(
            known[at] if known and same_ways and not changed & entry.lines else _solved(run, entry)
            for at, entry in enumerate(self.entries)
        )


def _accessed(entry: ValuedEntry, part: PendingSegment) -> Iterator[PinnedLine]:
    """Lines that references may be to, unless these are more lines than a cache has."""
    classes, hierarchy = classified(entry, part), hierarchy_of(entry, part)
    for references in (*classes.references, *classes.prefetches, *classes.leaving.values()):
        for reference in references:
            cache = CACHES.get(reference.kind)
            if cache is None or reference.low is None or reference.high is None:
                continue
            geometry = geometry_of(hierarchy, cache.value)
            numbers = geometry.lines(reference.low, reference.high - reference.low + 1)
            if len(numbers) <= geometry.sets * geometry.ways:
                yield from (PinnedLine(cache.value, number) for number in numbers)


def _solved(run: AnalysisRun, entry: PinnedEntry) -> EntryWithPins:
    """The worst start of paths decides; equal ones count as the first of them."""
    known = entry.valued.code
    own = replace(run, image=known.run.image)
    code = ValuedCode(replace(known, run=own), entry.valued.graph, entry.valued.values)
    timer, worst = block_timer(own), None
    for part in entry.parts:
        before = timed(code, part, timer, data=False)
        bounds = of_segment(part, entry.loops.bounds)
        costs = charged(code, part, before, iterations(bounds), entry.loops.execution)
        loops = entry.loops
        paths = PreparedPaths(
            part.start, part.graph, costs.costs, bounds, loops.execution, loops.prefix
        )
        whole = len(entry.parts) == 1 and part.start is None
        result = paths_result(own, entry.name, entry.address, paths, whole=whole)
        if worst is None or result.cycles > worst[0].cycles:
            worst = result, part, costs.classes
    assert worst is not None
    result, part, classes = worst
    hierarchy = hierarchy_of(code, part)
    memory = latencies(part.graph, hierarchy, own.platform.timing.memory)
    misses = _misses(result, classes, hierarchy, memory)
    return EntryWithPins(result, misses, _order(result, classes, hierarchy))


def _misses(
    result: EntryResult,
    classes: CacheClassification,
    hierarchy: CacheHierarchy,
    memory: MemoryLatencies,
) -> dict[PinnedLine, int]:
    """Cycles by line; a line that misses once per entry of a loop counts where that is entered."""
    found: Counter[PinnedLine] = Counter()
    of_nodes = zip(classes.references, result.solution.nodes, strict=True)
    of_edges = zip(classes.prefetches, result.solution.edges, strict=True)
    of_loops = zip(classes.first_misses, result.solution.edges, strict=True)
    due = [(own, count) for own, count in (*of_nodes, *of_edges) if count]
    charges = [(own, count) for own, count in of_loops if count]
    for references, at_entry in ((due, False), (charges, True)):
        for own, count in references:
            for reference in own:
                line = _line(reference, hierarchy)
                if line is not None and (at_entry or reference.due):
                    found[line] += count * access_cycles(reference, memory)
    return found


def _order(
    result: EntryResult, classes: CacheClassification, hierarchy: CacheHierarchy
) -> tuple[PinnedLine, ...]:
    found: dict[PinnedLine, None] = {}
    for step in result.path.steps:
        for reference in classes.references[step.node]:
            line = _line(reference, hierarchy)
            if line is not None:
                found.setdefault(line)
    return tuple(found)


def _line(reference: Reference, hierarchy: CacheHierarchy) -> PinnedLine | None:
    """The one line of a reference to cached memory."""
    cache = CACHES.get(reference.kind)
    if cache is None:
        return None
    number = known_line(reference, geometry_of(hierarchy, cache.value).line_bytes)
    return None if number is None else PinnedLine(cache.value, number)
