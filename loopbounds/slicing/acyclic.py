"""The supergraph without back edges: order, dominators, loop nest.

Every loop is entered through its header alone (natural loops), so that the graph without back edges
has no cycle. A cycle shows a loop that is irreducible or missed, which is an error: no bound may be
computed there (rule 18).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quoll.errors import ControlFlowError
from quoll.graph.dominators import dominators, reverse_postorder
from quoll.inlining.supergraph import Supergraph

__all__ = ["AcyclicGraph"]


@dataclass(frozen=True, slots=True)
class AcyclicGraph:
    """``order[n]`` rises along every edge that is not a back edge; -1: not reached."""

    graph: Supergraph
    predecessors: tuple[tuple[int, ...], ...]  # node -> edge indices, back edges left out
    order: tuple[int, ...]
    dominator: tuple[int, ...]  # immediate dominator; of the entry: itself; -1: not reached
    innermost: tuple[int, ...]  # node -> index of the innermost loop around it, or -1
    headers: dict[int, int]  # header node -> loop index

    @staticmethod
    def of(graph: Supergraph) -> AcyclicGraph:
        """The acyclic graph. Raises ControlFlowError for a cycle that is not a natural loop."""
        back = {e for loop in graph.loops for e in loop.backs}
        predecessors = tuple(tuple(e for e in es if e not in back) for es in graph.predecessors)
        successors = tuple(tuple(e for e in es if e not in back) for es in graph.successors)
        following = [[graph.edges[e].dst for e in es] for es in successors]
        sequence = reverse_postorder(following, graph.entry)
        order = [-1] * len(graph.nodes)
        for position, node in enumerate(sequence):
            order[node] = position
        _check_acyclic(graph, successors, order)
        innermost = [-1] * len(graph.nodes)
        for loop in graph.loops:  # outer loops come first
            for node in loop.nodes:
                innermost[node] = loop.index
        return AcyclicGraph(
            graph,
            predecessors,
            tuple(order),
            dominators(following, graph.entry).idom,
            tuple(innermost),
            {loop.header: loop.index for loop in graph.loops},
        )

    def around(self, node: int) -> Iterator[int]:
        """The loops that contain a node, innermost first."""
        loop = self.innermost[node]
        while loop >= 0:
            yield loop
            parent = self.graph.loops[loop].parent
            loop = -1 if parent is None else parent

    def common_dominator(self, nodes: Sequence[int]) -> int:
        """The nearest node on all paths to ``nodes``; in a loop if all of them are in it."""
        top = nodes[0]
        for other in nodes[1:]:
            while top != other:
                if self.order[top] > self.order[other]:
                    top = self.dominator[top]
                else:
                    other = self.dominator[other]
        return top


def _check_acyclic(
    graph: Supergraph, successors: tuple[tuple[int, ...], ...], order: list[int]
) -> None:
    for node, edges in enumerate(successors):
        for edge in edges:
            if order[node] >= 0 and order[graph.edges[edge].dst] <= order[node]:
                raise ControlFlowError(
                    "this block is on a cycle that is not a loop with one header",
                    where=f"{graph.nodes[node].block.addr:#010x}",
                    hint="give its targets, or restructure the code that jumps into the loop",
                )
