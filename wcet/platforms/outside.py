"""Code and data of an ELF outside the platform's memory, which count as uncached.

Memory outside the map may be uncached (``Cacheability.MAYBE``): every access there is charged as
one to memory. That is sound, but often 20 times too high.
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.image.elf import Section
from quoll.image.image import Image
from quoll.image.memory_map import MemoryMap

__all__ = ["OutsideMap", "outside_map"]

PAGE = 4096  # bytes: memory is mapped in pages


@dataclass(frozen=True, slots=True)
class OutsideMap:
    """Whole pages ``low`` to ``high``, inclusive, with sections that the map does not cover."""

    low: int
    high: int
    sections: tuple[str, ...]

    @property
    def fact(self) -> str:
        """The line of a facts file that states these pages as cached, as RAM mostly is."""
        return f"region ram{self.low:x} from {self.low:#x} to {self.high:#x} is cached and fixed"

    def holds(self, addr: int) -> bool:
        """Whether ``addr`` lies in one of the pages."""
        return self.low <= addr <= self.high


def outside_map(image: Image, memory: MemoryMap) -> tuple[OutsideMap, ...]:
    """Ranges of pages with sections that ``memory`` does not cover, ascending."""
    found: list[OutsideMap] = []
    for section in sorted(image.sections, key=lambda one: one.addr):
        if not section.size or _covered(memory, section):
            continue
        low = section.addr // PAGE * PAGE
        high = -(-(section.addr + section.size) // PAGE) * PAGE - 1
        names: tuple[str, ...] = (section.name,)
        if found and low <= found[-1].high + 1 + PAGE:
            before = found.pop()
            low, high, names = before.low, max(high, before.high), (*before.sections, *names)
        found.append(OutsideMap(low, high, names))
    return tuple(found)


def _covered(memory: MemoryMap, section: Section) -> bool:
    """Whether the map has every byte of a section."""
    at = section.addr
    while at < section.addr + section.size:
        region = memory.region(at)
        if region is None:
            return False
        at = region.high + 1
    return True
