"""One call of a function as a program of its own, for any caller.

Where a context is too large to slice, the function alone may suffice for a proof. Registers and
memory hold any word at its start, and any register may hold an address in a caller's stack. So a
proved bound holds in every context with the same blocks and edges, the same instructions that leave
remainders, and the same bounds of inner loops.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from loopbounds.budgets import table
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import GraphCode, LoopContinuation, UnknownValues
from loopbounds.slicing.slice import Slice
from quoll.assumptions import Assumption
from quoll.inlining.activation import Activation, activation
from quoll.intervals.strided_interval import ValueSet

__all__ = ["OneCall", "for_any_caller"]


class _AnyCaller(UnknownValues):
    """Any word, everywhere; it may be an address in a caller's stack."""

    def hands_on_a_stack_address(self, node: int, /) -> bool:
        """True: any caller may pass one."""
        return True


@dataclass(frozen=True, slots=True)
class OneCall:
    """The innermost call around a loop; ``loop`` and ``bounds`` use indices of its graph."""

    part: Activation
    loop: int
    bounds: Mapping[int, int]
    whole: GraphCode

    @staticmethod
    def around(code: GraphCode, loop: int) -> OneCall | None:
        """The call around ``loop``; None if there is none, or if it is too large."""
        graph = code.graph
        part = activation(graph, graph.nodes[graph.loops[loop].header].context, table.CALL_NODES)
        if part is None:
            return None
        bounds = {here: code.bounds[i] for here, i in enumerate(part.loops) if i in code.bounds}
        return OneCall(part, part.loops.index(loop), bounds, code)

    @property
    def shape(self) -> Hashable:
        """A key: calls of the same shape have the same bounds.

        Registers that callers know may make instructions remainders (rule 42).
        """
        graph = self.part.graph
        nodes = tuple(
            (node.context, node.block.addr, node.iterations, node.block.remainders)
            for node in graph.nodes
        )
        edges = tuple((e.src, e.dst, e.kind) for e in graph.edges)
        bounds = tuple(sorted(self.bounds.items()))
        passed = tuple(e for e in range(len(edges)) if graph.passed(e))
        assumed = tuple(sorted((i, tuple(sorted(a))) for i, a in self._assumed().items()))
        return self.loop, graph.entry, nodes, edges, passed, bounds, assumed

    def _assumed(self) -> dict[int, frozenset[Assumption]]:
        """The assumptions of the bounds, by loop."""
        loops, continued = self.part.loops, self.whole.continued
        return {i: continued[loops[i]].assumed for i in self.bounds if loops[i] in continued}

    def code(self) -> GraphCode:
        """The call as a program of its own."""
        whole, loops = self.whole, enumerate(self.part.loops)
        return GraphCode(
            self.part.graph,
            AcyclicGraph.of(self.part.graph),
            whole.image,
            _AnyCaller(),
            whole.stacks,
            bounds=dict(self.bounds),
            continued={i: LoopContinuation((), {}, a) for i, a in self._assumed().items()},
            s1=whole.s1,
            lists={here: whole.lists[i] for here, i in loops if i in whole.lists},
            tables=self.table,
        )

    def table(self, node: int, insn: int) -> ValueSet | None:
        """The addresses that an instruction reads in this call; other calls may read others."""
        return self.whole.values.access(self.part.nodes[node], insn)


def for_any_caller(cut: Slice, contextual: Slice) -> Slice:
    """``cut``, the slice within one call, for the loop with the slice ``contextual``.

    In its context the parameters need not take every value, so none is ``given``.
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
