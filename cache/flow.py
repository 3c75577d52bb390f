"""Must analysis over a supergraph: the fixed point of effects of nodes and edges (rule 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cache.must import MustStates
from quoll.fixpoint import solve
from quoll.supergraph import Supergraph
from quoll.wto import FlowGraph, WeakOrder

__all__ = ["FlowOrder", "must_states"]


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


@dataclass(frozen=True, slots=True)
class _MustDomain:
    """Instance of ``quoll.fixpoint.Domain``; states are numbers of ``MustStates``."""

    states: MustStates
    sources: Sequence[int]
    nodes: Sequence[int]
    edges: Sequence[int]

    def transfer(self, edge: int, state: int) -> int | None:
        after = self.states.apply(state, self.nodes[self.sources[edge]])
        return self.states.apply(after, self.edges[edge])

    def join(self, node: int, a: int, b: int) -> int:
        return self.states.join(a, b)

    def widen(self, node: int, old: int, new: int) -> int:
        return self.states.join(old, new)  # a set changes once at most, so chains are short

    def leq(self, a: int, b: int) -> bool:
        return self.states.leq(a, b)


def must_states(
    flow: FlowOrder, states: MustStates, nodes: Sequence[int], edges: Sequence[int]
) -> list[int | None]:
    """The state at the start of each node when nothing is known at the entry; None: unreached.

    ``nodes`` and ``edges`` hold the numbers of effects.
    """
    domain = _MustDomain(states, flow.graph.sources, nodes, edges)
    return list(solve(flow.graph, flow.order, domain, MustStates.TOP).states)
