"""What facts say of memory: named regions, and registers that point into them at places.

regions = Regions.of(facts, image)
regions.pointers[0xf0010d44]     what is known of registers when that instruction executes
regions.observations(execution)  where a recorded execution shows a fact to hold or not (rule 28)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.assumptions import Assumption, stated
from quoll.errors import FactsError
from quoll.facts import (
    Fact,
    Facts,
    InitialContents,
    PointsInto,
    RegionFact,
    RegisterAtMost,
    UnknownPointsInto,
)
from quoll.facts.places import resolve
from quoll.image.image import Image
from quoll.image.memory_map import Span
from quoll.image.trace import Execution
from quoll.words.strided_interval import ValueSet, progression

__all__ = ["NO_REGIONS", "Observation", "Pointer", "Regions"]

READ_ONLY = "read-only"
SIZE = 0xFF  # of the words about an access; the bit above is set by stores
Words = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a fact says of a register (None: of an address); ``known`` are the words it may be."""

    register: int | None
    known: ValueSet
    fact: PointsInto | RegisterAtMost


@dataclass(frozen=True, slots=True)
class Observation:
    """An access of an execution that a fact is about."""

    fact: Fact
    position: int  # of the instruction in the execution
    address: int  # that was accessed
    holds: bool  # the fact allows it


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions by name, the pointers by the address of an instruction.

    ``unknown`` is about every access of which nothing is known. ``initial``: what is said of the
    contents of regions, by the address of the entry.
    """

    regions: Mapping[str, RegionFact] = field(default_factory=dict)
    pointers: Mapping[int, tuple[Pointer, ...]] = field(default_factory=dict)
    unknown: UnknownPointsInto | None = None
    initial: Mapping[int, tuple[InitialContents, ...]] = field(default_factory=dict)

    @staticmethod
    def of(facts: Facts, image: Image) -> Regions:
        """Raises FactsError for a region that no fact describes, and a place that is not there."""
        regions = {fact.name: fact for fact in facts.of(RegionFact)}
        pointers: dict[int, tuple[Pointer, ...]] = {}
        for fact in facts.of(PointsInto):
            region = _described(fact, regions)
            first = -(-region.low // fact.aligned) * fact.aligned
            if first > region.high:
                raise FactsError(
                    f"no address of {fact.region} is aligned to {fact.aligned}",
                    where=str(fact.source),
                )
            pointer = Pointer(fact.register, progression(first, region.high, fact.aligned), fact)
            for address in resolve(image, fact.place, fact.source):
                pointers[address] = (*pointers.get(address, ()), pointer)
        for limit in facts.of(RegisterAtMost):
            most = Pointer(limit.register, progression(0, limit.most, 1), limit)
            for address in resolve(image, limit.place, limit.source):
                pointers[address] = (*pointers.get(address, ()), most)
        unknown = next(iter(facts.of(UnknownPointsInto)), None)
        if unknown is not None:
            _described(unknown, regions)
        initial: dict[int, tuple[InitialContents, ...]] = {}
        for said in facts.of(InitialContents):
            _refuse_without_contents(image, said, _described(said, regions))
            for address in resolve(image, said.place, said.source):
                initial[address] = (*initial.get(address, ()), said)
        return Regions(regions, pointers, unknown, initial)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Every fact, as it is listed in reports."""
        facts = (
            *self.regions.values(),
            *(p.fact for at in self.pointers.values() for p in at),
            *(() if self.unknown is None else (self.unknown,)),
        )
        return tuple(dict.fromkeys(stated(fact) for fact in facts))

    @property
    def elsewhere(self) -> tuple[int, int] | None:
        """First and last byte of where accesses of unknown address go."""
        if self.unknown is None:
            return None
        region = self.regions[self.unknown.region]
        return region.low, region.high

    def contents_at(self, image: Image, entry: int) -> tuple[Span, ...]:
        """What holds its initial contents when a path starts at ``entry``."""
        spans = (self._span(fact) for fact in self.initial.get(entry & ~1, ()))
        return tuple(part for span in spans for part in image.stored_in(span))

    def _span(self, fact: InitialContents) -> Span:
        region = self.regions[fact.region]
        return region.low, region.high

    def of_kind(self, kind: str) -> tuple[RegionFact, ...]:
        """The regions of one kind."""
        return tuple(region for region in self.regions.values() if region.kind == kind)

    def named(self, low: int, high: int) -> str | None:
        """The smallest region that holds all addresses from ``low`` to ``high``."""
        holding = [r for r in self.regions.values() if r.low <= low and high <= r.high]
        return min(holding, key=lambda r: r.high - r.low).name if holding else None

    def observations(
        self, image: Image, execution: Execution, unknown: frozenset[int] = frozenset()
    ) -> Iterator[Observation]:
        """Of each fact that the execution shows, the first access that refutes it, else the first.

        Stores show read-only regions. A pointer fact is seen where the instruction of its place
        accesses memory through the register with a constant offset; elsewhere a recording does not
        show registers. ``unknown`` are the instructions of accesses that the analysis takes for
        unknown (``Values.unknown``). Whether memory is cached no recording shows.
        """
        position, low, info = execution.access_words.T
        last, store = low.astype(np.int64) + (info & SIZE) - 1, info > SIZE
        if not len(low):
            return
        pcs = np.frombuffer(execution.pcs, np.uint32)[position]
        for region in self.of_kind(READ_ONLY):
            outside = (last < region.low) | (region.high < low)
            yield from _first(region, position, low, store, outside)
        elsewhere = self.elsewhere
        if self.unknown is not None and elsewhere is not None:
            about = np.isin(pcs, np.fromiter(unknown, np.uint32, len(unknown)))
            inside = (elsewhere[0] <= low) & (last <= elsewhere[1])
            yield from _first(self.unknown, position, low, about, inside)
        for place in self.pointers.keys() & set(pcs.tolist()):
            insn = _insn(image, place)
            for pointer in self.pointers[place]:
                lowest: dict[int, int] = {}
                for row in np.flatnonzero(pcs == place):
                    at, address = int(position[row]), int(low[row])
                    lowest[at] = min(address, lowest.get(at, address))
                yield from _pointed(pointer, insn, lowest)


