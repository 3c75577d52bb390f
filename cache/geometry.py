"""Sizes of caches: which line and set an address belongs to.

A line is numbered by ``address // line_bytes``; set ``s`` holds the lines equal to ``s`` modulo
the number of sets.
"""

from __future__ import annotations

from dataclasses import dataclass

from cache.memory_map import MemoryMap

__all__ = ["Geometry", "Hierarchy"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """A set-associative cache. ``size`` and ``line_bytes`` in bytes, powers of two."""

    size: int
    ways: int
    line_bytes: int

    @property
    def sets(self) -> int:
        """Sets of the cache; also those of the one-way model, which keeps one way of each."""
        return self.size // (self.ways * self.line_bytes)

    def line(self, addr: int) -> int:
        """Number of the line that holds ``addr``."""
        return addr // self.line_bytes

    def set_of(self, line: int) -> int:
        """The set that ``line`` competes in."""
        return line % self.sets

    def lines(self, addr: int, size: int) -> range:
        """Lines that the ``size`` bytes at ``addr`` stand in."""
        return range(addr // self.line_bytes, (addr + size - 1) // self.line_bytes + 1)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Caches between core and memory, and what the addresses in front of them mean."""

    l1i: Geometry
    l1d: Geometry
    l2: Geometry | None  # None: absent or off
    memory: MemoryMap
    fetch_ahead: int  # bytes that may be fetched past a transfer of control (rule 8)
    aligned: bool  # assumption: every data access is aligned to its size
