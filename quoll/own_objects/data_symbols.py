"""The symbols of writable data of an image, by the bytes that they hold."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from quoll.image.image import Image
from quoll.image.memory_map import Span

__all__ = ["DataSymbols"]

SIZES = (1, 2, 4)  # bytes of a word or less
AROUND = 1 << 16  # bytes around sections in which the base of an array may lie


class DataSymbols:
    """The symbols, and the ones that are ``taken``: a number may lead there.

    ``words``: the names of symbols of one word or less, by address, that overlap no other.
    """

    def __init__(self, image: Image) -> None:
        self._memory = image.memory
        named: dict[Span, str] = {}
        for symbol in image.symbols.symbols:
            section = image.section_at(symbol.addr)
            data = section is not None and section.writable and not section.executable
            if symbol.kind != "func" and symbol.size and data:
                named[symbol.addr, symbol.addr + symbol.size - 1] = symbol.name
        self._spans = sorted(named)
        self._firsts = [first for first, _ in self._spans]
        self._longest = max((last - first for first, last in self._spans), default=0)
        self.lowest = self._spans[0][0] if self._spans else 0
        self.highest = max((last + 1 for _, last in self._spans), default=0)
        self._sections = [
            (s.addr - AROUND, s.addr + s.size + AROUND) for s in image.sections if s.writable
        ]
        self.taken: set[int] = set()  # first bytes
        self.words = {
            (first, last): named[first, last]
            for first, last in self._spans
            if last - first + 1 in SIZES
            and first % (last - first + 1) == 0
            and len(list(self._meeting(first, last))) == 1
        }

    def around(self, value: int) -> int | None:
        """The first byte of the symbol that holds the byte at ``value``; None: there is none."""
        return next((first for first, _ in self._meeting_by_alias(value, value)), None)

    def near(self, value: int) -> bool:
        """Whether an object of the image may be reached from a number with an index."""
        return any(
            low <= name < high
            for name in self._memory.names(value, 1)
            for low, high in self._sections
        )

    def take(self, low: int, high: int) -> None:
        """Take every symbol with one of the bytes, and the one that ends where they begin.

        C may compute the address behind an object, and lead back into the object from there.
        """
        for a, b in self._memory.physical_aliases(max(low, 0), max(high, 0)):
            self.taken.update(first for first, _ in self._meeting(a - 1, b))

    def access(self, low: int, high: int) -> None:
        """A load or store of these bytes: it takes the symbols of which it accesses others, too."""
        for first, last in self._meeting_by_alias(low, high):
            inside = any(
                first <= a and b <= last for a, b in self._memory.physical_aliases(low, high)
            )
            if not inside:
                self.taken.add(first)

    def _meeting_by_alias(self, low: int, high: int) -> Iterator[Span]:
        for a, b in self._memory.physical_aliases(max(low, 0), max(high, 0)):
            yield from self._meeting(a, b)

    def _meeting(self, low: int, high: int) -> Iterator[Span]:
        start = bisect_left(self._firsts, low - self._longest)
        for first, last in self._spans[start : bisect_right(self._firsts, high)]:
            if last >= low:
                yield first, last
