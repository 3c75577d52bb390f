"""Facts about memory: named regions, and registers that point into them at places.

regions = locate(facts, image).regions
regions.pointers[0xf0010d44]     bounds of registers when that instruction executes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quoll.assumptions import Assumption, stated
from quoll.errors import FactsError
from quoll.facts.fact import Fact
from quoll.facts.interrupt_facts import BeginsUnmaskedFact
from quoll.facts.invariants import RegisterAtMostFact
from quoll.facts.memory_facts import (
    InitialContentsFact,
    PointsIntoFact,
    RegionFact,
    UnknownPointsIntoFact,
)
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.image.memory_map import Span
from quoll.intervals.strided_interval import ValueSet, progression

__all__ = ["NO_REGIONS", "MemoryRegions", "PointerBounds"]


@dataclass(frozen=True, slots=True)
class PointerBounds:
    """A fact about a register (None: an address); ``known`` holds its possible words."""

    register: int | None
    known: ValueSet
    fact: PointsIntoFact | RegisterAtMostFact


@dataclass(frozen=True, slots=True)
class MemoryRegions:
    """The regions by name, the pointers by instruction address.

    ``unknown`` concerns every access of unknown address. ``initial``: facts about the contents of
    regions, by the address of the entry. ``unmasked``: facts about interrupt masks, by the address
    of the function that begins so.
    """

    regions: Mapping[str, RegionFact] = field(default_factory=dict)
    pointers: Mapping[int, tuple[PointerBounds, ...]] = field(default_factory=dict)
    unknown: UnknownPointsIntoFact | None = None
    initial: Mapping[int, tuple[InitialContentsFact, ...]] = field(default_factory=dict)
    unmasked: Mapping[int, BeginsUnmaskedFact] = field(default_factory=dict)

    @staticmethod
    def of(
        facts: Facts, image: Image, addresses: Callable[[Fact], tuple[int, ...]]
    ) -> MemoryRegions:
        """The regions of ``facts``, of which each is about ``addresses``.

        Raises FactsError for a region that no fact describes, or that cannot be as they say.
        """
        regions = {fact.name: fact for fact in facts.of(RegionFact)}
        pointers: dict[int, tuple[PointerBounds, ...]] = {}
        for fact in facts.of(PointsIntoFact):
            region = _described(fact, regions)
            first = -(-region.low // fact.aligned) * fact.aligned
            if first > region.high:
                raise FactsError(
                    f"no address of {fact.region} is aligned to {fact.aligned}",
                    where=str(fact.source),
                )
            pointer = PointerBounds(
                fact.register, progression(first, region.high, fact.aligned), fact
            )
            for address in addresses(fact):
                pointers[address] = (*pointers.get(address, ()), pointer)
        for limit in facts.of(RegisterAtMostFact):
            most = PointerBounds(limit.register, progression(0, limit.most, 1), limit)
            for address in addresses(limit):
                pointers[address] = (*pointers.get(address, ()), most)
        unknown = next(iter(facts.of(UnknownPointsIntoFact)), None)
        if unknown is not None:
            _described(unknown, regions)
        initial: dict[int, tuple[InitialContentsFact, ...]] = {}
        for said in facts.of(InitialContentsFact):
            _refuse_without_contents(image, said, _described(said, regions))
            for address in addresses(said):
                initial[address] = (*initial.get(address, ()), said)
        unmasked = {at: one for one in facts.of(BeginsUnmaskedFact) for at in addresses(one)}
        return MemoryRegions(regions, pointers, unknown, initial, unmasked)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Every fact, as listed in reports."""
        facts = (
            *self.regions.values(),
            *(p.fact for at in self.pointers.values() for p in at),
            *(() if self.unknown is None else (self.unknown,)),
            *self.unmasked.values(),
        )
        return tuple(dict.fromkeys(stated(fact) for fact in facts))

    @property
    def elsewhere(self) -> tuple[int, int] | None:
        """First and last byte of the region that accesses of unknown address stay in."""
        if self.unknown is None:
            return None
        region = self.regions[self.unknown.region]
        return region.low, region.high

    def contents_at(self, image: Image, entry: int) -> tuple[Span, ...]:
        """The spans with their initial contents when a path starts at ``entry``."""
        spans = (self._span(fact) for fact in self.initial.get(entry & ~1, ()))
        return tuple(stored for span in spans for stored in image.stored_in(span))

    def _span(self, fact: InitialContentsFact) -> Span:
        region = self.regions[fact.region]
        return region.low, region.high

    def of_kind(self, kind: str) -> tuple[RegionFact, ...]:
        """The regions of one kind."""
        return tuple(region for region in self.regions.values() if region.kind == kind)

    def named(self, low: int, high: int) -> str | None:
        """The smallest region that holds all addresses from ``low`` to ``high``."""
        holding = [r for r in self.regions.values() if r.low <= low and high <= r.high]
        return min(holding, key=lambda r: r.high - r.low).name if holding else None


NO_REGIONS = MemoryRegions()


def _described(
    fact: PointsIntoFact | UnknownPointsIntoFact | InitialContentsFact,
    regions: Mapping[str, RegionFact],
) -> RegionFact:
    region = regions.get(fact.region)
    if region is None:
        known = ", ".join(sorted(regions)) or "none"
        raise FactsError(
            f"there is no region {fact.region}",
            where=str(fact.source),
            hint=f"described: {known}; write: region {fact.region} from 0x... to 0x... is cached",
        )
    return region


def _refuse_without_contents(image: Image, fact: InitialContentsFact, region: RegionFact) -> None:
    if region.kind == "device":
        wrong = f"{region.name} is a device, which holds nothing"
    elif not image.stored_in((region.low, region.high)):
        wrong = f"the ELF stores no byte of {region.name}"
    else:
        return
    raise FactsError(wrong, where=str(fact.source), hint="--from-reset speaks of .bss, too")
