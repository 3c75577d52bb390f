"""The contradictions in a worst path, and the rows that follow for the paths from each start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import partial

from ilp.constraints.exclusion import EdgeDistance, EdgeExclusion, ProvedRow
from ilp.constraints.proved_exclusions import InfeasibleCore
from loopbounds.terms.bit_vectors import TRUE
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import PendingSegment
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.passes import Pass, passes_of
from wcet.refinement.unsatisfiable_core import contradictory, cores

__all__ = ["CoreKey", "SegmentEdges", "cores_of_path", "proved_distance", "rare_edges"]

CoreKey = tuple[int | None, frozenset[int], bool]  # ``InfeasibleCore.key``
FARTHEST = 8  # iterations between executions of an edge: each more is a larger formula


def cores_of_path(conditions: PassConditions, path: Sequence[int]) -> Iterator[InfeasibleCore]:
    """The cores in the passes of a path, given as edges of the whole graph."""
    passes = list(dict.fromkeys(passes_of(conditions.code.acyclic, path)))
    for one, taken in zip(passes, conditions.taken(passes), strict=True):
        for edges in cores(taken, partial(conditions.ranges, one.loop)):
            about = conditions.common_words(one.loop, [taken[edge] for edge in edges])
            yield InfeasibleCore(one.loop, edges, about)


def rare_edges(
    conditions: PassConditions, path: Sequence[int], known: Container[CoreKey]
) -> Iterator[InfeasibleCore]:
    """The decisions of iterations on a path, except ``known`` ones, that are proved to be rare."""
    for loop, edges in repeated(conditions, passes_of(conditions.code.acyclic, path)).items():
        [taken] = conditions.taken([Pass(loop, tuple(edges))])
        decided = [
            edge
            for edge, condition in taken.items()
            if condition is not TRUE and (loop, frozenset((edge,)), True) not in known
        ]
        about = {edge: conditions.common_words(loop, [taken[edge]]) for edge in decided}
        for edge in decided:
            distance = proved_distance(conditions, loop, edge)
            if distance > 1:
                yield InfeasibleCore(loop, (edge,), about[edge], distance)


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


class SegmentEdges:
    """The edges of the paths from one start, and of the whole graph, as each other."""

    def __init__(self, segment: PendingSegment, whole: Supergraph) -> None:
        self._segment, self._whole = segment, whole
        between: dict[tuple[int, int, str], list[int]] = {}
        for e, edge in enumerate(whole.edges):
            between.setdefault((edge.src, edge.dst, edge.kind.name), []).append(e)
        nodes, graph = segment.nodes, segment.graph
        self._original: list[int | None] = []  # None: one of several between the same nodes
        self._copies: dict[int, list[int]] = {}
        for e, edge in enumerate(graph.edges):
            found = between.get((nodes[edge.src], nodes[edge.dst], edge.kind.name), [])
            self._original.append(found[0] if len(found) == 1 else None)
            if len(found) == 1:
                self._copies.setdefault(found[0], []).append(e)

    def path(self, edges: Sequence[int]) -> list[int]:
        """A path as edges of the whole graph, without those that cannot be told apart."""
        originals = (self._original[e] for e in edges)
        return [e for e in originals if e is not None]

    def row(self, core: InfeasibleCore) -> ProvedRow | None:
        """A core as rows for these paths; None if they lack one of its edges.

        A path from the start is part of an execution of the whole graph. So it takes no edges
        together that no execution does; if it starts in the loop, it begins in one more iteration.
        """
        decisions = tuple(frozenset(self._copies.get(e, ())) for e in core.edges)
        if not all(decisions):
            return None
        if core.loop is None:
            return EdgeExclusion(decisions, frozenset(), 1)
        loop, nodes = self._whole.loops[core.loop], self._segment.nodes
        graph = self._segment.graph
        into = [e for e, edge in enumerate(graph.edges) if nodes[edge.dst] == loop.header]
        entries = [e for e in into if nodes[graph.edges[e].src] not in loop.nodes]
        first = int(nodes[graph.entry] in loop.nodes)
        if core.distance == 1:
            return EdgeExclusion(decisions, frozenset(into), first)
        copies = tuple(n for n, old in enumerate(self._segment.loops) if old == core.loop)
        return EdgeDistance(
            decisions[0], core.distance, frozenset(into), frozenset(entries), first, copies
        )
