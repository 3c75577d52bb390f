"""The cells of a slice: registers and words of memory."""

from __future__ import annotations

from typing import NamedTuple

from loopbounds.slicing.effects import FLAG, SP, register_symbol
from loopbounds.terms.bit_vectors import Term
from quoll.intervals.strided_interval import ValueSet

__all__ = ["SP", "STACK", "Cell", "HeaderCell", "MemoryCell", "cell_name", "cell_width"]


STACK = 64  # no register: the end of a stack, a constant treated as any word


class MemoryCell(NamedTuple):
    """Bytes of memory. ``saved``: under F1, bytes that hold a saved register.

    ``places``: of a word behind a pointer, its addresses by value analysis; None: another word.
    """

    address: Term
    size: int
    saved: bool = False
    places: ValueSet | None = None


Cell = int | MemoryCell  # a register, or memory
HeaderCell = tuple[int, Cell]  # a loop, and a cell when its header runs


def cell_width(cell: Cell) -> int:
    """The width of a cell in bits."""
    if isinstance(cell, int):
        return register_symbol(cell).width
    return 8 * cell.size


def cell_name(cell: Cell) -> str:
    """A name for use in symbols: distinct cells have distinct names."""
    if isinstance(cell, int):
        return f"r{cell}" if cell < FLAG else f"f{cell}"
    kind = "p" if cell.places is not None else "s" if cell.saved else "m"
    return f"{kind}{cell.address.serial}_{cell.size}"
