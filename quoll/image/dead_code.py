"""Distinguishes line sequences of functions that the linker discarded from sequences of loaded
code.

A linker resolves debug entries of discarded code to a *tombstone*: GNU ld and LLD to
address 0 in ``.debug_line``, LLD on demand to the highest address or the one below. There may be
code at 0, such as vectors. So a sequence that starts at 0 is used only if nothing contradicts it:
other sequences, sizes of symbols, and the name of the function that its unit has there.
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
HIGHEST_TOMBSTONE = 0xFFFFFFFE  # and the address behind it


@dataclass(slots=True)
class LineSequence:
    """Rows of one contiguous part of code; the last row is its end."""

    addrs: array[int]
    files: array[int]
    lines: array[int]
    program: int  # where the line program of its unit starts in .debug_line

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.addrs[-1]


def live_sequences(
    sequences: list[LineSequence], symbols: SymbolTable, debug: DebugSections
) -> list[LineSequence]:
    """Those of ``sequences``, all of which start in code, that may be of code that was linked."""
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
        return others  # what is there is data
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
    """The sequences of functions that have one of ``names``, else those that may have any.

    Compilers append a suffix to the symbol of a part or variant, ``f.constprop.0``. ``sizes``: of
    the sequences of each unit. A function with the size of one belongs to that one.
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
