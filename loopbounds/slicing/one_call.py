"""One call of a function as a program of its own, whoever calls it.

Where a context is too large to look through, what is known inside the function may be enough. What
registers and memory hold when it begins is any word, and any register may hold an address in the
stack of a caller. So what is proved holds in every context with the same blocks and edges, in which
the loops inside have the same bounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from loopbounds.budgets import table
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import GraphCode, LoopContinuation, UnknownValues
from loopbounds.slicing.slice import Slice
from quoll.inlining.activation import Activation, activation

__all__ = ["OneCall", "for_any_caller"]


class _AnyCaller(UnknownValues):
    """Any word, anywhere, which may be an address in a caller's stack."""

    def hands_on_a_stack_address(self, node: int, /) -> bool:
        """A caller may do so."""
        return True


@dataclass(frozen=True, slots=True)
class OneCall:
    """The innermost call that a loop is in. ``loop``: its index there; ``bounds`` likewise."""

    part: Activation
    loop: int
    bounds: Mapping[int, int]
    whole: GraphCode

    @staticmethod
    def around(code: GraphCode, loop: int) -> OneCall | None:
        """None where the loop is in no call, or in one that is too large."""
        graph = code.graph
        part = activation(graph, graph.nodes[graph.loops[loop].header].context, table.CALL_NODES)
        if part is None:
            return None
        bounds = {here: code.bounds[i] for here, i in enumerate(part.loops) if i in code.bounds}
        return OneCall(part, part.loops.index(loop), bounds, code)

    @property
    def shape(self) -> Hashable:
        """Calls of the same shape have the same bounds."""
        graph = self.part.graph
        nodes = tuple((node.context, node.block.addr, node.iterations) for node in graph.nodes)
        edges = tuple((e.src, e.dst, e.kind) for e in graph.edges)
        bounds = tuple(sorted(self.bounds.items()))
        passed = tuple(e for e in range(len(edges)) if graph.passed(e))
        return self.loop, graph.entry, nodes, edges, passed, bounds

    def code(self) -> GraphCode:
        """The program that it is."""
        whole, loops = self.whole, enumerate(self.part.loops)
        return GraphCode(
            self.part.graph,
            AcyclicGraph.of(self.part.graph),
            whole.image,
            _AnyCaller(),
            whole.stacks,
            bounds=dict(self.bounds),
            s1=whole.s1,
            lists={here: whole.lists[i] for here, i in loops if i in whole.lists},
        )


def for_any_caller(cut: Slice, contextual: Slice) -> Slice:
    """``cut``, made of one call, for the loop of which ``contextual`` is the slice in its context.

    That its parameters may be any word is not known of this context.
    """
    return replace(
        cut,
        given=frozenset(),
        havoc={},
        trips={},
        alone=lambda: None,
        continued=LoopContinuation((), {}, cut.assumed),
        walks=contextual.walks,
        says_all=lambda deciding: False,
    )
