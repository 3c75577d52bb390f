"""Which words may be computed from a stack address: assumption S1 does not speak of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopbounds import rewrite
from loopbounds.cell import SP, Cell
from loopbounds.terms import Term

if TYPE_CHECKING:
    from loopbounds.scope import Scope, Scopes

__all__ = ["Taint"]

_Key = tuple[int, Cell]  # a loop, and a cell at its header


class Taint:
    """Answers for all scopes of one graph."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._known: dict[_Key, bool] = {}
        self._queries: list[set[_Key]] = []

    def of_term(self, scope: Scope, term: Term, visiting: set[_Key] | None = None) -> bool:
        """Whether ``term`` may be computed from a stack address."""
        for t in rewrite.walk([term]):
            if t.op in ("const", "linear") and scope.code.near_stack(t.value):
                return True
            if t.op == "sym" and self._of_symbol(scope, t, visiting):
                return True
        return False

    def _of_symbol(self, scope: Scope, symbol: Term, visiting: set[_Key] | None) -> bool:
        cell = scope.leaves.get(symbol)
        if cell is not None:
            return cell == SP if scope.loop is None else self._at(scope.loop, cell, visiting)
        origin = scope.origin[symbol]
        if origin.cell is not None:
            return self._at(scope.code.acyclic.headers[origin.node], origin.cell, visiting)
        return origin.frame

    def _at(self, loop: int, cell: Cell, visiting: set[_Key] | None) -> bool:
        """Whether a cell may hold such a word when a loop's header runs.

        A least fixed point over loop headers: ``visiting`` are those of this query, whose own
        taint adds nothing. A query inside another (deciding a value that the outer one needs)
        stands alone and takes what is still open outside as tainted.
        """
        key = loop, cell
        if cell == SP or not isinstance(cell, int):
            return True
        known = self._known.get(key)
        if known is not None:
            return known
        if visiting is not None and key in visiting:
            return False
        if any(key in outer for outer in self._queries):
            return True
        if visiting is None:
            self._queries.append(set())
            try:
                return self._at(loop, cell, self._queries[-1])
            finally:
                self._queries.pop()
        first = not visiting
        visiting.add(key)
        result = self._comes_from_stack(loop, cell, visiting)
        if result:
            self._known[key] = True
        elif first:
            self._known |= dict.fromkeys(visiting - self._known.keys(), False)
        return result

    def _comes_from_stack(self, loop: int, cell: int, visiting: set[_Key]) -> bool:
        whole, scope = self._scopes.whole, self._scopes.of_loop(loop)
        edges = whole.code.graph.loops[loop]
        return any(
            self.of_term(whole, whole.along(e, cell), visiting) for e in edges.entries
        ) or any(self.of_term(scope, scope.along(e, cell), visiting) for e in edges.backs)
