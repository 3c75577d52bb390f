"""Facts about counts where functions are passed over: their executions are on no path of a graph.

A function that a fact replaces, or that switches contexts, may execute a place of another fact, and
so may the callees of a function with a summary. The graph does not count that. A limit of a sum
then still holds, because the counted part is smaller; an equality, or a difference, need not. Such
a fact gives no row.
"""

from __future__ import annotations

from collections.abc import Iterable

from ilp.constraints.constraint import Constraint
from quoll.errors import WcetError
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph

__all__ = ["PassedCode", "counted"]


def counted(
    graph: Supergraph,
    image: Image,
    facts: LocatedFacts,
    found: Iterable[Constraint],
    exits: frozenset[int] | None = None,
) -> tuple[Constraint, ...]:
    """The constraints that the counts of ``graph`` satisfy whenever the facts hold.

    ``exits``: as ``quoll.extraction.extract.extract``.
    """
    if not graph.guidance.replaced:
        return tuple(found)
    passed = PassedCode(graph, image, facts, exits)
    return tuple(one for one in found if not _may_be_uncounted(facts, passed, one))


def _may_be_uncounted(facts: LocatedFacts, passed: PassedCode, constraint: Constraint) -> bool:
    """Whether functions that are passed over in its invocations may execute one of its places."""
    places = [facts.at(constraint.fact, text) for text in constraint.fact.fully_counted()]
    if not places:
        return False
    code = passed.inside(constraint.function, constraint.caller)
    return code is None or any(place.covers(addr) for place in places for addr in code)


class PassedCode:
    """The code of the functions that a graph passes over."""

    def __init__(
        self, graph: Supergraph, image: Image, facts: LocatedFacts, exits: frozenset[int] | None
    ) -> None:
        self._graph, self._image, self._facts, self._exits = graph, image, facts, exits
        self._code: dict[frozenset[int], frozenset[int] | None] = {}

    def inside(self, function: int | None, caller: int | None) -> frozenset[int] | None:
        """The addresses in invocations of ``function`` (None: everywhere); None: any address."""
        inside = self._graph.invocations(function, caller)
        nodes = (node for node in self._graph.nodes if inside[node.context])
        passed = frozenset(callee for node in nodes for callee in node.block.passes)
        if passed not in self._code:
            self._code[passed] = self._of(passed)
        return self._code[passed]

    def _of(self, functions: frozenset[int]) -> frozenset[int] | None:
        """The instructions of functions and of all that they call; None: not all is known."""
        from quoll.extraction.extract import extract  # half of a start's imports, seldom needed

        code, seen, new = set[int](), set[int](), set(functions)
        while new:
            seen |= new
            try:
                starts = sorted(map(self._start, new))
                program = extract(self._image, starts, self._facts, self._exits)
            except WcetError:
                return None
            if program.unresolved:
                return None
            blocks = [block for cfg in program.functions.values() for block in cfg.blocks]
            code |= {insn.addr for block in blocks for insn in block.insns}
            new = {callee for block in blocks for callee in block.passes} - seen
        return frozenset(code)

    def _start(self, function: int) -> int:
        """Where a function starts that is passed over; of an exception, the handler."""
        known = self._graph.guidance.replaced.get(function)
        return function if known is None or known.handler is None else known.handler
