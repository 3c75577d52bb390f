"""What a slice consists of: registers and memory cells."""

from __future__ import annotations

from loopbounds.slicing.effects import FLAG, SP, register_symbol
from loopbounds.terms.bit_vectors import Term

__all__ = ["SP", "Cell", "HeaderCell", "cell_name", "cell_width"]

Cell = int | tuple[Term, int]  # a register, or (address, bytes) of memory
HeaderCell = tuple[int, Cell]  # a loop, and a cell when its header runs


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
