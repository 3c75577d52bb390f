"""The starts of paths that other paths lead to, without the nodes that are left out.

An execution consists of paths of segments, each from a start to the next test. So a start that no
path leads to, directly or by other starts, is not reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quoll.graph.closure import closure
from quoll.inlining.supergraph import Supergraph

__all__ = ["Arrival", "all_arrivals", "arrival_at", "reached_arrivals", "reached_without"]

Arrival = tuple[int, int]  # address of the first block, context
Start = tuple[Arrival, frozenset[Arrival], bool]  # its place, the places on its paths, if first


def arrival_at(graph: Supergraph, node: int) -> Arrival:
    """The place and context of a node."""
    return graph.nodes[node].block.addr, graph.nodes[node].context


def all_arrivals(graph: Supergraph) -> frozenset[Arrival]:
    """The places and contexts of a graph."""
    return frozenset(arrival_at(graph, n) for n in range(len(graph.nodes)))


def reached_without(graph: Supergraph, without: frozenset[int]) -> frozenset[Arrival]:
    """The places and contexts on the paths without some nodes."""

    def following(node: int) -> Iterator[int]:
        targets = (graph.edges[e].dst for e in graph.successors[node])
        return (target for target in targets if target not in without)

    nodes = closure([] if graph.entry in without else [graph.entry], following)
    return frozenset(arrival_at(graph, n) for n in nodes)


def reached_arrivals(starts: Sequence[Start]) -> set[Arrival]:
    """The starts that paths from the first ones lead to, directly or by others."""
    leads: dict[Arrival, set[Arrival]] = {arrival: set() for arrival, _, _ in starts}
    for arrival, places, _ in starts:
        leads[arrival] |= places & leads.keys()
    return closure([arrival for arrival, _, first in starts if first], lambda at: leads[at])
