"""Counts of many things in one integer: a field of ``BITS`` bits each, whose last bit is 0.

Executions that are followed together have a count of every edge. Such an integer is never copied
where executions fork; a sum or a maximum of all counts takes a few operations on long integers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["PackedCounts", "count_of", "one_of"]

BITS = 32
FIELD = (1 << BITS) - 1


@dataclass(frozen=True, slots=True)
class PackedCounts:
    """The operations on ``size`` counts, each less than 1 << 31; all counts are 0 in 0."""

    size: int
    _last: int = field(init=False)  # the last bit of each field

    def __post_init__(self) -> None:
        last = one_of(self.size) // FIELD << BITS - 1
        object.__setattr__(self, "_last", last)

    def most(self, one: int, other: int) -> int:
        """The greater of both counts in each field."""
        if one == other:
            return one
        greater = (one | self._last) - other & self._last  # where one >= other
        mask = greater - (greater >> BITS - 1)
        return one & mask | other & ~mask

    def values(self, counts: int) -> tuple[int, ...]:
        """Each count."""
        return struct.unpack(f"<{self.size}I", counts.to_bytes(self.size * BITS // 8, "little"))

    def others(self, indices: Iterable[int]) -> int:
        """The mask that makes the counts at ``indices`` 0."""
        return one_of(self.size) - 1 & ~sum(one_of(index) * FIELD for index in indices)


def one_of(index: int) -> int:
    """The counts that are 1 at ``index`` and 0 elsewhere."""
    return 1 << BITS * index


def count_of(counts: int, index: int) -> int:
    """The count at ``index``."""
    return counts >> BITS * index & FIELD
