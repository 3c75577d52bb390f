"""What a virtual address means to the caches: cached memory, uncached memory, a device.

Addresses outside every region may mean anything: neither a hit nor the absence of an access to
the caches is ever concluded from them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from quoll.errors import FactsError
from quoll.facts import RegionFact

__all__ = ["Cacheability", "MemoryMap", "Region", "RegionKind"]


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


@dataclass(frozen=True, slots=True)
class Region:
    """Virtual addresses ``low`` to ``high``, both included, of one memory type.

    ``physical`` is the address that ``low`` translates to, where the platform fixes it.
    ``fixed`` says that no address-space switch changes the translation.
    """

    name: str
    low: int
    high: int
    kind: RegionKind
    physical: int | None
    fixed: bool


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Disjoint regions in ascending order."""

    regions: tuple[Region, ...]

    def region(self, addr: int) -> Region | None:
        """The region that ``addr`` lies in."""
        at = bisect_right(self.regions, addr, key=lambda r: r.low) - 1
        if at < 0 or addr > self.regions[at].high:
            return None
        return self.regions[at]

    def cacheability(self, low: int, high: int) -> Cacheability:
        """Of an access whose bytes all lie in ``low`` to ``high``, both included."""
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
        """Whether ``addr`` keeps its translation when the address space is switched."""
        region = self.region(addr)
        return region is not None and region.fixed

    def physical(self, addr: int) -> int | None:
        """The physical address, where the platform fixes it."""
        region = self.region(addr)
        if region is None or region.physical is None:
            return None
        return addr - region.low + region.physical

    def with_facts(self, facts: Iterable[RegionFact]) -> MemoryMap:
        """The map with what facts say of addresses that it leaves open.

        Raises FactsError for a fact that contradicts it. Their translation may change. A
        read-only region says nothing of caches.
        """
        regions = list(self.regions)
        for fact in facts:
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
                    regions.append(Region(fact.name, at, region.low - 1, kind, None, False))
                at = region.high + 1
            if at <= fact.high:
                regions.append(Region(fact.name, at, fact.high, kind, None, False))
        return MemoryMap(tuple(sorted(regions, key=lambda r: r.low)))
