"""The abstract domain of values on the layers of a graph, under one assumption for each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quoll.abstract_domain.abstract_state import AbstractState
from quoll.graph.fixpoint import AbstractDomain
from quoll.value_analysis.context_domain import ContextDomain
from quoll.value_analysis.layered_graph import LayeredGraph

__all__ = ["LayeredDomain"]


class LayeredDomain(AbstractDomain[AbstractState]):
    """Transfer, join and widening in the domain of each layer.

    ``elsewhere``: nodes that the domain of another layer transfers. ``closed``: edges that no state
    passes.
    """

    def __init__(
        self,
        layered: LayeredGraph,
        domains: Sequence[ContextDomain],
        elsewhere: Mapping[int, int],
        closed: frozenset[int],
    ) -> None:
        self._layered, self._domains = layered, domains
        self._elsewhere, self._closed = elsewhere, closed

    def transfer(self, edge: int, state: AbstractState) -> AbstractState | None:
        """The state along ``edge``."""
        if edge in self._closed:
            return None
        source = self._layered.edges[edge].src
        layer = self._elsewhere.get(source, self._layered.layer(source))
        return self._domains[layer].transfer(self._layered.edge(edge), state)

    def join(self, node: int, a: AbstractState, b: AbstractState) -> AbstractState:
        """The join of both states."""
        return self._at(node).join(self._layered.node(node), a, b)

    def widen(self, node: int, old: AbstractState, new: AbstractState) -> AbstractState:
        """The widening of ``old`` by ``new``."""
        return self._at(node).widen(self._layered.node(node), old, new)

    def leq(self, a: AbstractState, b: AbstractState) -> bool:
        """Whether ``b`` covers ``a``."""
        return self._domains[0].leq(a, b)

    def _at(self, node: int) -> ContextDomain:
        return self._domains[self._layered.layer(node)]
