"""The layers in which an interrupt is pending: before and after the program has seen it.

    SHOWN   no test has been made since the interrupt arrived, or since the path started
    SEEN    a test is due or has been made, and the registers still show the interrupt
    TAKEN   an access may have acknowledged it: nothing is assumed about the registers any more,
            and a word in which the program remembers the number is a cell like any other

A store that only disables or masks a line withdraws the interrupt in the layer SHOWN: the program
does not know of it, so such a store does not serve it, and it arrives anew when its line is
enabled again. In the layer SEEN the store may be how the program acknowledges.

A join of these executions would lose that either a register or a word in memory shows the
interrupt, and that an operation ends behind a test, but not where it was the turn of none. Graphs
without an access that may acknowledge, and without a test every N-th time, have one layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quoll.abstract_domain.abstract_state import AbstractState
from quoll.preemption.acknowledgement import AcknowledgingNodes, acknowledging_nodes
from quoll.preemption.counters import TestCounter
from quoll.preemption.predicate import PendingCase, PendingPredicate
from quoll.value_analysis.layered_graph import LayeredGraph
from quoll.value_analysis.value_results import ResumedValues, ValueResults

__all__ = ["LayeredTests"]

SHOWN, SEEN, TAKEN = LAYERS = range(3)


@dataclass(frozen=True)
class LayeredTests:
    """The values of a graph, its layers, and the nodes between them."""

    values: ValueResults
    predicate: PendingPredicate
    layered: LayeredGraph
    nodes: AcknowledgingNodes

    @staticmethod
    def of(
        values: ValueResults,
        predicate: PendingPredicate,
        reads: frozenset[int],
        counters: Sequence[TestCounter] = (),
    ) -> LayeredTests:
        """The layers of ``values.graph``, of which ``reads`` are the nodes that read registers.

        ``counters``: words that count the work between tests, behind which one is due.
        """
        nodes, graph = acknowledging_nodes(values, predicate), values.graph
        due = reads.union(*(one.due for one in counters))
        if not nodes.all and not counters:
            return LayeredTests(values, predicate, LayeredGraph.single(graph), nodes)

        def after(node: int, layer: int) -> int:
            withdraws = layer == SHOWN and node in nodes.withdrawing and node not in due
            if node in nodes.all and not withdraws:
                return TAKEN
            return max(layer, SEEN) if node in due else layer

        return LayeredTests(values, predicate, LayeredGraph.of(graph, len(LAYERS), after), nodes)

    def resumed(self, case: PendingCase, like: ResumedValues | None = None) -> ResumedValues:
        """The values under ``case`` in the layers that show the interrupt."""
        if self.layered.layers == 1:
            return self.values.resumed(case, like=like)
        return self.values.layered(self.layered, (case, case, {}), self._unknown())

    def _unknown(self) -> Mapping[int, int]:
        """The nodes whose loads are not known to see the interrupt."""
        count, nodes = len(self.layered.graph.nodes), self.nodes
        shown = nodes.others - nodes.withdrawing
        return dict.fromkeys([*shown, *(n + SEEN * count for n in nodes.others)], TAKEN)

    def reads(self, states: Sequence[AbstractState | None]) -> frozenset[int]:
        """The nodes of the layers that read a register, given their states."""
        found, count = self.values.reading(self.predicate.registers), len(self.layered.graph.nodes)
        if self.layered.layers == 1:
            return found
        return frozenset(
            n + k * count for n in found for k in LAYERS if states[n + k * count] is not None
        )

    def in_layers(self, edges: frozenset[int]) -> frozenset[int]:
        """These edges of the graph, in all layers."""
        count = len(self.layered.graph.edges)
        return frozenset(e + k * count for e in edges for k in range(self.layered.layers))

    def target(self, edge: int) -> int:
        """The node at which control goes on after a negative edge: in the first layer."""
        return self.layered.node(self.layered.edges[edge].dst)

    def taken(self, node: int) -> bool:
        """Whether something may have acknowledged the interrupt before ``node`` of a layer."""
        return self.layered.layer(node) == TAKEN
