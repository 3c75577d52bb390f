"""The addresses that instructions access in the executions that are followed.

All whole paths of an entry are among these executions, so an instruction accesses no other address
on any of them. Value analysis may know less: it widens a counter or an index that executions
follow, and joins states that they keep apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from enum import Enum
from math import gcd

from cache.data_cache import DataAddresses
from cache.executed.data_misses import Place
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import SymbolicAddress

__all__ = ["FollowedAddresses", "ReachedAddresses", "Transfer", "first_byte"]


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


class FollowedAddresses:
    """``values`` of a graph whose whole paths were followed, with the addresses ``reached`` there.

    Implements ``cache.data_cache.DataAddresses``.
    """

    def __init__(self, values: DataAddresses, reached: Mapping[Place, ValueSet]) -> None:
        self._values, self._reached = values, reached

    def access(self, node: int, insn: int) -> ValueSet | None:
        """As ``DataAddresses.access``."""
        reached, known = self._reached.get((node, insn)), self._values.access(node, insn)
        if reached is None or (known and known.high - known.low < reached.high - reached.low):
            return known
        return reached

    def origin(self, node: int, insn: int) -> SymbolicAddress | None:
        """As ``DataAddresses.origin``."""
        return self._values.origin(node, insn)

    def aliases(self, edge: int) -> Mapping[int, int]:
        """As ``DataAddresses.aliases``."""
        return self._values.aliases(edge)

    def stride(self, node: int, insn: int, inside: Set[int]) -> int | None:
        """As ``DataAddresses.stride``."""
        return self._values.stride(node, insn, inside)
