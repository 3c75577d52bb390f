"""The contradictions in a worst path, and the rows that follow for the paths from each start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ilp.constraints.exclusion import (
    EdgeDistance,
    EdgeExclusion,
    EdgeLimit,
    LengthSum,
    LoopCount,
    ProvedRow,
)
from ilp.constraints.proved_exclusions import CoreKey, InfeasibleCore
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.terms.bit_vectors import TRUE, Term
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.edge_copies import EdgeCopies
from quoll.preemption.segments import PendingSegment
from quoll.processes.processor_time import own
from wcet.refinement.limited_edges import most_per_entry
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.passes import Pass, passes_of
from wcet.refinement.shared_lengths import shared_lengths
from wcet.refinement.unsatisfiable_core import Over, contradictory, cores

__all__ = ["SearchTime", "SegmentEdges", "cores_of_path", "proved_distance", "rare_edges"]

SEARCHED = 10.0  # seconds of processor time: at least so long conditions are searched
FARTHEST = 8  # iterations between executions of an edge: each more is a larger formula


@dataclass(slots=True)
class SearchTime:
    """The time of a search, until the processor time ``end``; a call tells whether it is over."""

    end: float

    def __call__(self) -> bool:
        return own() > self.end

    def extend(self) -> None:
        """Begin to search in conditions, which may have taken all of the time."""
        self.end = max(self.end, own() + SEARCHED)


def cores_of_path(
    conditions: PassConditions, path: Sequence[int], over: SearchTime
) -> Iterator[InfeasibleCore]:
    """The cores in the passes of a path, given as edges of the whole graph, until ``over``.

    Conditions that took all of the time are still searched for a while. The condition that a loop
    iterates as often as in the pass has the key -1 - loop.
    """
    passes = list(dict.fromkeys(passes_of(conditions.code.acyclic, path)))
    found = conditions.taken(passes)
    over.extend()
    for one, taken in zip(passes, found, strict=True):
        if over():
            return
        repeats = conditions.repeated(one.loop, one.counts)
        known = {**{-1 - loop: condition for loop, condition in repeats.items()}, **taken}
        yield from shared_lengths(conditions, one)
        for keys in cores(known, partial(conditions.ranges, one.loop), over):
            yield core_of_pass(conditions, one, keys, known)


def core_of_pass(
    conditions: PassConditions, one: Pass, keys: Sequence[int], known: Mapping[int, Term]
) -> InfeasibleCore:
    """A core of a pass, with the least number of executions of each loop that is in it."""
    left = {key: known[key] for key in keys}
    about = conditions.common_words(one.loop, list(left.values()))
    counts = {-1 - key: dict(one.counts)[-1 - key] for key in keys if key < 0}
    for loop in counts:
        while counts[loop] > 1:
            fewer = conditions.repeated(one.loop, [(loop, counts[loop] - 1)])[loop]
            others = [condition for key, condition in left.items() if key != -1 - loop]
            if not contradictory([*others, fewer], partial(conditions.ranges, one.loop)):
                break
            counts[loop] -= 1
            left[-1 - loop] = fewer
    edges = tuple(key for key in keys if key >= 0)
    return InfeasibleCore(one.loop, edges, about, counts=tuple(counts.items()))


def rare_edges(
    conditions: PassConditions, path: Sequence[int], known: Container[CoreKey], over: Over
) -> Iterator[InfeasibleCore]:
    """The decisions of iterations on a path, except ``known`` ones, that are proved to be rare.

    Each entry of the loop takes them so many times, or iterations that take them are apart. The
    search ends when its time is ``over``.
    """
    for loop, edges in repeated(conditions, passes_of(conditions.code.acyclic, path)).items():
        [taken] = conditions.taken([Pass(loop, tuple(edges))])
        for edge, condition in taken.items():
            if over():
                return
            if condition is TRUE:
                continue
            about = conditions.common_words(loop, [condition])
            for found in rarity(conditions, loop, edge, known):
                yield replace(found, about=about)


def rarity(
    conditions: PassConditions, loop: int, edge: int, known: Container[CoreKey]
) -> Iterator[InfeasibleCore]:
    """The limits of an edge in iterations of a loop, except ``known`` ones.

    A limit that the loop's bound implies, as for its back edge, is none.
    """
    limit = InfeasibleCore(loop, (edge,), (), most=1)
    most = None if limit.key in known else most_per_entry(conditions, loop, edge)
    if most is not None and most < conditions.code.bounds.get(loop, most + 2) - 1:
        yield replace(limit, most=most)
    apart = InfeasibleCore(loop, (edge,), (), FARTHEST)
    distance = 1 if apart.key in known else proved_distance(conditions, loop, edge)
    if distance > 1:
        yield replace(apart, distance=distance)


def repeated(conditions: PassConditions, passes: Sequence[Pass]) -> dict[int, dict[int, None]]:
    """By loop, the decisions that several of its iterations take, and that do not leave it."""
    graph = conditions.code.graph
    times = Counter((one.loop, edge) for one in passes for edge in one.edges)
    found: dict[int, dict[int, None]] = {}
    for (loop, edge), count in times.items():
        if loop is None or count < 2 or graph.edges[edge].dst not in graph.loops[loop].nodes:
            continue
        if len(graph.successors[graph.edges[edge].src]) > 1:
            found.setdefault(loop, {})[edge] = None
    return found


def proved_distance(conditions: PassConditions, loop: int, edge: int) -> int:
    """The most consecutive iterations of which at most one takes ``edge``, as far as is proved."""
    for later in range(1, FARTHEST):
        if not contradictory(conditions.again(loop, edge, later), lambda known: ()):
            return later
    return FARTHEST


def decisive(acyclic: AcyclicGraph, core: InfeasibleCore) -> int:
    """The last node that each iteration of a core's loop executes, once, before all of the core."""
    graph = acyclic.graph
    sources = [graph.edges[edge].src for edge in core.edges]
    headers = [graph.loops[loop].header for loop, _ in core.counts]
    node = acyclic.common_dominator([*sources, *headers])
    while acyclic.innermost[node] != core.loop:
        node = acyclic.dominator[node]
    return node


