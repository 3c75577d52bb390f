"""The memory map: physical addresses and memory types of virtual addresses.

    memory.images(0x80001000, 0x80001003)   every alias of a word: there may be several (rule 34)
    memory.meets(a, b)                      whether two ranges share a byte
    memory.assumes_apart(a, b)              whether only S3 says that they share none

The aliases of a word follow from regions with a physical address that no address-space switch
changes. Other addresses may mean any memory: the analysis concludes neither a hit nor the absence
of a cache access from them, and assumption S3 says that none of them is an alias of a word. Ranges
that differ within a page need no S3, because memory is mapped by pages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Protocol

from quoll.errors import FactsError

__all__ = [
    "NO_MAP",
    "Cacheability",
    "MemoryMap",
    "MemoryRegion",
    "NamedRegion",
    "PhysicalMirror",
    "RegionKind",
    "Span",
    "same_in_page",
    "words_in_page",
]

GRANULE = 1024  # bytes of the smallest page of any ARM core: the tiny pages before ARMv6
WORDS = 1 << 32
Span = tuple[int, int]  # first and last byte


class NamedRegion(Protocol):
    """Addresses ``low`` to ``high`` with a name and a kind of memory."""

    @property
    def name(self) -> str: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def fixed(self) -> bool: ...
    @property
    def source(self) -> object: ...


class RegionKind(Enum):
    """Memory type of a region. Cached is write-back, allocated by reads only."""

    CACHED = "cached"
    UNCACHED = "uncached"
    DEVICE = "device"
    TCM = "tcm"  # on the chip, as fast as a hit


class Cacheability(Enum):
    """Whether an access goes through the caches."""

    ALWAYS = "always"
    NEVER = "never"
    MAYBE = "maybe"
    ON_CHIP = "on chip"  # never, and at no cost

    __hash__ = object.__hash__  # in C: members are keys


CACHEABILITY = {
    RegionKind.CACHED: Cacheability.ALWAYS,
    RegionKind.UNCACHED: Cacheability.NEVER,
    RegionKind.DEVICE: Cacheability.NEVER,
    RegionKind.TCM: Cacheability.ON_CHIP,
}


# Uncached memory is often shared with devices.
PROGRAM_MEMORY = (RegionKind.CACHED, RegionKind.TCM)


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """Virtual addresses ``low`` to ``high``, both included, of one memory type.

    ``physical`` is the address that ``low`` translates to, if the platform fixes it. ``fixed``: no
    address-space switch changes the translation.
    """

    name: str
    low: int
    high: int
    kind: RegionKind
    physical: int | None
    fixed: bool


@dataclass(frozen=True, slots=True)
class PhysicalMirror:
    """Physical addresses ``low`` to ``high``, both included, mirror the memory from ``of`` on."""

    low: int
    high: int
    of: int


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Disjoint regions in ascending order, and physical memory that has a second address."""

    regions: tuple[MemoryRegion, ...]
    mirrors: tuple[PhysicalMirror, ...] = ()
    # Virtual ranges (first, last) that alias the bytes from a third address on.
    _aliased: tuple[tuple[int, int, int], ...] = field(init=False, repr=False, compare=False)
    # Distances from a range to another one that names the same bytes.
    _shifts: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ranges = [physical for region in self.regions for physical in self._ranges(region)]
        aliased = tuple(
            (a + low - at, a + high - at, b + low - other)
            for i, (a, at, size) in enumerate(ranges)
            for j, (b, other, length) in enumerate(ranges)
            if i != j and (low := max(at, other)) <= (high := min(at + size, other + length) - 1)
        )
        object.__setattr__(self, "_aliased", aliased)
        shifts = frozenset(other - first for first, _, other in aliased)
        object.__setattr__(self, "_shifts", shifts)

    def _ranges(self, region: MemoryRegion) -> list[tuple[int, int, int]]:
        """The region as (virtual address, physical address, bytes), with mirrors resolved."""
        if region.physical is None or not region.fixed:
            return []
        shift = region.low - region.physical
        low, end = region.physical, region.physical + region.high - region.low + 1
        cuts = {low, end}
        for mirror in self.mirrors:
            cuts |= {at for at in (mirror.low, mirror.high + 1) if low < at < end}
        found = []
        for first, last in pairwise(sorted(cuts)):
            known = next((m for m in self.mirrors if m.low <= first <= m.high), None)
            at = first if known is None else first - known.low + known.of
            found.append((first + shift, at, last - first))
        return found

    def physical_aliases(self, low: int, high: int) -> tuple[Span, ...]:
        """The ranges that alias ``low`` to ``high``, or part of it; the range itself first."""
        if not self._aliased:
            return ((low, high),)
        others = (
            (other + max(low, first) - first, other + min(high, last) - first)
            for first, last, other in self._aliased
            if first <= high and low <= last
        )
        return ((low, high), *others)

    def names(self, addr: int, size: int) -> tuple[int, ...]:
        """The addresses of all aliases of the ``size`` bytes at ``addr``; itself first."""
        if not self._aliased:
            return (addr,)
        found = self.physical_aliases(addr, addr + size - 1)
        return tuple(low for low, high in found if high - low == size - 1)

    def tells(self, span: Span) -> bool:
        """Whether the physical bytes of a range are known, and stay the same."""
        at = span[0]
        while at <= span[1]:
            region = self.region(at)
            if region is None or region.physical is None or not region.fixed:
                return False
            at = region.high + 1
        return True

    def is_memory(self, span: Span) -> bool:
        """Whether ``tells`` is true of a range, and it is memory of the program alone."""
        touched = (r for r in self.regions if r.low <= span[1] and span[0] <= r.high)
        return self.tells(span) and all(region.kind in PROGRAM_MEMORY for region in touched)

    def meets(self, a: Span, b: Span) -> bool:
        """Whether two ranges share a byte, by their addresses or by the map."""
        return any(low <= b[1] and b[0] <= high for low, high in self.physical_aliases(*a))

    def assumes_apart(self, a: Span, b: Span) -> bool:
        """Whether only S3 says that two ranges, which do not meet, are different memory."""
        return same_in_page(a, b) and not (self.tells(a) and self.tells(b))

    def meets_at(self, distance: Span, size: int, stored: int) -> bool:
        """Whether the map may alias words whose addresses are unknown.

        ``size`` bytes lie at a ``distance``, first and last, from ``stored`` bytes.
        """
        first, last = distance[0] - stored + 1, distance[1] + size - 1
        return any((shift - first) % WORDS <= last - first for shift in self._shifts)

    def places_that_meet(self, size: int, stored: int) -> Iterator[int]:
        """The distances from ``stored`` bytes at which ``size`` bytes meet them by the map."""
        for shift in self._shifts:
            yield from range(shift - size + 1, shift + stored)

    def region(self, addr: int) -> MemoryRegion | None:
        """The region that contains ``addr``, or None."""
        at = bisect_right(self.regions, addr, key=lambda r: r.low) - 1
        if at < 0 or addr > self.regions[at].high:
            return None
        return self.regions[at]

    def cacheability(self, low: int, high: int) -> Cacheability:
        """The cacheability of an access whose bytes lie in ``low`` to ``high``, both included."""
        kinds: set[Cacheability] = set()
        at = low
        while at <= high:
            region = self.region(at)
            if region is None:
                return Cacheability.MAYBE
            kinds.add(CACHEABILITY[region.kind])
            at = region.high + 1
        return kinds.pop() if len(kinds) == 1 else Cacheability.MAYBE

    def fixed(self, addr: int) -> bool:
        """Whether ``addr`` keeps its translation across address-space switches."""
        region = self.region(addr)
        return region is not None and region.fixed

    def fixes(self, span: Span) -> bool:
        """Whether all of a range keeps its translation across address-space switches."""
        at = span[0]
        while at <= span[1]:
            region = self.region(at)
            if region is None or not region.fixed:
                return False
            at = region.high + 1
        return True

    def physical(self, addr: int) -> int | None:
        """The physical address of ``addr``, if the platform fixes it, else None."""
        region = self.region(addr)
        if region is None or region.physical is None:
            return None
        return addr - region.low + region.physical

    def with_facts(self, facts: Iterable[NamedRegion]) -> MemoryMap:
        """The map, extended by facts about addresses that it does not describe.

        Raises FactsError for a fact that contradicts it. The translation of these addresses may
        change, unless the fact says "and fixed": then an address-space switch drops none of their
        lines, as with ``MemoryRegion.fixed``. No fact states their physical addresses, so they
        still need S3, and they may be in any set of a physically indexed cache. A read-only region
        says nothing about caches.
        """
        regions = list(self.regions)
        for fact in sorted(facts, key=lambda fact: not fact.fixed):  # the first one counts
            if fact.kind == "read-only":
                continue
            kind, at = RegionKind(fact.kind), fact.low
            for region in sorted(regions, key=lambda r: r.low):
                if region.high < at or region.low > fact.high:
                    continue
                if region.kind is not kind:
                    raise FactsError(
                        f"{fact.name} overlaps {region.name!r}, which is {region.kind.value}",
                        where=str(fact.source),
                    )
                if at < region.low:
                    end = region.low - 1
                    regions.append(MemoryRegion(fact.name, at, end, kind, None, fact.fixed))
                at = region.high + 1
            if at <= fact.high:
                regions.append(MemoryRegion(fact.name, at, fact.high, kind, None, fact.fixed))
        return MemoryMap(tuple(sorted(regions, key=lambda r: r.low)), self.mirrors)


def same_in_page(a: Span, b: Span) -> bool:
    """Whether two ranges may be the same memory, given their page offsets."""
    return (b[0] - a[0]) % GRANULE <= a[1] - a[0] or (a[0] - b[0]) % GRANULE <= b[1] - b[0]


def words_in_page(span: Span) -> Iterable[int]:
    """The words of a page that a range may overlap, at unknown page."""
    first, last = span[0] // 4, span[1] // 4
    return {word % (GRANULE // 4) for word in range(first, min(last + 1, first + GRANULE // 4))}


NO_MAP = MemoryMap(())
