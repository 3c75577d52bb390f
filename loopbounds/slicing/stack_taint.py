"""The words that may be computed from a stack address: assumption S1 excludes them.

Cells that a loop changes are assumed untainted at its header. Then every assumption is verified at
the loop's entries and back edges, under the same assumptions: by induction over an execution, none
can be the first to fail. Where one fails, its cell is tainted and slicing restarts. A verified
assumption holds for every execution, and is not verified again when more bounds are known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from loopbounds.slicing.cell import SP, STACK, Cell, HeaderCell
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.memo import MemoTable
from loopbounds.slicing.scope import ScopeValues
from loopbounds.terms.bit_vectors import Term

__all__ = ["StackTaint", "TermSources", "sources_of"]

COUNTED = ("clz", "popcount")


class StackTaint:
    """Taint in all scopes of one graph; cells outside of ``tainted`` are assumed clean."""

    def __init__(self, tainted: frozenset[HeaderCell]) -> None:
        self.tainted = tainted
        self._assumed: dict[HeaderCell, None] = {}
        self._holding: set[HeaderCell] = set()  # verified for good
        self._told = 0
        self._mixed: dict[ScopeValues, MemoTable[Term, bool]] = {}

    def of_term(self, scope: ScopeValues, term: Term) -> bool:
        """Whether ``term`` may be computed from a stack address."""
        sources = sources_of(term)
        if sources.name_a_stack(scope.code):
            return True
        return any(t.op == "sym" and self._of_symbol(scope, t) for t in sources.parts)

    def renew(self) -> None:
        """Drop the results of all scopes but plain ones; verified assumptions stay."""
        self._mixed = {scope: memo for scope, memo in self._mixed.items() if scope.is_plain}

    def newly_assumed(self) -> frozenset[HeaderCell]:
        """The assumptions since the last call."""
        new = list(self._assumed)[self._told :]
        self._told = len(self._assumed)
        return frozenset(new)

    def failed(self, whole: ScopeValues) -> frozenset[HeaderCell]:
        """The assumptions that fail, with all that depended on failed ones.

        ``whole`` is the scope of the whole graph.
        """
        found: set[HeaderCell] = set()
        while new := self._failing(whole):
            found |= new
            self.tainted |= new
            self._mixed.clear()
        if not found:
            self._holding |= self._assumed.keys()
            self._assumed.clear()
            self._told = 0
        return frozenset(found)

    def _failing(self, whole: ScopeValues) -> set[HeaderCell]:
        found: set[HeaderCell] = set()
        checked = 0
        while checked < len(self._assumed):  # checking may assume more
            key = list(self._assumed)[checked]
            checked += 1
            if key not in self.tainted and self._comes_from_stack(whole, *key):
                found.add(key)
        return found

    def _of_symbol(self, scope: ScopeValues, symbol: Term) -> bool:
        cell = scope.symbols.leaves.get(symbol)
        if cell is not None:
            if scope.loop is not None:
                return self._at(scope.loop, cell)
            code = scope.code
            return cell in (SP, STACK) or code.values.hands_on_a_stack_address(code.graph.entry)
        origin = scope.symbols.origin[symbol]
        if origin.cell is not None:
            loop = scope.code.acyclic.headers[origin.node]
            if scope.is_plain and not isinstance(origin.cell, int):
                return True
            inside = scope.inside(loop, origin.node, origin.cell)
            return inside is None or self._at(loop, inside)
        if not origin.frame or origin.parts is None:
            return origin.frame
        return self._of_mixed(scope, symbol, origin.parts)

    def _of_mixed(
        self, scope: ScopeValues, symbol: Term, parts: Callable[[ScopeValues], tuple[Term, ...]]
    ) -> bool:
        mixed = self._mixed.setdefault(scope, MemoTable(scope.unbounded))
        known = mixed.get(symbol)
        if known is None:
            since = scope.unbounded.met
            mixed.presume(symbol, value=True)
            found = any(self.of_term(scope, part) for part in parts(scope))
            known = mixed.keep(symbol, found, since)
        return known

    def _at(self, loop: int, cell: Cell) -> bool:
        key = loop, cell
        if cell == SP or key in self.tainted:
            return True
        if key not in self._holding:
            self._assumed[key] = None
        return False

    def _comes_from_stack(self, whole: ScopeValues, loop: int, cell: Cell) -> bool:
        scope, edges = whole.inner(loop), whole.code.graph.loops[loop]
        outer = whole.outside(loop, scope.start, cell)
        if outer is None:
            return True
        outside = any(self.of_term(whole, whole.along(e, outer)) for e in edges.entries)
        if scope.start == whole.start:
            outside |= self.of_term(whole, whole.symbols.leaf(outer))
        return outside or any(self.of_term(scope, scope.along(e, cell)) for e in edges.backs)


class TermSources(NamedTuple):
    """A term with the terms from which it is computed; ``masks``: constants of bit fields."""

    parts: tuple[Term, ...]
    masks: tuple[Term, ...]

    def name_a_stack(self, code: GraphCode) -> bool:
        """Whether a number among the sources may be an address in a stack.

        A mask counts only for stacks in a section. Any other stack has a symbol as its end, so that
        ``x & 0xfffffff0`` stays an alignment of x, although a stack may end at that number.
        """
        numbers = (t.value for t in self.parts if t.op in ("const", "linear"))
        return any(map(code.near_stack, numbers)) or any(
            code.near_stack_in_section(mask.value) for mask in self.masks
        )


@lru_cache(1 << 14)
def sources_of(term: Term) -> TermSources:
    """The words from which ``term`` is computed, without words that are compared or bit-counted."""
    seen, masks = {term: None}, dict[Term, None]()
    pending = [term]
    while pending:
        word = pending.pop()
        for part in () if word.op in COUNTED else word.args:
            if part.width == 1 or part in seen:
                continue
            if word.op == "and" and _clears_a_field(part):
                masks[part] = None
                continue
            seen[part] = None
            pending.append(part)
    return TermSources(tuple(seen), tuple(masks))


def _clears_a_field(mask: Term) -> bool:
    """Whether a constant has ones everywhere but in one run of bits."""
    cleared = None if mask.constant is None else mask.value ^ ((1 << mask.width) - 1)
    if not cleared:
        return False
    run = cleared // (cleared & -cleared)
    return run & (run + 1) == 0