class SegmentEdges:
    """The edges of the paths from one start, and of the whole graph, as each other."""

    def __init__(self, segment: PendingSegment, whole: Supergraph) -> None:
        self._segment, self._whole = segment, whole
        self._copies = EdgeCopies(segment, whole)

    def path(self, edges: Sequence[int]) -> list[int]:
        """A path as edges of the whole graph, without those that cannot be told apart."""
        return self._copies.originals(edges)

    def row(self, core: InfeasibleCore, acyclic: AcyclicGraph) -> ProvedRow | None:
        """A core as rows for these paths; None if they lack one of its edges.

        A path from the start is part of an execution of the whole graph. So it takes no edges
        together that no execution does; if it starts in the loop, it begins in one more iteration.
        Only passes count that execute a node on all ways to the edges.
        """
        if core.most and core.counts:
            return self._sum(core)
        decisions = tuple(map(self._copies.of, core.edges))
        if not all(decisions):
            return None
        counts = [self._count(loop, least) for loop, least in core.counts]
        known = tuple(count for count in counts if count is not None)
        if len(known) < len(counts):
            return None
        if core.loop is None:
            return EdgeExclusion(decisions, frozenset(), 1, known)
        loop = self._whole.loops[core.loop]
        into, entries = self._copies.entering(loop)
        first = int(self._copies.begins_in(loop))
        if core.most:
            return EdgeLimit(decisions[0], core.most, frozenset(entries), first)
        if core.distance == 1:
            passes = self._copies.into(decisive(acyclic, core))
            return EdgeExclusion(decisions, frozenset(passes), first, known)
        copies = tuple(n for n, old in enumerate(self._segment.loops) if old == core.loop)
        return EdgeDistance(
            decisions[0], core.distance, frozenset(into), frozenset(entries), first, copies
        )

    def _sum(self, core: InfeasibleCore) -> LengthSum | None:
        """The row of loops that repeat together; None if the paths start in one of them."""
        one, other = (self._count(loop, 2) for loop, _ in core.counts)
        if one is None or other is None:
            return None
        known = one, other
        if core.loop is None:
            return LengthSum(known, core.most, frozenset(), 1)
        loop = self._whole.loops[core.loop]
        first = int(self._copies.begins_in(loop))
        return LengthSum(known, core.most, frozenset(self._copies.into(loop.header)), first)

    def _count(self, number: int, least: int) -> LoopCount | None:
        """The count of a loop of the whole graph.

        None if the paths start in it, or if it is not one loop of theirs.
        """
        loop = self._whole.loops[number]
        copies = [n for n, old in enumerate(self._segment.loops) if old == number]
        if len(copies) != 1 or self._copies.begins_in(loop):
            return None
        into, entries = self._copies.entering(loop)
        return LoopCount(copies[0], least, frozenset(into), frozenset(entries))
