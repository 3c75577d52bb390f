"""The natural loops of a supergraph."""

from __future__ import annotations

from collections.abc import Sequence

from quoll.graph.natural_loops import find_loops
from quoll.inlining.supergraph import SuperEdge, SuperLoop

__all__ = ["super_loops"]


def super_loops(
    edges: Sequence[SuperEdge],
    successors: Sequence[Sequence[int]],
    predecessors: Sequence[Sequence[int]],
    entry: int,
) -> tuple[SuperLoop, ...]:
    """All loops, outer ones before those inside them."""
    following = [[edges[e].dst for e in out] for out in successors]
    loops = []
    for index, loop in enumerate(find_loops(following, entry)):
        inside = frozenset(loop.nodes)
        inward = predecessors[loop.header]
        backs = tuple(e for e in inward if edges[e].src in inside)
        entries = tuple(e for e in inward if e not in backs)
        loops.append(SuperLoop(index, loop.header, entries, backs, inside, loop.parent))
    return tuple(loops)
