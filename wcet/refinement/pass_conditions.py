"""The conditions under which a pass takes its edges, as terms over one set of symbols.

They are the gates of gated SSA (``loopbounds.slicing.gated_ssa``), over *all* paths of the pass: a
value behind a join is the choice among the values of all paths there, a cell that an inner loop or
an aliasing store may change is any word, and so is a load from memory that others may write. So for
each execution there is one assignment of the symbols, under which the condition of each edge tells
whether the pass takes the edge when it is at its source. Symbols of nodes that the pass does not
execute may have any value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from loopbounds.bounds import deep_recursion
from loopbounds.reduction.constraints import within
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.effects import FLAG
from loopbounds.slicing.gated_ssa import GatedSsa, SsaScope
from loopbounds.slicing.slice import described
from loopbounds.slicing.stacks import StackSpans
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term
from quoll.assumptions import Assumption
from wcet.analysis.preparation import ValuedEntry
from wcet.refinement.passes import Pass

__all__ = ["PassConditions"]


@dataclass(slots=True)
class PassConditions:
    """Conditions of the passes of one graph, on demand; ``assumed``: the named assumptions used."""

    code: GraphCode
    assumed: set[Assumption] = field(default_factory=set)
    _ssa: GatedSsa = field(init=False)

    def __post_init__(self) -> None:
        self._ssa = GatedSsa(self.code)

    @staticmethod
    def of(entry: ValuedEntry) -> PassConditions:
        """The conditions in the graph of an entry."""
        graph, code = entry.graph, entry.code
        stacks = StackSpans.of((node.block for node in graph.nodes), code.run.image)
        return PassConditions(
            GraphCode(
                graph,
                AcyclicGraph.of(graph),
                code.run.image,
                entry.values,
                code.origin.stacks.joined(stacks),
                at_start=not code.origin.called,
                s1=code.run.options.bounds.s1,
            )
        )

    def taken(self, passes: Iterable[Pass]) -> list[dict[int, Term]]:
        """For each pass the condition of each of its edges.

        Words that the code tests are assumed to be no stack addresses. This is verified for all
        executions before conditions are given, and they are computed again where it fails.
        """
        wanted, ssa = list(passes), self._ssa
        with deep_recursion():
            while True:
                found = [self._conditions(one) for one in wanted]
                if not ssa.taint.failed(ssa.whole):
                    break
                ssa.restart(ssa.taint.tainted)
        scopes = [self._scope(one.loop) for one in wanted]
        self.assumed.update(ssa.whole.used, *(scope.used for scope in scopes))
        return found

    def ranges(self, loop: int | None, conditions: Iterable[Term]) -> list[Term]:
        """The ranges that value analysis gives for registers in ``conditions`` of a pass."""
        symbols, values = self._scope(loop).symbols, self.code.values
        found: list[Term] = []
        for symbol in sorted(rewrite.symbols(conditions), key=lambda t: t.serial):
            node, cell = symbols.source(symbol)
            if isinstance(cell, int) and cell < FLAG:
                found += within(symbol, values.register(node, cell))
        return found

    def common_words(self, loop: int | None, conditions: Sequence[Term]) -> tuple[str, ...]:
        """Descriptions of the unknown words that at least two of ``conditions`` read."""
        read = Counter(s for one in conditions for s in rewrite.symbols([one]))
        most = min(2, len(conditions))
        common = sorted((s for s, times in read.items() if times >= most), key=lambda s: s.serial)
        return tuple(dict.fromkeys(str(described(self._scope(loop), s)) for s in common))

    def _conditions(self, one: Pass) -> dict[int, Term]:
        gates = self._scope(one.loop).gates
        return {edge: gates.taken(edge) for edge in one.edges}

    def _scope(self, loop: int | None) -> SsaScope:
        return self._ssa.whole if loop is None else self._ssa.of_loop(loop)
