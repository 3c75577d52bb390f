"""Abstract memory: cells of stacks and of ordinary memory at constant addresses.

This module alone decides which cells a store through an unknown pointer may hit. Under S1 (rule 1)
it spares live stack frames: the cells at or above sp, at known distances from it; under S8,
objects of their own. An address computed from sp with an unknown index is not an unknown pointer:
its store may hit every cell of that stack that it can reach.

A word may have several virtual addresses: a store forgets the cells at all aliases in the memory
map (rule 34). Where the map does not decide, assumption S3 says that two cells are different words,
and S4 that a stack of unknown place is not at a known address.

The analysis records cells at stack addresses and at addresses of writable sections of the image.
Any other address may be a device, where a load need not return the stored value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from quoll import assumptions
from quoll.abstract_domain.condition import Stacks
from quoll.abstract_domain.terms import (
    BIAS,
    MASK,
    RIGID,
    SIGN,
    TAINT,
    AnchoredTerm,
    Fact,
    Facts,
    Term,
    describe,
    entry_symbol,
    exact_term,
    is_marked,
    is_stack,
    on_stack,
    plain,
)
from quoll.assumptions import Assumption
from quoll.image.memory_map import MemoryMap, Span, same_in_page
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = [
    "NEAR",
    "S1",
    "S2",
    "S3",
    "S4",
    "S6",
    "AbstractMemory",
    "MemoryUsage",
    "OwnObject",
    "live_frames",
]

WORD = 4  # bytes
PLACES = 16  # places of a frame that are analysed one by one
SAVED = frozenset(entry_symbol(register) << 32 for register in (*range(4, 12), 14))
MARKED = 1024  # largest array whose words are all marked, in bytes
NEAR = 1 << 16  # bytes: the largest range within which an address counts as known

S1 = assumptions.S1.of()
S2 = assumptions.S2.of()
S3 = assumptions.S3.of()
S4 = assumptions.S4.of()
S6 = assumptions.S6.of()
OwnObject = Callable[[int, int], str]  # the name of the object of its own with these bytes, or ""


@dataclass(slots=True)
class MemoryUsage:
    """The memory that one analysis has used.

    ``spared``: cells of objects of their own that were preserved by S8; ``read``: cells that were
    loaded.

    ``scatters``: a stack address, or a part of one, was stored where not every word has a cell
    then. With ``scattered``, any word of a stack without a cell may be a stack address.
    """

    assumptions: set[Assumption] = field(default_factory=set)
    stored: set[Span] = field(default_factory=set)  # known places of stores
    untold: set[int] = field(default_factory=set)  # cells at addresses without a known translation
    spared: dict[int, str] = field(default_factory=dict)  # by address, the name of its object
    read: set[int] = field(default_factory=set)
    scatters: bool = False
    scattered: bool = False

    def note_read(self, addr: int) -> None:
        """Record that the content of a cell was used."""
        self.read.add(addr)
        if addr in self.spared:
            self.assumptions.add(assumptions.S8.of(object=self.spared[addr]))

    def note_spared(self, addr: int, name: str) -> None:
        """Record that a cell of the object ``name`` was preserved by S8."""
        self.spared[addr] = name
        if addr in self.read:
            self.assumptions.add(assumptions.S8.of(object=name))


class AbstractMemory:
    """The working copy of a state's cells while a block is interpreted."""

    __slots__ = (
        "apart",
        "frames",
        "globals",
        "map",
        "ordinary",
        "own",
        "own_object",
        "spilled",
        "stacks",
        "use",
    )

    def __init__(
        self,
        frames: Mapping[int, object],
        globals_: Mapping[int, object],
        stacks: Stacks,
        ordinary: Callable[[int], bool],
        use: MemoryUsage,
        memory_map: MemoryMap,
        spilled: Callable[[object], bool] | None = None,
        apart: Callable[[int], bool] | None = None,
        own_object: OwnObject | None = None,
    ) -> None:
        self.frames = frames
        self.globals = globals_
        self.own: dict[str, dict[int, object]] = {}
        self.stacks = stacks
        self.ordinary = ordinary
        self.use = use
        self.map = memory_map
        self.spilled = spilled
        self.apart = apart
        self.own_object = own_object

    def load(self, address: Term, facts: Facts) -> object | None:
        """The cell at ``address``: a term, or (size, term); None if nothing is recorded."""
        exact = _exact(address, facts)
        if exact is None:
            return None
        if exact >> 32:
            return self.frames.get(exact) if is_stack(exact >> 32) else None
        for name in self.map.names(exact, WORD):
            for symbol, base in self.stacks.items():
                cell = self.frames.get(symbol << 32 | (name - base) & MASK)
                if cell is not None:
                    return cell
            cell = self.globals.get(name)
            if cell is not None:
                if self.own_object:
                    self.use.note_read(name)
                return cell
        return None

    def is_marked(self, address: Term, facts: Facts) -> bool:
        """Whether a word at one of several places near a stack may be a stack address."""
        where = describe(address, facts)
        if not isinstance(where, AnchoredTerm) or not (where.base == TAINT or is_stack(where.base)):
            return False
        if self.use.scattered:
            return True
        first = where.offsets.low - BIAS - 3
        reach = where.offsets.high - where.offsets.low + 7
        return any(
            is_marked(cell, facts)
            for key, cell in self.frames.items()
            if where.base == TAINT or (key >> 32 == where.base and (key - first) & MASK < reach)
        )

    def remember(self, address: Term, size: int, value: Term, facts: Facts) -> None:
        """Record a loaded value if the address is ordinary memory; a second load gives the same."""
        exact = _exact(address, facts)
        if exact is not None and (home := self._home(exact, size)) is not None:
            self._put(home, size, value)

    def store(
        self, address: Term, size: int, value: Term, sp: Term, facts: Facts
    ) -> Sequence[Term]:
        """Forget the cells that the store may hit, and record it if its address is known.

        Returns the addresses of words without a cell that were, or may become, stack addresses: the
        caller must ``mark`` them.
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
        if (home := self._home(exact, size)) is not None:
            self._put(home, size, value)
        elif size == WORD and exact & 3:
            self.use.scatters |= on_stack(describe(value, facts))
        return ()

    def retranslate(self, sp: Term, facts: Facts) -> None:
        """Forget stores to memory whose address may change.

        The frames of a stack of unknown place are assumed to stay if the stack is in use (S6).
        """
        if not self.map.regions:
            return  # without a platform, whoever uses the values lists the assumption
        fixed = self.map.fixed
        if self.globals:
            remaining = {
                at: c for at, c in self.globals.items() if fixed(at) and fixed(at + 3 & MASK)
            }
            self.globals = self.own["globals"] = remaining
        where = describe(sp, facts)
        used = where.base if isinstance(where, AnchoredTerm) else None
        if used not in self.stacks:
            self.use.assumptions.add(S6)

        def stays(at: Term) -> bool:
            base = self.stacks.get(at >> 32)
            if base is None:
                return at >> 32 == used
            first = base + at & MASK
            return fixed(first) and fixed(first + 3 & MASK)

        if self.frames:
            self.frames = self.own["frames"] = {k: c for k, c in self.frames.items() if stays(k)}

    def saved_at(self, address: Term, size: int, facts: Facts) -> Sequence[Term]:
        """The words that a store at one of a few places of a frame may hit, if all are saved words.

        Saved words are registers at function entry, or the return address; F1 spares them only from
        unknown addresses, not from these places (rule 49).
        """
        where = describe(address, facts)
        if isinstance(where, ValueSet):
            return self._one_word(where, size)
        if not isinstance(where, AnchoredTerm) or not 1 < where.offsets.size <= PLACES:
            return ()
        places = {
            where.base << 32 | (offset + byte - BIAS) & MASK & ~3
            for offset in where.offsets
            for byte in (0, size - 1)
        }
        cells = [self.frames.get(at) for at in places]
        saved = all(type(cell) is int and cell in SAVED for cell in cells)
        return sorted(places) if saved else ()

    def _one_word(self, where: ValueSet, size: int) -> Sequence[Term]:
        """The word of a stack of known place that a store surely hits, if it hits only one."""
        first = where.low & ~3
        if not self.stacks or where.exact is not None or where.high + size > first + WORD:
            return ()
        keys = (symbol << 32 | (first - base) & MASK for symbol, base in self.stacks.items())
        return [key for key in keys if key in self.frames]

    def mark(self, at: Term, word: Term) -> None:
        """Record ``word``, which may be a stack address, at ``at``."""
        self._put(at, 4, word)

    def forget_below(self, sp: Term, facts: Facts) -> None:
        """Drop the cells below sp, which are no longer part of a frame."""
        remaining = live_frames(self.frames, sp, facts)
        if len(remaining) < len(self.frames):
            self.frames = self.own["frames"] = remaining

    def forget_globals(self) -> None:
        """Forget every cell outside stacks."""
        self.globals = self.own["globals"] = {}

    def forget_all(self) -> None:
        """Forget every cell."""
        self.frames, self.globals, self.own = {}, {}, {}

    def _home(self, exact: Term, size: int) -> Term | None:
        """The canonical address of a cell of ordinary memory; None for an unaligned word or a
        device.
        """
        if size > 4 or (size == 4 and exact & 3):
            return None
        symbol = exact >> 32
        if symbol:
            return exact if is_stack(symbol) else None
        return next(filter(self.ordinary, self.map.names(exact, size)), None)

    def _put(self, exact: Term, size: int, value: Term) -> None:
        cells = self._writable("frames" if exact >> 32 else "globals")
        cells[exact] = value if size == 4 else (size, value)
        if exact <= MASK and not self.map.tells((exact, exact + size - 1)):
            self.use.untold.add(exact)

    def _writable(self, name: str) -> dict[int, object]:
        cells = self.own.get(name)
        if cells is None:
            cells = self.own[name] = dict(getattr(self, name))
            setattr(self, name, cells)
        return cells

    def _store_frame(self, exact: Term, size: int) -> None:
        symbol, base = exact >> 32, self.stacks.get(exact >> 32)
        offset = exact & MASK
        self._cut("frames", symbol, offset, size)
        if base is not None:
            first = base + offset & MASK
            self._forget((first, first + size - 1))
        else:
            self._forget_near_stacks()
        if any(key >> 32 != symbol for key in self.frames):
            remaining = {key: cell for key, cell in self.frames.items() if key >> 32 == symbol}
            self.frames = self.own["frames"] = remaining
        if base is None:
            self._tell_frames_apart(symbol, offset, size)

    def _store_constant(self, exact: int, size: int, sp: Term, facts: Facts) -> None:
        self._forget((exact, exact + size - 1))
        if any(key >> 32 not in self.stacks for key in self.frames):
            self.use.assumptions.add(S4)
            self.forget_below(sp, facts)

    def _forget(self, span: Span) -> None:
        """Forget the cells of known place in ``span``, under all aliases of these bytes."""
        self.use.stored.add(span)
        for low, high in self.map.physical_aliases(*span):
            size = high - low + 1
            self._cut("globals", 0, low, size)
            for symbol, base in self.stacks.items():
                self._cut("frames", symbol, low - base & MASK, size)
        self._assume_apart(span)

    def _assume_apart(self, span: Span) -> None:
        """Assume S3 where nothing else proves that a store to ``span`` misses a remaining cell."""
        if S3 in self.use.assumptions:
            return
        cells: Iterable[int] = self.globals
        if self.map.tells(span):
            untold = self.use.untold
            cells = (key for key in untold if key in self.globals) if untold else ()
        frames = (
            base + key & MASK
            for key in self.frames
            if (base := self.stacks.get(key >> 32)) is not None
        )
        if any(self.map.assumes_apart(span, (at, at + 3)) for at in chain(cells, frames)):
            self.use.assumptions.add(S3)

    def _tell_frames_apart(self, symbol: int, first: int, reach: int) -> None:
        """Forget cells of a stack of unknown place that may alias the stored bytes."""
        hit = [symbol << 32 | at for at in self._other_names(symbol, first, reach)]
        if hit:
            cells = self._writable("frames")
            for key in hit:
                cells.pop(key, None)
        if S3 in self.use.assumptions:
            return
        places = ((key - first) & MASK for key in self.frames if key >> 32 == symbol)
        if any(same_in_page((0, reach - 1), (away, away + 3)) for away in places):
            self.use.assumptions.add(S3)

    def _other_names(self, symbol: int, first: int, reach: int) -> Iterator[int]:
        """The offsets of recorded cells that the memory map may alias with the stored bytes.

        Visits the fewer of the stored bytes and the cells: deep calls have many cells.
        """
        if reach < len(self.frames):
            for away in self.map.places_that_meet(WORD, reach):
                if symbol << 32 | (at := first + away & MASK) in self.frames:
                    yield at
            return
        for key in self.frames:
            away = (key - first) & MASK
            if key >> 32 == symbol and self.map.meets_at((away, away), WORD, reach):
                yield key & MASK

    def _store_unknown(self, sp: Term, facts: Facts) -> None:
        if self.globals:
            self.globals = self.own["globals"] = self._own_cells(self.globals)
        self.use.assumptions.add(S2)
        if self.frames:
            self._retain_live(sp, facts)

    def _store_somewhere(
        self, fact: Fact, size: int, sp: Term, facts: Facts, stored: bool
    ) -> Sequence[Term]:
        """Store at one of several addresses; ``stored``: the stored word may be a stack address."""
        before = self.frames
        if not isinstance(fact, AnchoredTerm):
            self._store_in_range(plain(fact), size, sp, facts)
            hit = self._cut_stacks(plain(fact), size, sp, facts)
            self.use.scatters |= stored and self._may_be_in_stacks(plain(fact))
            return [key for key, cell in hit.items() if stored or is_marked(cell, facts)]
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
        self.use.scatters |= not _has_few_words(fact)
        return list(dict.fromkeys([*lost, *_words(fact)]))

    def _own_cells(self, cells: Mapping[int, object]) -> dict[int, object]:
        """The cells that a store of unknown address spares by S8: of objects of their own."""
        found: dict[int, object] = {}
        if self.own_object is not None:
            for key, cell in cells.items():
                if name := self.own_object(key, _width(cell)):
                    found[key] = cell
                    self.use.note_spared(key, name)
        return found

    def _store_in_range(self, fact: ValueSet, size: int, sp: Term, facts: Facts) -> None:
        if fact == ANY:
            self._store_unknown(sp, facts)
            return
        span = fact.low, fact.high + size - 1
        before = self.globals
        self._forget_globals_in(span)
        if self.own_object is not None and fact.high - fact.low > NEAR:
            lost = {key: cell for key, cell in before.items() if key not in self.globals}
            if spared := self._own_cells(lost):
                self.globals = self.own["globals"] = {**self.globals, **spared}
        self._assume_apart(span)
        self.use.assumptions.add(S2)
        if self.frames:
            self._retain_live(sp, facts)

    def _cut_stacks(self, fact: ValueSet, size: int, sp: Term, facts: Facts) -> dict[Term, object]:
        """Forget the words of stacks of known place that a store within ``fact`` may hit; returns
        them.

        If the store may reach more than ``NEAR`` bytes, its address counts as unknown and S1
        applies, unless it surely hits live frames (rule 49).
        """
        reach = fact.high - fact.low + size + 3
        if not self.stacks:
            return {}
        if reach > NEAR and not self._is_in_frames((fact.low, fact.high + size - 1), sp, facts):
            return {}
        first = fact.low - 3
        hit = {
            key: cell
            for key, cell in self.frames.items()
            if (base := self.stacks.get(key >> 32)) is not None
            and (base + key - first) & MASK < reach
        }
        if hit:
            cells = self._writable("frames")
            for key in hit:
                del cells[key]
        return {key: cell for key, cell in hit.items() if key & 3 == 0}

    def _may_be_in_stacks(self, fact: ValueSet) -> bool:
        """Whether a store within ``fact`` may hit a stack of known place, and S1 does not apply."""
        low, high = fact.low, fact.high
        near = high - low <= NEAR
        return near and any(low < top and top - NEAR <= high for top in self.stacks.values())

    def _is_in_frames(self, span: Span, sp: Term, facts: Facts) -> bool:
        """Whether all of ``span`` is in live frames of the stack in use."""
        where = describe(sp, facts)
        if not isinstance(where, AnchoredTerm) or (top := self.stacks.get(where.base)) is None:
            return False
        return top + where.offsets.high - BIAS <= span[0] and span[1] < top

    def _forget_near_stacks(self) -> None:
        """Forget the cells that a store into a stack of unknown place may hit."""
        if self.globals:
            apart = self.apart
            remaining = {
                k: c for k, c in self.globals.items() if apart and apart(k) and apart(k + 3)
            }
            self.globals = self.own["globals"] = remaining

    def _forget_globals_in(self, span: Span) -> None:
        for low, high in self.map.physical_aliases(*span):
            if any(low - 4 < key <= high for key in self.globals):
                remaining = {k: c for k, c in self.globals.items() if not low - 4 < k <= high}
                self.globals = self.own["globals"] = remaining

    def _store_in_stack(self, fact: AnchoredTerm, size: int) -> None:
        """Forget the cells between the first and the last address of a store into an array."""
        reach = fact.offsets.high - fact.offsets.low + size
        first = fact.offsets.low - BIAS
        remaining = {
            key: cell
            for key, cell in self.frames.items()
            if key >> 32 == fact.base
            and (
                (key + 3 - first) & MASK >= reach + 3
                or (reach + 3 >= SIGN and self._is_spilled(cell))
            )
        }
        self.frames = self.own["frames"] = remaining
        base = self.stacks.get(fact.base)
        low = 0 if base is None else first + base & MASK
        if fact.offsets == ANY:
            self.globals = self.own["globals"] = {}
        elif base is None or low + reach > MASK:
            if base is None:
                self._forget_near_stacks()
            else:
                self.globals = self.own["globals"] = {}
            self._tell_frames_apart(fact.base, first, reach)
        else:
            span = low, low + reach - 1
            self._forget_globals_in(span)
            self._forget_aliased_frames(span)
            self._assume_apart(span)

    def _forget_aliased_frames(self, span: Span) -> None:
        """Forget the words of stacks that alias the bytes of ``span`` at other addresses."""
        for low, high in self.map.physical_aliases(*span)[1:]:
            remaining = {
                key: cell
                for key, cell in self.frames.items()
                if (key + self.stacks.get(key >> 32, 0) - low + 3) & MASK > high - low + 3
            }
            self.frames = self.own["frames"] = remaining

    def _is_spilled(self, cell: object) -> bool:
        """Whether a store to an array of unknown end is assumed to spare a cell."""
        return self.spilled is not None and self.spilled(cell)

    def _retain_live(self, sp: Term, facts: Facts) -> None:
        self.use.assumptions.add(S1)
        self.forget_below(sp, facts)

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
            if at + _width(cell) > offset:
                cells = self._writable(name)
                del cells[key]


def _width(cell: object) -> int:
    """The bytes of a cell: it is the term of a word, or its size and a term."""
    if isinstance(cell, tuple):
        size: int = cell[0]
        return size
    return WORD


def _has_few_words(fact: AnchoredTerm) -> bool:
    return is_stack(fact.base) and fact.offsets.high - fact.offsets.low <= MARKED


def _words(fact: AnchoredTerm) -> Iterator[Term]:
    """The words that a store into an array on a stack may hit, if they are few."""
    if _has_few_words(fact):
        for offset in range(fact.offsets.low & ~3, fact.offsets.high + 1, 4):
            yield fact.base << 32 | (offset - BIAS) & MASK


def live_frames(frames: Mapping[int, object], sp: Term, facts: Facts) -> dict[int, object]:
    """The cells at or above sp in the stack it points into."""
    where = describe(sp, facts)
    if not isinstance(where, AnchoredTerm) or not is_stack(where.base):
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
