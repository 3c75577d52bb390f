"""Memory of a concrete execution: as loaded, with its stores since.

Words are recorded by address; in a stack of unknown place, by distance from sp at the entry. Where
the content at the start of paths is unknown, a store is recorded only if the platform's map says
that the address is cached or tightly coupled memory and its translation fixed: uncached memory and
devices may return anything. A store that may hit anything, a constant or code, and an access to a
word with two virtual addresses, raise Undecided. Where only counts matter that unknown words do not
decide, a store that may hit anything makes all words unknown instead, except constants (S2).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from cache.executed.reached_addresses import Transfer
from loopbounds.budgets import table
from loopbounds.execution.value import (
    ConcreteValue,
    LowBytes,
    StackAddress,
    Undecided,
    WordRange,
    joined,
)
from quoll.arm.system_registers import DISCARDED, LINE
from quoll.assumptions import S2, S3, S4, S6, Assumption
from quoll.image.image import Image
from quoll.intervals.strided_interval import ValueSet, wrap

__all__ = ["Bytes", "ConcreteMemory", "RecordedWord", "keeps_stores", "may_store"]

Bytes = tuple[int | None, ...]
Cells = dict[int, ConcreteValue | Bytes]  # of a word; four bytes where the whole word is unknown
UNKNOWN: Bytes = (None,) * 4
WORD = 0xFFFFFFFF


class RecordedWord(NamedTuple):
    """A word of memory: ``address`` is a distance from sp at the entry if it is not ``named``."""

    named: bool
    address: int


class ConcreteMemory:
    """The memory of ``image`` when a path starts, and its stack.

    ``forgets``: a store of unknown address makes memory unknown, and does not raise Undecided.
    """

    def __init__(self, image: Image, *, forgets: bool = False) -> None:
        self._image, self._forgets = image, forgets
        self._named: Cells = {}  # words that stores have changed
        self._frames: Cells = {}
        self._initial: Cells = {}  # words that were looked at, as they are when the path starts
        self._recorded: dict[int, bool] = {}  # by word: whether stores to it are recorded
        self._changeable: set[tuple[int, int]] = set()  # addresses and sizes without constants
        self._erasable: set[int] = set()  # words without constants
        self._assumed: set[Assumption] = set()
        self._stored = False  # to a known address
        self._separate = False  # whether S4 is assumed already
        self._shared = False  # the words, with another execution
        self.reach: tuple[int, int] | None = None  # of stores to unknown addresses: first bytes
        # The addresses of transfers, or sets of them; None: not noted.
        self.touched: list[ConcreteValue | ValueSet | Transfer] | None = None

    def fork(self) -> ConcreteMemory:
        """The same memory, of another execution.

        Both collect assumptions in one set, and remember the words that any of them looks at.
        """
        self._shared = True
        other = object.__new__(ConcreteMemory)
        other.__dict__.update(self.__dict__)
        other.touched = None if self.touched is None else list(self.touched)
        return other

    def _own_words(self) -> None:
        """Copy words that another execution shares, before they change."""
        self._named, self._frames, self._shared = dict(self._named), dict(self._frames), False

    def has_words_of(self, other: ConcreteMemory) -> bool:
        """Whether the same words are known."""
        return self._named == other._named and self._frames == other._frames

    def content(self, cell: RecordedWord) -> ConcreteValue:
        """A word, as it would be loaded."""
        cells, initial = (self._named, self._initial) if cell.named else (self._frames, {})
        return _content(cells, initial, cell.address, 4)

    def known(self, cells: Iterable[RecordedWord]) -> list[ConcreteValue | Bytes]:
        """The contents of some words, without ranges."""
        found = [self._named.get(at) if named else self._frames.get(at) for named, at in cells]
        return [None if type(content) is WordRange else content for content in found]

    def join(self, other: ConcreteMemory) -> None:
        """Know only the words and ranges that are known in both."""
        self._stored |= other._stored
        self._separate_frames()
        if self._named is other._named and self._frames is other._frames:
            return
        if self._shared:
            self._own_words()
        _join_cells(self._named, other._named, self._initial)
        _join_cells(self._frames, other._frames, {})

    @property
    def assumed(self) -> frozenset[Assumption]:
        """The assumptions of all loads and stores so far."""
        return frozenset(self._assumed)

    def _separate_frames(self) -> None:
        """Assume S4 where there are words of both kinds."""
        if self._frames and self._stored and not self._separate:
            self._assumed.add(S4.of())
            self._separate = True

    def load(self, address: ConcreteValue, size: int) -> ConcreteValue:
        """The ``size`` bytes there; None: not known."""
        if self.touched is not None:
            self.touched.append(_noted(address))
        if isinstance(address, int):
            return self._named_bytes(address, size)
        if isinstance(address, StackAddress):
            return _content(self._frames, {}, address.offset & WORD, size)
        return self._load_one_of(address, size) if isinstance(address, WordRange) else None

    def _named_bytes(self, at: int, size: int) -> ConcreteValue:
        try:
            self._look_at(at, size)
        except Undecided:
            return None
        return _content(self._named, self._initial, at, size)

    def _load_one_of(self, addresses: WordRange, size: int) -> ConcreteValue:
        """The bytes at one of some addresses."""
        within = addresses.unsigned(4)
        found: ConcreteValue = None
        if within.high - within.low > table.LOADED_PLACES * within.stride:
            return None
        for at in range(within.low, within.high + 1, within.stride):
            word = self._named_bytes(at, size)
            found = word if at == within.low else joined(found, word)
            if found is None:
                return None
        return found

    def store(self, address: ConcreteValue, size: int, value: ConcreteValue) -> None:
        """Store ``value``. Raises Undecided where the store may change any other word."""
        if self.touched is not None:
            self.touched.append(_noted(address))
        if not isinstance(address, int | StackAddress):
            within = address.unsigned(4) if isinstance(address, WordRange) else None
            if within is not None and within.high - within.low <= table.FORGOTTEN_BYTES:
                self._store_within(within.low, within.high + size - 1)
            elif self.reach is None:
                self._store_anywhere()
            else:
                self._store_within(self.reach[0], self.reach[1] + size - 1)
            return
        if isinstance(address, int):
            at = address
            self._look_at(at, size)
            self._refuse_constant(at, size)
            self._stored = True
        else:
            at = address.offset & WORD
        if self._shared:
            self._own_words()
        named = isinstance(address, int)
        cells, initial = (self._named, self._initial) if named else (self._frames, {})
        if size == 4 and not at & 3:
            cells[at] = value
        else:
            known: Bytes = (None,) * size
            if isinstance(value, int):
                known = tuple(value.to_bytes(size, "little"))
            for i, byte in enumerate(known, at):
                _put(cells, initial, i & WORD, byte)
        self._separate_frames()
        if named:
            self._forget(at, size)

    def limit(self, address: ConcreteValue, word: ConcreteValue) -> None:
        """Know that the word there, which was loaded, is ``word``, if its stores are recorded."""
        if isinstance(address, StackAddress):
            at = address.offset & WORD
        elif isinstance(address, int) and self._recorded.get(address):
            at = address
        else:
            return
        if at & 3:
            return
        if self._shared:
            self._own_words()
        cells = self._named if isinstance(address, int) else self._frames
        cells[at] = word

    def _store_anywhere(self) -> None:
        if not self._forgets:
            raise Undecided("a store may hit any word")
        self._assumed.add(S2.of())
        self._frames, self._named, self._initial, self._recorded = {}, {}, {}, {}
        self._shared = False
        self._image = self._image.starting_with(())

    def _store_within(self, low: int, high: int) -> None:
        """Forget the words of a range. Raises Undecided as ``store``."""
        if self._shared:
            self._own_words()
        words = _words(low, high + 1 - low)
        for word in set(words).difference(self._erasable):
            self._look_at(word, 4)
            self._refuse_constant(word, 4)
            self._erasable.add(word)
        known = self._initial.keys() | self._named.keys()
        self._named.update([(word, None) for word in known.intersection(words)])
        self._stored = True
        self._separate_frames()

    def doubt(self) -> None:
        """Note that an instruction may not access memory as it seems to."""
        if self.touched is not None:
            self.touched.append(None)

    def part(self) -> None:
        """Note that an unknown condition decides whether an instruction makes its accesses."""
        if self.touched is not None:
            self.touched.append(Transfer.PERHAPS)

    def note_transfers_of(self, other: ConcreteMemory) -> None:
        """Note the addresses that another execution of the same instruction has noted."""
        if self.touched is not None and other.touched is not None:
            self.touched += other.touched

    def discard(self, address: ConcreteValue) -> None:
        """Make the cache line of ``address`` unknown. Raises Undecided as ``store``."""
        if isinstance(address, int):
            for at in range(address & -LINE, (address & -LINE) + LINE, 4):
                self.store(at, 4, None)
        elif not isinstance(address, StackAddress):
            self.store(None, 4, None)
        else:
            for offset in range(DISCARDED):
                self.store(address.moved(offset - LINE + 1), 1, None)

    def retranslate(self) -> None:
        """Forget the words whose translation may change; a stack of unknown place stays (S6).

        The image tells which translations may change.
        """
        if self._frames:
            self._assumed.add(S6.of())

    def _look_at(self, at: int, size: int) -> None:
        """Read the words as loaded. Raises Undecided for a word with two virtual addresses."""
        if size == 4 and at in self._recorded:
            return
        for word in _words(at, size):
            if word in self._recorded:
                continue
            memory, span = self._image.memory, (word, word + 3)
            if len(memory.physical_aliases(*span)) > 1:
                raise Undecided("a word has two names")
            if not memory.tells(span):
                self._assumed.add(S3.of())
            loaded = _is_as_loaded(self._image, word)
            self._recorded[word] = keeps_stores(self._image, word)
            read = self._image.at_start if loaded else self._image.constant
            known: ConcreteValue | Bytes = read(word, 4)
            if known is None:
                known = tuple(read(word + i, 1) for i in range(4))
            if known != UNKNOWN:
                self._initial[word] = known

    def _forget(self, at: int, size: int) -> None:
        """Make the words there unknown if their stores are not recorded."""
        for word in _words(at, size):
            if not self._recorded[word]:
                self._named[word] = None

    def _refuse_constant(self, at: int, size: int) -> None:
        if (at, size) in self._changeable:
            return
        for addr in range(at, at + size):
            if self._image.constant(addr & WORD, 1) is not None:
                raise Undecided("a store hits a constant")
            if self._image.is_executable(addr & WORD):
                raise Undecided("a store hits code")
        self._changeable.add((at, size))


def keeps_stores(image: Image, word: int) -> bool:
    """Whether the word at an address is as it was stored, until the next store."""
    span = (word, word + 3)
    if _is_as_loaded(image, word):
        return True
    return not image.is_disturbed(span) and image.memory.is_memory(span)


def _is_as_loaded(image: Image, word: int) -> bool:
    """Whether the word at an address is as loaded when a path starts."""
    starts = image.as_loaded
    keeps = image.is_constant_range(word, 4)
    return keeps and any(low <= word and word + 3 <= high for low, high in starts)


def _noted(address: ConcreteValue) -> ConcreteValue | ValueSet:
    """An address as it is noted."""
    if not isinstance(address, WordRange):
        return address
    words = address.unsigned(4)
    return wrap(words.low, words.high, words.stride)


def may_store(address: ConcreteValue) -> bool:
    """Whether a store there changes a word, or a few of which it makes all unknown."""
    if isinstance(address, int | StackAddress):
        return True
    within = address.unsigned(4) if isinstance(address, WordRange) else None
    return within is not None and within.high - within.low <= table.FORGOTTEN_BYTES


def _join_cells(mine: Cells, others: Cells, initial: Cells) -> None:
    """Let ``mine`` have the words and ranges that both know; absent words are as ``initial``."""
    if mine is others or mine == others:
        return
    changes: list[tuple[int, ConcreteValue]] = []
    for at, word in mine.items():
        there = others[at] if at in others else initial.get(at)
        if there is not word and there != word:
            changes.append((at, _joined(word, there)))
    for at in others.keys() - mine.keys():
        word, there = initial.get(at), others[at]
        if there != word:
            changes.append((at, _joined(word, there)))
    mine.update(changes)
    for at, joint in changes:
        if joint is None and at not in initial:
            del mine[at]


def _content(cells: Cells, initial: Cells, at: int, size: int) -> ConcreteValue:
    """The bytes of some cells; None: not known."""
    if size == 4 and not at & 3:
        content = cells[at] if at in cells else initial.get(at)
        return _low_bytes(content) if isinstance(content, tuple) else content
    known = [b for i in range(at, at + size) if (b := _byte(cells, initial, i & WORD)) is not None]
    return int.from_bytes(bytes(known), "little") if len(known) == size else None


def _joined(a: ConcreteValue | Bytes, b: ConcreteValue | Bytes) -> ConcreteValue:
    return None if isinstance(a, tuple) or isinstance(b, tuple) else joined(a, b)


def _words(at: int, size: int) -> list[int]:
    """The words that an access touches."""
    return [word & WORD for word in range(at & ~3, at + size, 4)]


def _bytes(word: ConcreteValue | Bytes) -> Bytes:
    if isinstance(word, tuple):
        return word
    if isinstance(word, LowBytes):
        return (*word.value.to_bytes(word.count, "little"), *(None,) * (4 - word.count))
    return tuple(word.to_bytes(4, "little")) if isinstance(word, int) else (None,) * 4


def _low_bytes(word: Bytes) -> ConcreteValue:
    """A word whose bytes are not all known."""
    known = tuple(takewhile(lambda byte: byte is not None, word))
    low = bytes(byte for byte in known if byte is not None)
    return LowBytes(len(low), int.from_bytes(low, "little")) if low else None


def _byte(cells: Cells, initial: Cells, at: int) -> int | None:
    word = at & ~3
    return _bytes(cells[word] if word in cells else initial.get(word))[at & 3]


def _put(cells: Cells, initial: Cells, at: int, byte: int | None) -> None:
    first = at & ~3
    word = list(_bytes(cells[first] if first in cells else initial.get(first)))
    word[at & 3] = byte
    known = [b for b in word if b is not None]
    cells[at & ~3] = int.from_bytes(bytes(known), "little") if len(known) == 4 else tuple(word)
