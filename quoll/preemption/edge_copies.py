"""The edges of the paths from one start, and of the whole graph, as each other."""

from __future__ import annotations

from collections.abc import Iterable

from quoll.inlining.supergraph import Supergraph, SuperLoop
from quoll.preemption.segments import PendingSegment

__all__ = ["EdgeCopies"]


class EdgeCopies:
    """The copies of edges of ``whole`` in a segment; of several between two nodes, none."""

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

    def originals(self, edges: Iterable[int]) -> list[int]:
        """Edges as edges of the whole graph, without those that cannot be told apart."""
        found = (self._original[e] for e in edges)
        return [e for e in found if e is not None]

    def of(self, edge: int) -> frozenset[int]:
        """The copies of an edge of the whole graph."""
        return frozenset(self._copies.get(edge, ()))

    def into(self, node: int) -> list[int]:
        """The edges into the copies of a node of the whole graph."""
        nodes, edges = self._segment.nodes, self._segment.graph.edges
        return [e for e, edge in enumerate(edges) if nodes[edge.dst] == node]

    def entering(self, loop: SuperLoop) -> tuple[list[int], list[int]]:
        """The edges with which an iteration of a loop of the whole graph begins, and the loop."""
        into, edges = self.into(loop.header), self._segment.graph.edges
        outside = [e for e in into if self._segment.nodes[edges[e].src] not in loop.nodes]
        return into, outside

    def begins_in(self, loop: SuperLoop) -> bool:
        """Whether the paths start in a loop of the whole graph."""
        return self._segment.nodes[self._segment.graph.entry] in loop.nodes
