"""A supergraph in layers: copies of it, of which execution passes to a later one at some nodes.

Node n of layer k is number n + k * (nodes of the graph), and so are edges; the numbers of the first
layer are those of the graph. A path of the graph has one path of the layers, so layers keep apart
the executions that have passed such a node and those that have not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from quoll.graph.weak_topological_order import FlowGraph, WeakOrder
from quoll.inlining.supergraph import SuperEdge, Supergraph

__all__ = ["LayeredGraph"]


@dataclass(frozen=True)
class LayeredGraph:
    """``graph`` in ``layers`` copies with ``edges``; see ``of``."""

    graph: Supergraph
    layers: int
    edges: Sequence[SuperEdge]
    successors: Sequence[Sequence[int]]

    @staticmethod
    def single(graph: Supergraph) -> LayeredGraph:
        """The graph itself."""
        return LayeredGraph(graph, 1, graph.edges, graph.successors)

    @staticmethod
    def of(graph: Supergraph, layers: int, after: Callable[[int, int], int]) -> LayeredGraph:
        """The layers; ``after(node, layer)``, no less than ``layer``, is the one behind a node."""
        count, edges = len(graph.nodes), list[SuperEdge]()
        for layer in range(layers):
            behind = [after(node, layer) * count for node in range(count)]
            edges += [
                SuperEdge(edge.src + layer * count, edge.dst + behind[edge.src], edge.kind)
                for edge in graph.edges
            ]
        successors = [
            [e + layer * len(graph.edges) for e in out]
            for layer in range(layers)
            for out in graph.successors
        ]
        return LayeredGraph(graph, layers, edges, successors)

    @cached_property
    def predecessors(self) -> Sequence[Sequence[int]]:
        """By node, the edges into it."""
        if self.layers == 1:
            return self.graph.predecessors
        found: list[list[int]] = [[] for _ in self.successors]
        for number, edge in enumerate(self.edges):
            found[edge.dst].append(number)
        return found

    def node(self, node: int) -> int:
        """The node of the graph."""
        return node % len(self.graph.nodes)

    def layer(self, node: int) -> int:
        """The layer of a node."""
        return node // len(self.graph.nodes)

    def edge(self, edge: int) -> int:
        """The edge of the graph."""
        return edge % len(self.graph.edges)

    def edge_layer(self, edge: int) -> int:
        """The layer of an edge's source."""
        return edge // len(self.graph.edges)

    def flow(self) -> FlowGraph:
        """In the form of the fixed-point engine."""
        sources = [edge.src for edge in self.edges]
        targets = [edge.dst for edge in self.edges]
        return FlowGraph(self.graph.entry, sources, targets, self.successors)

    def order(self, order: WeakOrder) -> WeakOrder:
        """The order of the layers, each in ``order`` of the graph: edges to others go forward."""
        if self.layers == 1:
            return order
        count, length, layers = len(self.graph.nodes), len(order.nodes), range(self.layers)
        return WeakOrder(
            tuple(n + k * count for k in layers for n in order.nodes),
            tuple(p + k * length if p >= 0 else -1 for k in layers for p in order.position),
            tuple(p + k * length if p >= 0 else -1 for k in layers for p in order.end),
        )
