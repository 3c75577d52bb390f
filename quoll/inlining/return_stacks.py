"""The return stack of the processor at each node, as far as calls on the path decide it."""

from __future__ import annotations

from quoll.arm.return_stack import UNKNOWN_RETURNS, ReturnStack, surely_returns
from quoll.cfg.cfg import EdgeKind
from quoll.graph.fixpoint import solve
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder
from quoll.inlining.supergraph import Supergraph

__all__ = ["return_stacks", "returns_as_predicted"]


def return_stacks(
    graph: Supergraph, flow: FlowGraph, order: WeakOrder
) -> tuple[ReturnStack | None, ...]:
    """The stack at the start of each node; None for a node that is never reached.

    At the entry it may hold anything: addresses of the interrupted program. So it may behind a
    function that a fact replaces.
    """
    return solve(flow, order, _Model(graph), UNKNOWN_RETURNS).states


def returns_as_predicted(graph: Supergraph, node: int, stack: ReturnStack) -> bool:
    """Whether the node ends with a return that ``stack``, at its start, surely predicts right."""
    expected, last = stack.only(), graph.nodes[node].block.last
    if expected is None or not surely_returns(last) or node in graph.exit_nodes:
        return False
    targets = (graph.nodes[graph.edges[e].dst].block for e in graph.successors[node])
    return all((target.addr, target.insns[0].thumb) == expected for target in targets)


class _Model:
    """Instance of ``quoll.graph.fixpoint.AbstractDomain`` over ``ReturnStack``."""

    def __init__(self, graph: Supergraph) -> None:
        self._graph = graph

    def transfer(self, edge: int, state: ReturnStack) -> ReturnStack | None:
        if self._graph.passed(edge):
            return UNKNOWN_RETURNS
        along = self._graph.edges[edge]
        last = self._graph.nodes[along.src].block.last
        return state.after(last, taken=along.kind is not EdgeKind.FALLTHROUGH)

    def join(self, node: int, a: ReturnStack, b: ReturnStack) -> ReturnStack:
        return a.join(b)

    def widen(self, node: int, old: ReturnStack, new: ReturnStack) -> ReturnStack:
        return old.join(new)  # an entry has few addresses, or is unknown

    def leq(self, a: ReturnStack, b: ReturnStack) -> bool:
        return a.covered_by(b)
