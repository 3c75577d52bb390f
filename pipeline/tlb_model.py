"""Figures of a translation lookaside buffer, from the platform file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TlbModel"]


@dataclass(frozen=True, slots=True)
class TlbModel:
    """Sizes in bytes, times in cycles; ranges are first and last address."""

    refill: int  # of the small buffer, from the main one
    reads: int  # memory accesses of a table walk
    page_bytes: int
    large: tuple[tuple[int, int, int], ...] = ()  # low, high, bytes of mappings beyond a page
    locked: tuple[tuple[int, int], ...] = ()  # in the main buffer

    def page(self, addr: int) -> int:
        """First address of the mapping that contains ``addr``."""
        for low, high, size in self.large:
            if low <= addr <= high:
                return addr // size * size
        return addr // self.page_bytes * self.page_bytes

    def is_locked(self, addr: int) -> bool:
        """Whether the translation of ``addr`` is locked in the main buffer."""
        return any(low <= addr <= high for low, high in self.locked)

    def walk(self, access: int) -> int:
        """Cycles of a miss in both buffers, with memory accesses of ``access`` cycles."""
        return self.refill + self.reads * access

    def miss(self, page: int, access: int) -> int:
        """Cycles of a miss in the small buffer."""
        return self.refill if self.is_locked(page) else self.walk(access)