def _first(
    fact: RegionFact | UnknownPointsInto,
    position: Words,
    address: Words,
    about: Flags,
    allowed: Flags,
) -> Iterator[Observation]:
    """The first access that ``fact`` is about and does not allow, else the first it is about."""
    rows = np.flatnonzero(about & ~allowed)
    holds = not len(rows)
    for row in (np.flatnonzero(about) if holds else rows)[:1]:
        yield Observation(fact, int(position[row]), int(address[row]), holds)


def _pointed(pointer: Pointer, insn: Insn, lowest: Mapping[int, int]) -> Iterator[Observation]:
    """The same of a register, or an address, in executions of one instruction."""
    found: Observation | None = None
    for position, address in lowest.items():
        base: int | None = address
        if pointer.register is not None:
            base = _base(insn, address, pointer.register)
        if base is None:
            return
        holds = base in pointer.known
        if found is None or not holds:
            found = Observation(pointer.fact, position, address, holds)
        if not holds:
            break
    if found is not None:
        yield found


NO_REGIONS = Regions()


def _described(
    fact: PointsInto | UnknownPointsInto | InitialContents, regions: Mapping[str, RegionFact]
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


def _refuse_without_contents(image: Image, fact: InitialContents, region: RegionFact) -> None:
    if region.kind == "device":
        wrong = f"{region.name} is a device, which holds nothing"
    elif not image.stored_in((region.low, region.high)):
        wrong = f"the ELF stores no byte of {region.name}"
    else:
        return
    raise FactsError(wrong, where=str(fact.source), hint="--from-reset speaks of .bss, too")


def _insn(image: Image, address: int) -> Insn:
    code, symbol = image.read(address, 4) or image.read(address, 2), image.symbol_at(address)
    assert code is not None
    return decode(code, address, symbol is not None and symbol[0].thumb)


def _base(insn: Insn, address: int, register: int) -> int | None:
    """What ``register`` held if ``insn`` accessed ``address`` first; None if that does not tell."""
    memory = insn.memory
    if memory is None or memory.base != register or memory.index is not None:
        return None
    offset = memory.displacement if memory.pre_indexed or memory.count > 1 else 0
    return (address - offset) & 0xFFFFFFFF
