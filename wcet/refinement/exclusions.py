"""Cores of a worst path, and the exclusions that follow for the paths from each start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ilp.constraints.exclusion import EdgeExclusion
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import PendingSegment
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.passes import passes_of
from wcet.refinement.unsatisfiable_core import cores

__all__ = ["InfeasibleCore", "SegmentEdges", "cores_of_path"]


@dataclass(frozen=True, slots=True)
class InfeasibleCore:
    """Edges of the whole graph that no pass of ``loop`` takes together; None: the whole path.

    ``about``: descriptions of the words that several of the decisions test.
    """

    loop: int | None
    edges: tuple[int, ...]
    about: tuple[str, ...]


def cores_of_path(conditions: PassConditions, path: Sequence[int]) -> list[InfeasibleCore]:
    """The cores in the passes of a path, given as edges of the whole graph."""
    passes = passes_of(conditions.code.acyclic, path)
    found: dict[tuple[int | None, frozenset[int]], InfeasibleCore] = {}
    for one, taken in zip(passes, conditions.taken(passes), strict=True):
        for edges in cores(taken, partial(conditions.ranges, one.loop)):
            about = conditions.common_words(one.loop, [taken[edge] for edge in edges])
            core = InfeasibleCore(one.loop, edges, about)
            found.setdefault((one.loop, frozenset(edges)), core)
    return list(found.values())


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

    def exclusion(self, core: InfeasibleCore, reason: str) -> EdgeExclusion | None:
        """A core as an exclusion on these paths; None if they lack one of its edges.

        A path from the start is part of an execution of the whole graph. So it takes no edges
        together that no execution does; if it starts in the loop, it begins in one more iteration.
        """
        decisions = tuple(frozenset(self._copies.get(e, ())) for e in core.edges)
        if not all(decisions):
            return None
        if core.loop is None:
            return EdgeExclusion(decisions, frozenset(), 1, reason)
        loop, nodes = self._whole.loops[core.loop], self._segment.nodes
        graph = self._segment.graph
        into = (e for e, edge in enumerate(graph.edges) if nodes[edge.dst] == loop.header)
        return EdgeExclusion(
            decisions, frozenset(into), int(nodes[graph.entry] in loop.nodes), reason
        )
