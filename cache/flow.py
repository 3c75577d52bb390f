"""A supergraph as the fixed-point engine wants it."""

from __future__ import annotations

from dataclasses import dataclass

from quoll.graph.weak_topological_order import FlowGraph, WeakOrder
from quoll.inlining.supergraph import Supergraph

__all__ = ["FlowOrder"]


@dataclass(frozen=True, slots=True)
class FlowOrder:
    """A supergraph as the engine wants it, with its order; computed once for all analyses."""

    graph: FlowGraph
    order: WeakOrder

    @staticmethod
    def of(graph: Supergraph) -> FlowOrder:
        """The flow graph of ``graph``."""
        flow = FlowGraph(
            graph.entry,
            [e.src for e in graph.edges],
            [e.dst for e in graph.edges],
            graph.successors,
        )
        return FlowOrder(flow, WeakOrder.of(flow))
