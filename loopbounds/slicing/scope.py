"""The interface of a scope, which is one pass through the code.

``loopbounds.slicing.gated_ssa.SsaScope`` implements it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from loopbounds.slicing.cell import Cell, MemoryCell
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.memo import UnboundedCounter
from loopbounds.terms.bit_vectors import Term
from quoll.assumptions import Assumption

__all__ = ["ScopeValues", "WordOrigin"]


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


class ScopeValues(Protocol):
    """Values within one pass from ``start``, on demand."""

    code: GraphCode
    loop: int | None
    start: int
    leaves: dict[Term, Cell]
    origin: dict[Term, WordOrigin]
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
    def after_iteration(self, cell: Cell) -> Term: ...
    def before_loop(self, header: int, cell: Cell) -> Term: ...
    def leaf(self, cell: Cell) -> Term: ...
    def instance(self, node: int, term: Term) -> Term: ...
    def source(self, symbol: Term) -> tuple[int, Cell | None]: ...
    def tainted(self, term: Term) -> bool: ...
    def inner(self, loop: int) -> ScopeValues: ...
    def inside(self, loop: int, header: int, cell: Cell) -> Cell | None: ...
    def outside(self, loop: int, header: int, cell: Cell) -> Cell | None: ...
    def input(
        self,
        node: int,
        name: str,
        width: int,
        *,
        frame: bool = False,
        given: bool = False,
        most: int | None = None,
        parts: Callable[[ScopeValues], tuple[Term, ...]] | None = None,
    ) -> Term: ...
