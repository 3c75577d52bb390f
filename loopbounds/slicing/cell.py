"""What a slice consists of: registers and memory cells, and the unknown words it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopbounds.slicing.effects import FLAG, SP, register_symbol
from loopbounds.terms.bit_vectors import Term

__all__ = ["SP", "Cell", "HeaderCell", "WordOrigin", "cell_name", "cell_width"]

Cell = int | tuple[Term, int]  # a register, or (address, bytes) of memory
HeaderCell = tuple[int, Cell]  # a loop, and a cell when its header runs


@dataclass(frozen=True, slots=True)
class WordOrigin:
    """Where an unknown word comes from: a load or instruction of ``node``, or a loop there."""

    node: int
    cell: Cell | None  # what the loop with header ``node`` havocs
    frame: bool  # lost from a stack frame, so it may be a stack address
    given: bool  # read from memory that nothing is known of; otherwise the analysis lost it
    most: int | None = None  # what it cannot exceed, by the proved bound of a loop
    parts: Callable[[], tuple[Term, ...]] | None = None  # what a word from a frame is made of


def cell_width(cell: Cell) -> int:
    """In bits."""
    if isinstance(cell, int):
        return register_symbol(cell).width
    return 8 * cell[1]


def cell_name(cell: Cell) -> str:
    """A name that is part of symbols: distinct cells have distinct names."""
    if isinstance(cell, int):
        return f"r{cell}" if cell < FLAG else f"f{cell}"
    return f"m{cell[0].serial}_{cell[1]}"
