"""Facts with the places that they name in one image: each is found once, before any stage.

facts = locate(load(files), image)
facts.at(fact, "sched.c:41").covers(0xf0010d44)    whether a place of the fact is there
dict(facts.addressed(NeverReturnsFact))            the facts of a kind by address
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from quoll.errors import FactsError
from quoll.facts.entry_invariants import InvariantFact, LocatedInvariant
from quoll.facts.fact import Fact, FactSource
from quoll.facts.fact_places import ADDRESS, FactPlace, find_place
from quoll.facts.guidance import ReplacedFact
from quoll.facts.memory_facts import ObjectRegionFact
from quoll.facts.predicate import MemoryWord
from quoll.facts.read import Facts
from quoll.facts.regions import NO_REGIONS, MemoryRegions
from quoll.image.image import Image
from quoll.source.loop_statement import LoopStatement, SingleLoop

__all__ = ["NO_FACTS", "LocatedFacts", "locate"]

F = TypeVar("F", bound=Fact)
PlaceName = tuple[str, LoopStatement | SingleLoop | None]  # all that decides where a place is


@dataclass(frozen=True, slots=True)
class LocatedFacts(Facts):
    """``places``: every place that a fact names; ``regions``: the memory regions."""

    places: Mapping[PlaceName, FactPlace] = field(default_factory=dict)
    regions: MemoryRegions = NO_REGIONS

    def at(self, fact: Fact, text: str) -> FactPlace:
        """Where ``text`` is, which ``fact`` names."""
        return self.places[text, fact.source.statement]

    def addressed(self, kind: type[F]) -> Iterator[tuple[int, F]]:
        """The facts of one kind, each with the addresses of the place that it is about."""
        for fact in self.of(kind):
            for address in self.at(fact, fact.names()[0]).addresses:
                yield address, fact

    def limits(self, fact: Fact) -> tuple[int | None, int | None]:
        """The function to whose invocations ``fact`` is limited, if any, and their caller."""
        named = (self.at(fact, name).addresses[0] for name in fact.functions())
        function, caller, *_ = (*named, None, None)
        return function, caller

    @property
    def invariants(self) -> tuple[LocatedInvariant, ...]:
        """The predicates that hold at entries, with the addresses of their words.

        One for each element of an array.
        """
        return tuple(one for fact in self.of(InvariantFact) for one in self._instances(fact))

    def _instances(self, fact: InvariantFact) -> Iterator[LocatedInvariant]:
        addresses = {name: self.at(fact, name).addresses[0] for name in fact.names()}
        if fact.each is None:
            yield LocatedInvariant(fact, addresses)
            return
        for number in range(fact.each.count):
            place = addresses[fact.each.array] + number * fact.each.size
            yield LocatedInvariant(fact, {"": place})

    def stating(self, facts: Iterable[Fact]) -> LocatedFacts:
        """Other facts about places that these name."""
        return replace(self, facts=tuple(facts))


NO_FACTS = LocatedFacts()


def locate(facts: Facts, image: Image) -> LocatedFacts:
    """``facts`` with their places in ``image``.

    Raises FactsError for the first place that does not exist, or that several symbols could be, and
    as ``MemoryRegions.of``. An address of which a fact bounds the function may be outside of the
    image: in ROM.
    """
    replaced = {fact.function for fact in facts.of(ReplacedFact)}
    rom = {int(name, 16) & ~1 for name in replaced if ADDRESS.fullmatch(name)}
    places: dict[PlaceName, FactPlace] = {}
    for fact in facts.facts:
        for text in fact.names():
            key = text, fact.source.statement
            if key not in places:
                places[key] = _place(image, text, fact.source, rom)
    facts = replace(facts, facts=tuple(_with_addresses(fact, image) for fact in facts.facts))
    regions = MemoryRegions.of(
        facts, image, lambda fact: places[fact.names()[0], fact.source.statement].addresses
    )
    found = LocatedFacts(facts.facts, facts.remarks, places, regions)
    for one in found.invariants:
        for word in one.fact.predicate.words:
            _refuse_outside(image, one, word)
    return found


def _refuse_outside(image: Image, one: LocatedInvariant, word: MemoryWord) -> None:
    """Raise FactsError for a word that is not inside its symbol, and in a section or segment."""
    each, first = one.fact.each, one.address(word)
    symbol = image.symbol(word.symbol if each is None else each.array)
    assert symbol is not None, "its place is found"
    beyond = symbol.size and first + word.size > symbol.addr + symbol.size
    last = first + word.size - 1
    nowhere = image.section_at(last) is None and image.segment_at(last) is None
    if beyond or nowhere:
        where = f"outside {symbol.name}" if beyond else "not in the image"
        raise FactsError(f"'{word}' is {where}", where=str(one.fact.source))


def _with_addresses(fact: Fact, image: Image) -> Fact:
    """The fact; a region that is named by an object, with the object's addresses."""
    if not isinstance(fact, ObjectRegionFact):
        return fact
    symbol = image.symbol(fact.place)
    assert symbol is not None, "its place is found"
    return fact.located(symbol.addr, symbol.size)


def _place(image: Image, text: str, source: FactSource, rom: set[int]) -> FactPlace:
    if ADDRESS.fullmatch(text):
        word = int(text, 16)
        if word & ~1 in rom and image.segment_at(word) is None:
            addr = word & ~1
            return FactPlace((addr,), (word,), ((addr, addr),), exact=True)
    return find_place(image, text, source)
