"""The addresses that instructions access in the executions that are followed.

All whole paths of an entry are among these executions, so an instruction accesses no other address
on any of them. Value analysis may know less: it widens a counter or an index that executions
follow, and joins states that they keep apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import gcd

from cache.executed.data_misses import Place
from quoll.intervals.strided_interval import ValueSet

__all__ = ["ReachedAddresses", "Transfer", "first_byte"]


class Transfer(Enum):
    """``PERHAPS``: an unknown condition decides whether an instruction makes its transfers."""

    PERHAPS = 0


def first_byte(touched: Sequence[object], size: int) -> ValueSet | None:
    """The address of the first byte of an access, from the addresses of its transfers.

    ``touched``: words, or sets of words. ``size``: bytes of the access. None: any address.
    """
    found: ValueSet | None = None
    last = 0
    for at in touched:
        if at is Transfer.PERHAPS:
            continue
        here = ValueSet(at, at, 0) if isinstance(at, int) else at
        if not isinstance(here, ValueSet):
            return None
        last = max(last, here.low)
        if found is None or here.low < found.low:
            found = here
    return found if found is not None and last - found.low < size else None


class ReachedAddresses:
    """The first bytes that instructions have accessed in some executions."""

    def __init__(self) -> None:
        self._found: dict[Place, ValueSet | None] = {}  # None: any address

    def add(self, place: Place, at: ValueSet | None) -> None:
        """Let an instruction access one of the addresses ``at``; None: any."""
        if at is None:
            self._found[place] = None
        else:
            self._hull(place, at.low, at.high, at.stride)

    def add_exact(self, place: Place, at: int) -> None:
        """Let an instruction access one address."""
        self._hull(place, at, at, 0)

    def _hull(self, place: Place, low: int, high: int, stride: int) -> None:
        if place not in self._found:
            self._found[place] = ValueSet(low, high, stride)
            return
        known = self._found[place]
        if known is None:
            return
        step = gcd(known.stride, stride, low - known.low)
        if low < known.low or high > known.high or step != known.stride:
            self._found[place] = ValueSet(min(low, known.low), max(high, known.high), step)

    def join(self, other: ReachedAddresses) -> None:
        """Add the accesses of other executions."""
        if other is not self:
            for place, at in other._found.items():
                self.add(place, at)

    def known(self) -> dict[Place, ValueSet]:
        """The addresses by instruction; those that may access any are left out."""
        return {place: at for place, at in self._found.items() if at is not None}
