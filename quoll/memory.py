"""Abstract memory: cells of stacks and of ordinary memory at constant addresses.

What a store through an unknown pointer may hit is decided here, and only here. Under S1 (rule 1)
it leaves live stack frames alone: the cells at or above sp, at known distances from it. An
address that was computed from sp with an unknown index is not an unknown pointer: its store may
hit every cell of that stack that it can reach.

Cells are recorded at stack addresses and at addresses of the image's writable sections; anything
else may be a device, where a load need not give what was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from quoll import assumptions
from quoll.condition import Stacks
from quoll.terms import (
    BIAS,
    MASK,
    RIGID,
    SIGN,
    TAINT,
    Anchored,
    Fact,
    Facts,
    Term,
    describe,
    exact_term,
    is_marked,
    is_stack,
    on_stack,
    plain,
)
from quoll.valueset import ANY, ValueSet

__all__ = ["S1", "S2", "Memory", "live_frames"]

MARKED = 1024  # bytes of an array, all of whose words are marked

S1 = assumptions.S1.text()
S2 = assumptions.S2.text()


class Memory:
    """The working copy of a state's cells while a block is interpreted."""

    __slots__ = ("frames", "globals", "ordinary", "own", "spilled", "stacks", "used")

    def __init__(
        self,
        frames: Mapping[int, object],
        globals_: Mapping[int, object],
        stacks: Stacks,
        ordinary: Callable[[int], bool],
        used: set[assumptions.Assumption],
        spilled: Callable[[object], bool] | None = None,
    ) -> None:
        self.frames = frames
        self.globals = globals_
        self.own: dict[str, dict[int, object]] = {}
        self.stacks = stacks
        self.ordinary = ordinary
        self.used = used
        self.spilled = spilled

    def load(self, address: Term, facts: Facts) -> object | None:
        """The cell at ``address``: a term, or (size, term); None if nothing is recorded."""
        exact = _exact(address, facts)
        if exact is None:
            return None
        if exact >> 32:
            return self.frames.get(exact) if is_stack(exact >> 32) else None
        for symbol, base in self.stacks.items():
            cell = self.frames.get(symbol << 32 | (exact - base) & MASK)
            if cell is not None:
                return cell
        return self.globals.get(exact)

    def is_marked(self, address: Term, facts: Facts) -> bool:
        """Whether a word at one of several places near a stack may be a stack address."""
        where = describe(address, facts)
        if not isinstance(where, Anchored) or not (where.base == TAINT or is_stack(where.base)):
            return False
        first = where.offsets.low - BIAS - 3
        reach = where.offsets.high - where.offsets.low + 7
        return any(
            is_marked(cell, facts)
            for key, cell in self.frames.items()
            if where.base == TAINT or (key >> 32 == where.base and (key - first) & MASK < reach)
        )

    def remember(self, address: Term, size: int, value: Term, facts: Facts) -> None:
        """Record what a load found, if it was ordinary memory: loading again gives the same."""
        exact = _exact(address, facts)
        if exact is not None and self._recordable(exact, size):
            self._put(exact, size, value)

    def store(
        self, address: Term, size: int, value: Term, sp: Term, facts: Facts
    ) -> Sequence[Term]:
        """Forget what the store may hit, and record it if its address is known.

        Gives the addresses of words that were, or may become, stack addresses and of which nothing
        is recorded now: ``mark`` must be told.
        """
        exact = _exact(address, facts)
        if exact is None:
            stored = size == 4 and on_stack(describe(value, facts))
            return self._store_somewhere(describe(address, facts), size, sp, facts, stored)
        if exact >> 32 == 0:
            self._store_constant(exact, size, sp, facts)
        elif is_stack(exact >> 32):
            self._store_frame(exact, size)
        else:
            self._store_unknown(sp, facts)
        if self._recordable(exact, size):
            self._put(exact, size, value)
        return ()

    def mark(self, at: Term, word: Term) -> None:
        """Record a word that is perhaps a stack address."""
        self._put(at, 4, word)

    def forget_below(self, sp: Term, facts: Facts) -> None:
        """Drop the cells below sp, which are no longer part of a frame."""
        kept = live_frames(self.frames, sp, facts)
        if len(kept) < len(self.frames):
            self.frames = self.own["frames"] = kept

    def forget_globals(self) -> None:
        """Nothing is known outside stacks."""
        self.globals = self.own["globals"] = {}

    def forget_all(self) -> None:
        """Nothing is known of memory."""
        self.frames, self.globals, self.own = {}, {}, {}

    def _recordable(self, exact: Term, size: int) -> bool:
        """Whether the cell is ordinary memory and a word on a word boundary, or smaller."""
        if size > 4 or (size == 4 and exact & 3):
            return False
        symbol = exact >> 32
        return self.ordinary(exact) if symbol == 0 else is_stack(symbol)

    def _put(self, exact: Term, size: int, value: Term) -> None:
        cells = self._writable("frames" if exact >> 32 else "globals")
        cells[exact] = value if size == 4 else (size, value)

    def _writable(self, name: str) -> dict[int, object]:
        cells = self.own.get(name)
        if cells is None:
            cells = self.own[name] = dict(getattr(self, name))
            setattr(self, name, cells)
        return cells

    def _store_frame(self, exact: Term, size: int) -> None:
        symbol = exact >> 32
        self._cut("frames", symbol, exact & MASK, size)
        base = self.stacks.get(symbol)
        if base is not None:
            self._cut("globals", 0, base + exact & MASK, size)
        elif self.globals:
            self.globals = self.own["globals"] = {}
        if any(key >> 32 != symbol for key in self.frames):
            kept = {key: cell for key, cell in self.frames.items() if key >> 32 == symbol}
            self.frames = self.own["frames"] = kept

    def _store_constant(self, exact: int, size: int, sp: Term, facts: Facts) -> None:
        self._cut("globals", 0, exact, size)
        for symbol, base in self.stacks.items():
            self._cut("frames", symbol, exact - base & MASK, size)
        if any(key >> 32 not in self.stacks for key in self.frames):
            self._keep_live(sp, facts)

    def _store_unknown(self, sp: Term, facts: Facts) -> None:
        if self.globals:
            self.globals = self.own["globals"] = {}
        self.used.add(S2)
        if self.frames:
            self._keep_live(sp, facts)

    def _store_somewhere(
        self, fact: Fact, size: int, sp: Term, facts: Facts, stored: bool
    ) -> Sequence[Term]:
        """A store whose address is one of several; ``stored``: of a word that is marked."""
        before = self.frames
        if not isinstance(fact, Anchored):
            self._store_in_range(plain(fact), size, sp, facts)
            return ()
        if not is_stack(fact.base) and fact.base != TAINT:
            self._store_unknown(sp, facts)
            return ()
        if fact.base == TAINT:
            self.forget_all()
        else:
            self._store_in_stack(fact, size)
        lost = [key for key in before if key not in self.frames and key & 3 == 0]
        if not stored:
            return [key for key in lost if is_marked(before[key], facts)]
        return list(dict.fromkeys([*lost, *_words(fact)]))

    def _store_in_range(self, fact: ValueSet, size: int, sp: Term, facts: Facts) -> None:
        if fact == ANY:
            self._store_unknown(sp, facts)
            return
        high = fact.high + size
        if any(fact.low - 4 < key < high for key in self.globals):
            kept = {k: c for k, c in self.globals.items() if not fact.low - 4 < k < high}
            self.globals = self.own["globals"] = kept
        self.used.add(S2)
        if self.frames:
            self._keep_live(sp, facts)

    def _store_in_stack(self, fact: Anchored, size: int) -> None:
        """An array in a frame: any cell between the ends may be hit."""
        reach = fact.offsets.high - fact.offsets.low + size + 3
        first = fact.offsets.low - BIAS - 3
        kept = {
            key: cell
            for key, cell in self.frames.items()
            if key >> 32 == fact.base
            and ((key - first) & MASK >= reach or (reach >= SIGN and self._is_spilled(cell)))
        }
        self.frames = self.own["frames"] = kept
        base = self.stacks.get(fact.base)
        if base is None or fact.offsets == ANY:
            self.globals = self.own["globals"] = {}
            return
        first += base
        others = {k: c for k, c in self.globals.items() if (k - first) & MASK >= reach}
        self.globals = self.own["globals"] = others

    def _is_spilled(self, cell: object) -> bool:
        """Whether a store to an array of which no end is known is assumed not to hit a cell."""
        return self.spilled is not None and self.spilled(cell)

    def _keep_live(self, sp: Term, facts: Facts) -> None:
        self.used.add(S1)
        kept = live_frames(self.frames, sp, facts)
        if len(kept) < len(self.frames):
            self.frames = self.own["frames"] = kept

    def _cut(self, name: str, symbol: int, offset: int, size: int) -> None:
        """Remove the cells that overlap ``size`` bytes at ``offset`` from ``symbol``."""
        cells: Mapping[int, object] = getattr(self, name)
        if not cells:
            return
        for at in range(offset - 3, offset + size):
            key = symbol << 32 | at & MASK
            cell = cells.get(key)
            if cell is None:
                continue
            width = 4 if type(cell) is int else cell[0]  # type: ignore[index]
            if at + width > offset:
                cells = self._writable(name)
                del cells[key]


def _words(fact: Anchored) -> Iterator[Term]:
    """The words that a store into an array on a stack may hit, if they are few."""
    low, high = fact.offsets.low, fact.offsets.high
    if is_stack(fact.base) and high - low <= MARKED:
        for offset in range(low & ~3, high + 1, 4):
            yield fact.base << 32 | (offset - BIAS) & MASK


def live_frames(frames: Mapping[int, object], sp: Term, facts: Facts) -> dict[int, object]:
    """The cells at or above sp in the stack it points into."""
    where = describe(sp, facts)
    if not isinstance(where, Anchored) or not is_stack(where.base):
        return {}
    top = where.offsets.high - BIAS
    return {
        key: cell
        for key, cell in frames.items()
        if key >> 32 == where.base and (key - top) & MASK < SIGN
    }


def _exact(address: Term, facts: Facts) -> Term | None:
    """``address`` if it is a constant or a rigid symbol plus a constant, under its facts."""
    if address >> 32 < RIGID:
        return address
    return exact_term(describe(address, facts))
