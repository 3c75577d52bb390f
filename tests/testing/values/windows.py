"""Memory that has three names, and a concrete one that is translated."""

from __future__ import annotations

from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from tests.testing.arm.interpreter import ByteMemory

__all__ = ["HOME", "LATER", "PLAIN", "WINDOWS", "Translated", "region"]

HOME, PLAIN, LATER = 0x20000, 0x40000, 0x60000  # .data; the same bytes; the bytes from the ninth on


def region(low: int, size: int, physical: int, *, fixed: bool = True) -> MemoryRegion:
    return MemoryRegion(hex(low), low, low + size - 1, RegionKind.CACHED, physical, fixed)


WINDOWS = MemoryMap(
    (
        region(HOME, 0x1000, 0x5000),
        region(PLAIN, 0x1000, 0x5000),
        region(LATER, 0x1000, 0x5008),
    )
)


class Translated(ByteMemory):
    """Memory behind ``WINDOWS``, told here again."""

    def load(self, addr: int, size: int) -> int:
        return sum(super(Translated, self).load(place(addr + i), 1) << 8 * i for i in range(size))

    def store(self, addr: int, size: int, value: int) -> None:
        for i in range(size):
            super().store(place(addr + i), 1, value >> 8 * i & 0xFF)


def place(addr: int) -> int:
    for window, start in ((HOME, 0x5000), (PLAIN, 0x5000), (LATER, 0x5008)):
        if window <= addr < window + 0x1000:
            return addr - window + start
    return addr
