"""Instruction lines that a loop of invalidations by address drops: fewer than it has iterations.

An invalidation by address drops at most the line at the physical address, under any mapping (DDI
0406C, B2.2.6; DDI 0211, 3.3.17). A translation preserves an address within its page, so the dropped
line has the same place in a page as the address. If the address moves by a constant stride, it
comes to each place in a page at most ``hits`` times in any ``period`` executions in a row:

    apart = gcd(stride, page), period = page / apart, hits = max(1, line / apart)

A dropped line causes a miss only if it was there, so a line is dropped again only after it has been
fetched again. While the loop runs, it fetches ``fetched`` lines; every other line is dropped at
most once. In n executions per entry of the loop there are at most

    once + fetched * hits * ceil(n / period)

such drops, where ``once`` is the number of lines in the cache, or of all lines of the program. This
holds for any number of virtual names of a line, and if translations change in the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

from cache.locked import PAGE

__all__ = ["LineDrops"]


@dataclass(frozen=True, slots=True)
class LineDrops:
    """An invalidation in ``loop`` that drops at most ``once`` lines and, in each ``period``
    executions, ``again`` lines more.

    ``iterations``: most executions per entry of the loop, None if unknown.
    """

    loop: int
    once: int
    again: int
    period: int
    iterations: int | None = None

    @staticmethod
    def of(
        loop: int, stride: int, line_bytes: int, *, fetched: int, present: int
    ) -> LineDrops | None:
        """The drops for an address that moves by ``stride`` bytes; None if each execution may drop.

        The loop fetches ``fetched`` lines, and ``present`` lines may be in the cache.
        """
        apart = gcd(stride, PAGE)
        drops = LineDrops(loop, present, fetched * max(1, line_bytes // apart), PAGE // apart)
        return drops if drops.again < drops.period else None

    def counted(self, iterations: Mapping[int, int]) -> LineDrops:
        """The drops with ``iterations`` from the most executions of each loop header per entry."""
        return replace(self, iterations=iterations.get(self.loop))

    def cycles(self, miss: int) -> tuple[int, int]:
        """Cycles at the loop entry and per execution, from the cycles of a ``miss``.

        Together they are exact for ``iterations`` executions, and enough for fewer, as ``each`` is
        rounded down. Where that gains nothing, a miss per execution.
        """
        n = self.iterations
        if n is None:
            return 0, miss
        each = miss * self.again // self.period
        most = self.once * self.period + self.again * (n + self.period - 1)
        first = -(-miss * most // self.period) - each * n
        return (first, each) if first + each * n < miss * n else (0, miss)
