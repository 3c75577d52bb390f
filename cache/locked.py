"""Lines that are locked in a cache: every access to them hits (rule 10).

The platform locks virtual addresses by whole lines. They are resident if each finds a locked way in
its set, which depends on physical addresses: ``crowded`` lists the exceptions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from quoll.image.memory_map import MemoryMap

__all__ = ["NOT_LOCKED", "LockedLines"]

PAGE = 4096  # bytes; translation preserves an address modulo this


@dataclass(frozen=True, slots=True)
class LockedLines:
    """Spans of line numbers, first and last, ascending and disjoint; lines of ``line_bytes``."""

    spans: tuple[tuple[int, int], ...]
    line_bytes: int

    @staticmethod
    def of(ranges: Iterable[tuple[int, int]], line_bytes: int) -> LockedLines:
        """The lines of address ranges: first byte, byte after the last."""
        spans: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            first, last = low // line_bytes, (high - 1) // line_bytes
            if spans and first <= spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
            else:
                spans.append((first, last))
        return LockedLines(tuple(spans), line_bytes)

    def __bool__(self) -> bool:
        return bool(self.spans)

    def holds(self, low: int, high: int) -> bool:
        """Whether every byte from ``low`` to ``high``, both included, is locked."""
        at = bisect_right(self.spans, low // self.line_bytes, key=lambda span: span[0]) - 1
        return at >= 0 and high // self.line_bytes <= self.spans[at][1]

    def holds_line(self, line: int) -> bool:
        """Whether line number ``line`` is locked."""
        return self.holds(line * self.line_bytes, line * self.line_bytes)

    def lines(self) -> Iterable[int]:
        """All locked lines."""
        return (line for first, last in self.spans for line in range(first, last + 1))

    def crowded(self, sets: int, ways: int, memory: MemoryMap) -> int | None:
        """A locked address whose set needs more than ``ways`` ways; None if all fit.

        An address that the platform does not translate may be in every set that its page offset
        allows.
        """
        need: Counter[int] = Counter()
        pages = max(1, sets * self.line_bytes // PAGE)
        for line in self.lines():
            addr = line * self.line_bytes
            physical = memory.physical(addr)
            start = addr % PAGE // self.line_bytes
            apart = PAGE // self.line_bytes
            possible = (
                [physical // self.line_bytes % sets]
                if physical is not None
                else [(start + n * apart) % sets for n in range(pages)]
            )
            need.update(possible)
            if any(need[at] > ways for at in possible):
                return addr
        return None


NOT_LOCKED = LockedLines((), 1)
