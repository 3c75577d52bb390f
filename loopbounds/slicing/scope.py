"""The interface of a scope, which is one pass through the code.

``loopbounds.slicing.gated_ssa.SsaScope`` implements it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from loopbounds.slicing.cell import STACK, Cell, MemoryCell, cell_name, cell_width
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.memo import UnboundedCounter
from loopbounds.terms.bit_vectors import Term, sym
from quoll.assumptions import Assumption

__all__ = ["ScopeSymbols", "ScopeValues", "WordOrigin"]


@dataclass(frozen=True, slots=True)
class WordOrigin:
    """The origin of an unknown word: a load or instruction of ``node``, or a loop there."""

    node: int
    cell: Cell | None  # the cell that the loop with header ``node`` havocs
    frame: bool  # lost from a stack frame, so it may be a stack address
    given: bool  # read from unknown memory; otherwise the analysis lost it
    most: int | None = None  # its maximum, by the proved bound of a loop
    # The terms that a word from a frame is made of, in a scope.
    parts: Callable[[ScopeValues], tuple[Term, ...]] | None = None


class ScopeSymbols:
    """The unknown words of one scope.

    ``leaves``: symbols of cells at its start; ``origin``: of all others, inputs and havoc.
    """

    def __init__(self, loop: int | None, start: int) -> None:
        self._loop, self._start = loop, start
        self.leaves: dict[Term, Cell] = {}
        self.origin: dict[Term, WordOrigin] = {}

    def copied(self) -> ScopeSymbols:
        """The same words, to which others can be added."""
        symbols = ScopeSymbols(self._loop, self._start)
        symbols.leaves, symbols.origin = dict(self.leaves), dict(self.origin)
        return symbols

    def leaf(self, cell: Cell) -> Term:
        """The unknown value of a cell at the start."""
        symbol = sym(f"leaf_{self._loop}_{cell_name(cell)}", cell_width(cell))
        self.leaves[symbol] = cell
        return symbol

    def input(
        self,
        node: int,
        name: str,
        width: int,
        *,
        cell: Cell | None = None,
        frame: bool = False,
        given: bool = False,
        most: int | None = None,
        parts: Callable[[ScopeValues], tuple[Term, ...]] | None = None,
    ) -> Term:
        """Any word, from ``node``; the rest is its ``WordOrigin``."""
        symbol = sym(f"{name}_{node}_{self._loop}", width)
        self.origin[symbol] = WordOrigin(
            node, cell, frame=frame, given=given, most=most, parts=parts
        )
        return symbol

    def lost(self, node: int, name: str, cell: Cell) -> Term:
        """Any word in place of a cell at ``node``; it may be a stack address."""
        return self.input(node, f"{name}_{cell_name(cell)}", cell_width(cell), frame=True)

    def limit(self, symbol: Term) -> int | None:
        """The greatest value of a word, by the proved bound of a loop; None: any."""
        origin = self.origin.get(symbol)
        return None if origin is None else origin.most

    def is_given(self, symbol: Term) -> bool:
        """Whether a word is unknown from the start, not lost by the analysis."""
        if symbol in self.leaves:
            return self.leaves[symbol] != STACK
        return self.origin[symbol].given

    def is_lost(self, symbol: Term) -> bool:
        """Whether a word was lost from a stack frame."""
        origin = self.origin.get(symbol)
        return origin is not None and origin.frame

    def knows(self, symbol: Term) -> bool:
        """Whether a symbol belongs to this scope."""
        return symbol in self.leaves or symbol in self.origin

    def source(self, symbol: Term) -> tuple[int, Cell | None]:
        """The node a symbol belongs to, and the cell it holds when that node begins, if any."""
        if symbol in self.leaves:
            return self._start, self.leaves[symbol]
        origin = self.origin[symbol]
        return origin.node, origin.cell


class ScopeValues(Protocol):
    """Values within one pass from ``start``, on demand."""

    code: GraphCode
    loop: int | None
    start: int
    symbols: ScopeSymbols
    used: set[Assumption]
    unbounded: UnboundedCounter

    @property
    def is_plain(self) -> bool: ...
    def contains(self, node: int) -> bool: ...
    def incoming(self, node: int) -> list[int]: ...
    def at(self, node: int, cell: Cell) -> Term: ...
    def after(self, node: int, cell: Cell) -> Term: ...
    def before(self, node: int, position: int, cell: MemoryCell) -> Term: ...
    def along(self, edge: int, cell: Cell) -> Term: ...
    def taken(self, edge: int) -> Term: ...
    def after_iteration(self, cell: Cell) -> Term: ...
    def before_loop(self, header: int, cell: Cell) -> Term: ...
    def instance(self, node: int, term: Term) -> Term: ...
    def tainted(self, term: Term) -> bool: ...
    def inner(self, loop: int) -> ScopeValues: ...
    def inside(self, loop: int, header: int, cell: Cell) -> Cell | None: ...
    def outside(self, loop: int, header: int, cell: Cell) -> Cell | None: ...
