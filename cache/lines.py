"""The lines that are surely in one cache, by number or relative to a symbol.

A *symbol* stands for an unknown word that the value analysis follows
(``quoll.abstract_domain.terms``). After a load at symbol + 8 the bytes around it are in the cache,
although their address is unknown. Such *spans* of bytes, each within one line, are recorded
relative to their symbol (Hahn and Grund: "Relational Cache Analysis for Static Timing Analysis",
ECRTS 2012; rule 13). Lines of one symbol that lie less than a way apart are in different sets;
known low bits of the address limit the sets.

Every line and span has an age: an upper bound on the number of other lines of its set that were
used since its own use (or filled since its own fill: the ``AgingRule`` decides). The analysis
forgets a line at the age of ``capacity``.

Two bytes of one symbol in the cache, at most a line apart, have all bytes between them there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quoll.abstract_domain.terms import RIGID

__all__ = ["ANY_SET", "NO_LINES", "AccessedLines", "CacheLines", "CacheLinesBuilder", "signed"]

Entry = tuple[int, int]  # line, age
# First byte, byte after the last, both relative to a symbol; age; the sets that may hold it.
Span = tuple[int, int, int, int]
ANY_SET = -1  # of numbers of sets, as bits of an int: all of them


class AccessedLines(NamedTuple):
    """The lines that one access may touch.

    One of ``lines`` (None: any line of ``sets``, bit n for set n).

    If ``symbol`` is given, it touches exactly the lines of all ``spans`` of bytes from it.
    """

    lines: tuple[int, ...] | None
    symbol: int | None = None
    spans: tuple[tuple[int, int], ...] = ()
    sets: int = ANY_SET

    @property
    def identified(self) -> bool:
        """Whether one line is identified, by number or by symbol."""
        return self.symbol is not None or (self.lines is not None and len(self.lines) == 1)


class CacheLines(NamedTuple):
    """Lines by set, and spans by symbol; other lines may be anywhere."""

    sets: Mapping[int, tuple[Entry, ...]]
    symbols: Mapping[int, tuple[Span, ...]]

    def join(self, other: CacheLines) -> CacheLines:
        """The lines of both, at the higher age."""
        if self is other or self == other:
            return self
        sets = {}
        for at, entries in self.sets.items():
            theirs = other.sets.get(at)
            common = entries if theirs == entries else _common(entries, theirs or ())
            if common:
                sets[at] = common
        symbols = {}
        for symbol, spans in self.symbols.items():
            both = _overlaps(spans, other.symbols.get(symbol, ()))
            if both:
                symbols[symbol] = both
        return CacheLines(sets, symbols)

    def covered_by(self, other: CacheLines) -> bool:
        """Whether this knows all that ``other`` does, at no higher age."""
        if self is other:
            return True
        if not other.sets.items() <= self.sets.items():  # in C: most sets are the same
            for at, theirs in other.sets.items():
                ours = self.sets.get(at)
                if ours is not theirs and ours != theirs and not _no_older(ours or (), theirs):
                    return False
        return all(
            _overlaps(self.symbols.get(symbol, ()), spans) == spans
            for symbol, spans in other.symbols.items()
        )

    def renamed(self, aliases: Mapping[int, int]) -> CacheLines:
        """The lines after renaming symbols; ``aliases``: new symbol -> its equal old term.

        Rigid symbols stay.
        """
        symbols = {symbol: spans for symbol, spans in self.symbols.items() if symbol < RIGID}
        for symbol, term in aliases.items():
            spans = self.symbols.get(term >> 32)
            if spans:
                offset = signed(term)
                symbols[symbol] = tuple(
                    (low - offset, high - offset, age, sets) for low, high, age, sets in spans
                )
        return CacheLines(self.sets, symbols)


NO_LINES = CacheLines({}, {})


def signed(term: int) -> int:
    """The signed offset of a term: the representative modulo 2**32 nearest to zero."""
    return (term + (1 << 31) & (1 << 32) - 1) - (1 << 31)


def _common(a: tuple[Entry, ...], b: tuple[Entry, ...]) -> tuple[Entry, ...]:
    ages = dict(b)
    return tuple((line, max(age, ages[line])) for line, age in a if line in ages)


def _no_older(a: tuple[Entry, ...], b: tuple[Entry, ...]) -> bool:
    """Whether every line of ``b`` is in ``a``, at the same age or a lower one."""
    ages = dict(a)
    return all(line in ages and ages[line] <= age for line, age in b)


def _overlaps(a: tuple[Span, ...], b: tuple[Span, ...]) -> tuple[Span, ...]:
    if a == b:
        return a
    found = {
        (max(x[0], y[0]), min(x[1], y[1]), max(x[2], y[2]), x[3] | y[3])
        for x in a
        for y in b
        if max(x[0], y[0]) < min(x[1], y[1])
    }
    return tuple(sorted(found))


class CacheLinesBuilder:
    """A working copy of ``CacheLines`` while the accesses of a node are applied."""

    __slots__ = ("_lines", "_sets", "capacity", "count", "line_bytes", "sets", "symbols")

    def __init__(self, lines: CacheLines, line_bytes: int, count: int, capacity: int) -> None:
        self._lines, self.sets, self.symbols = lines, lines.sets, lines.symbols
        self._sets: dict[int, tuple[Entry, ...]] | None = None  # ``sets``, once it is a copy
        self.line_bytes = line_bytes
        self.count = count  # sets of the cache
        self.capacity = capacity

    def build(self) -> CacheLines:
        """The state now; the same object as at the start if nothing has changed."""
        if self.sets is self._lines.sets and self.symbols is self._lines.symbols:
            return self._lines
        self._sets = None
        return CacheLines(self.sets, self.symbols)

    def _own(self) -> dict[int, tuple[Entry, ...]]:
        """``sets`` as a private copy, to be changed in place."""
        if self._sets is None:
            self.sets = self._sets = dict(self.sets)
        return self._sets

    def forget(self) -> None:
        """Forget all lines."""
        self.sets = self._sets = {}
        self.symbols = {}

    def forget_symbols(self) -> None:
        """Forget the lines without a number."""
        self.symbols = {}

    def forget_sets(self, target: AccessedLines) -> None:
        """Forget the lines that may share a set with ``target``, itself included."""
        sets, count = target.sets, self.count
        if target.lines is not None:
            sets &= sum({1 << line % count for line in target.lines})
        self.sets = self._sets = {at: e for at, e in self.sets.items() if not sets >> at & 1}
        apart = {s: tuple(x for x in spans if not x[3] & sets) for s, spans in self.symbols.items()}
        self.symbols = {symbol: spans for symbol, spans in apart.items() if spans}

    def age(self, target: AccessedLines) -> int | None:
        """The age of the line of ``target``; None if it may be absent."""
        if target.symbol is not None:
            return self._age_of_spans(target)
        if target.lines is None:
            return None
        oldest = 0
        for line in target.lines:
            for known, age in self.sets.get(line % self.count, ()):
                if known == line:
                    oldest = max(oldest, age)
                    break
            else:
                return None
        return oldest

    def _age_of_spans(self, target: AccessedLines) -> int | None:
        assert target.symbol is not None
        known = self.symbols.get(target.symbol)
        if known is None:
            return None
        oldest = 0
        for low, high in target.spans:
            inside = [age for a, b, age, _ in known if a <= low and high <= b]
            if inside:
                oldest = max(oldest, min(inside))
                continue
            before = [(b, age) for a, b, age, _ in known if a <= low]
            after = [(a, age) for a, b, age, _ in known if b >= high]
            between = [max(x, y) for b, x in before for a, y in after if a - b < self.line_bytes]
            if not between:
                return None
            oldest = max(oldest, min(between))
        return oldest

    def add(self, target: AccessedLines) -> None:
        """Make the line of ``target`` the youngest; ``target`` must be identified."""
        if target.lines is not None and len(target.lines) == 1:
            (line,) = target.lines
            at = line % self.count
            entries = self.sets.get(at, ())
            if (line, 0) not in entries:
                others = (e for e in entries if e[0] != line)
                self._own()[at] = tuple(sorted((*others, (line, 0))))
        if target.symbol is not None:
            known = self.symbols.get(target.symbol, ())
            for low, high in target.spans:
                same = [s for s in known if s[0] < high and low < s[1]]  # they share a line
                low = min([low, *(s[0] for s in same)])
                high = max([high, *(s[1] for s in same)])
                sets = target.sets
                for span in same:
                    sets &= span[3]
                known = (*(s for s in known if s not in same), (low, high, 0, sets))
            spans = tuple(sorted(known))
            if spans != self.symbols.get(target.symbol):
                self.symbols = {**self.symbols, target.symbol: spans}

    def make_older(self, target: AccessedLines, limit: int) -> None:
        """Age the other lines younger than ``limit`` that may share a set with ``target``."""
        if not limit:
            return
        if target.lines is None:
            self._age_sets({at: None for at in self.sets if target.sets >> at & 1}, limit)
        else:
            alone: dict[int, int | None] = {}  # set -> its only candidate, whose age stays
            for line in target.lines:
                at = line % self.count
                alone[at] = line if alone.get(at, line) == line else None
            self._age_sets(alone, limit)
        if self.symbols:
            aged = {s: self._aged_spans(s, target, limit) for s in self.symbols}
            self.symbols = {symbol: spans for symbol, spans in aged.items() if spans}

    def _age_sets(self, spared: Mapping[int, int | None], limit: int) -> None:
        """Age the lines of the sets ``spared``, except the one line given for each set."""
        for at, line in spared.items():
            entries = self.sets.get(at)
            if entries is None or not any(e[0] != line and e[1] < limit for e in entries):
                continue
            remaining = tuple(
                (known, age)
                for known, before in entries
                if (age := before + (before < limit and known != line)) < self.capacity
            )
            if remaining:
                self._own()[at] = remaining
            else:
                del self._own()[at]

    def _aged_spans(self, symbol: int, target: AccessedLines, limit: int) -> tuple[Span, ...]:
        near = (self.count - 2) * self.line_bytes if symbol == target.symbol else -1
        return tuple(
            (low, high, age, sets)
            for low, high, before, sets in self.symbols[symbol]
            if (age := before + (before < limit and _may_meet(low, high, sets, target, near)))
            < self.capacity
        )


def _may_meet(low: int, high: int, sets: int, target: AccessedLines, distance: int) -> bool:
    """Whether bytes ``low`` to ``high``, in one of ``sets``, may share a set with ``target``."""
    return bool(sets & target.sets) and not _near(low, high, target, distance)


def _near(low: int, high: int, target: AccessedLines, distance: int) -> bool:
    """Whether bytes ``low`` to ``high`` are too near to all of ``target`` to share its set."""
    return distance >= 0 and all(
        abs(low - first) <= distance and abs(high - last) <= distance
        for first, last in target.spans
    )
