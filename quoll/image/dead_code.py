"""Distinguishes line sequences of discarded functions from line sequences of loaded code.

A linker resolves debug entries of discarded code to a *tombstone*: GNU ld and LLD to address 0 in
``.debug_line``, LLD on demand to the highest address or the one below. Code may stand at 0 too,
such as vectors. So a sequence that starts at 0 is used only if nothing contradicts it: other
sequences, sizes of symbols, or the name of the function that its unit has there.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from quoll.image.debug_sections import DebugSections
from quoll.image.dwarf_functions import functions_of_units
from quoll.image.symbols import Symbol, SymbolTable

__all__ = ["HIGHEST_TOMBSTONE", "LineSequence", "live_sequences"]

TOMBSTONE = 0
HIGHEST_TOMBSTONE = 0xFFFFFFFE  # and the address after it


@dataclass(slots=True)
class LineSequence:
    """Rows of one contiguous range of code; the last row is its end."""

    addrs: array[int]
    files: array[int]
    lines: array[int]
    program: int  # offset of its unit's line program in .debug_line

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.addrs[-1]


def live_sequences(
    sequences: list[LineSequence], symbols: SymbolTable, debug: DebugSections
) -> list[LineSequence]:
    """The members of ``sequences`` that may describe linked code; all of them start in code."""
    doubtful = [s for s in sequences if s.addrs[0] == TOMBSTONE and s.end > TOMBSTONE]
    if not doubtful:
        return sequences
    others = [s for s in sequences if s.addrs[0] != TOMBSTONE]
    nearest = min((s.addrs[0] for s in others), default=doubtful[0].end)
    longest = max(s.end for s in doubtful)
    extents = []
    for symbol in symbols.symbols:
        if symbol.addr >= longest:
            break
        extents.append(symbol)
    if symbols.mapping(TOMBSTONE, TOMBSTONE) == "d":
        return others  # there is data
    fitting = [s for s in doubtful if (s.end <= nearest or not others) and _fits(s.end, extents)]
    sizes = frozenset((s.program, s.end) for s in doubtful)
    names = [s.name for s in extents if s.addr == TOMBSTONE]
    return others + _named(fitting, names, debug, sizes)


def _fits(end: int, symbols: Sequence[Symbol]) -> bool:
    """Whether code from the tombstone to ``end`` splits no symbol, and starts with no data."""
    first = [s for s in symbols if s.addr == TOMBSTONE and s.size]
    if first and all(s.kind == "object" for s in first):
        return False
    return not any(s.addr < end < s.addr + s.size for s in symbols)


def _named(
    sequences: list[LineSequence],
    names: Sequence[str],
    debug: DebugSections,
    sizes: frozenset[tuple[int, int]],
) -> list[LineSequence]:
    """The sequences of functions with one of ``names``, else the sequences of unknown functions.

    Compilers append a suffix to the symbol of a partial or specialised function, ``f.constprop.0``.
    ``sizes``: program and size of each sequence. A function whose size equals a sequence of its
    unit belongs to that sequence.
    """
    if not sequences:
        return []
    known = {name for full in names for name in (full, full.split(".")[0])}
    units = functions_of_units(debug, frozenset(s.program for s in sequences))
    certain, possible = [], []
    for sequence in sequences:
        inside = [
            f
            for f in units.get(sequence.program, ())
            if f.addr == TOMBSTONE and f.size <= sequence.end
        ]
        exact = [f for f in inside if f.size == sequence.end]
        first = exact or [f for f in inside if (sequence.program, f.size) not in sizes]
        if not first:
            possible.append(sequence)
        elif any(f.names & known for f in first):
            certain.append(sequence)
    return certain or possible
