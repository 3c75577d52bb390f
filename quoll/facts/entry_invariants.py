"""Facts about words of memory that hold whenever an exception enters the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from quoll import assumptions
from quoll.errors import FactsError
from quoll.facts.fact import (
    NAME,
    NUMBER,
    SYMBOL,
    Fact,
    FactForm,
    FactSource,
    FactStage,
    FactSubject,
    number,
)
from quoll.facts.predicate import Comparison, MemoryWord, Predicate, read_predicate
from quoll.intervals.strided_interval import ValueSet, meet, progression

__all__ = ["FORMS", "ArrayElements", "InvariantFact", "LocatedInvariant"]

WORD = 1 << 32
MOST = 64  # elements of an array: each is a predicate of its own


@dataclass(frozen=True, slots=True)
class ArrayElements:
    """``count`` elements of ``size`` bytes each, from the symbol ``array`` on."""

    array: str
    count: int
    size: int

    def __str__(self) -> str:
        return f"for each of {self.array} ({self.count} elements of {self.size} bytes): "


@dataclass(frozen=True, slots=True)
class InvariantFact(Fact):
    """``invariant NAME: PREDICATE``: it holds at each entry of the platform.

    With ``each``, of every element of an array; the words of the predicate are fields of it.
    """

    stage = FactStage.VALUES
    assumption = assumptions.INVARIANT

    name: str
    predicate: Predicate
    each: ArrayElements | None = None

    def fields(self) -> Mapping[str, str | int]:
        return {"name": self.name, "predicate": f"{self.each or ''}{self.predicate}"}

    def subject(self) -> FactSubject:
        return ("invariant", self.name), (self.predicate, self.each)

    def names(self) -> tuple[str, ...]:
        if self.each is not None:
            return (self.each.array,)
        return tuple(dict.fromkeys(word.symbol for word in self.predicate.words))


@dataclass(frozen=True, slots=True)
class LocatedInvariant:
    """An invariant with the address of each symbol that it names, or of one element under ""."""

    fact: InvariantFact
    addresses: Mapping[str, int]

    def address(self, word: MemoryWord) -> int:
        """The address of the first byte of a word of the predicate."""
        return self.addresses[word.symbol] + word.offset

    def ranges(self) -> dict[tuple[int, int], ValueSet | None]:
        """By address and size, the words that single comparisons allow; None: no word."""
        found: dict[tuple[int, int], ValueSet | None] = {}
        for one in self.fact.predicate.always:
            if (known := range_of(one)) is not None:
                word, allowed = known
                key = self.address(word), word.size
                before = found.get(key, progression(0, (1 << 8 * word.size) - 1, 1))
                found[key] = before and allowed and meet(before, allowed)
        return found


def range_of(one: Comparison) -> tuple[MemoryWord, ValueSet | None] | None:
    """The word that a comparison is about, and its values; None: it is no range of one word."""
    if one.signed or len(one.left.words) != 1 or one.right.words or one.left.constant:
        return None
    [word], number = one.left.words, one.right.constant % WORD
    last = (1 << 8 * word.size) - 1
    if word.mask != WORD - 1:
        return aligned(word, one, number, last)
    low, high = {
        "<=": (0, number),
        "<": (0, number - 1),
        ">=": (number, last),
        ">": (number + 1, last),
        "=": (number, number),
        "!=": (0, last),
    }[one.relation]
    high = min(high, last)
    return word, progression(low, high, 1) if low <= high else None


def aligned(
    word: MemoryWord, one: Comparison, number: int, last: int
) -> tuple[MemoryWord, ValueSet] | None:
    """The multiples of a power of two, where a comparison says that the lowest bits are 0."""
    if one.relation != "=" or number or word.mask & word.mask + 1:
        return None
    return word, progression(0, last - word.mask, word.mask + 1)


def invariant(source: FactSource, match: re.Match[str]) -> InvariantFact:
    """The fact; raises FactsError for elements that are none, too many, or without a field."""
    if match["array"] is None:
        return InvariantFact(source, match["name"], read_predicate(source, match["predicate"]))
    each = ArrayElements(match["array"], number(match["count"]), number(match["size"]))
    predicate = read_predicate(source, match["predicate"], fields=True)
    if not 0 < each.count <= MOST:
        raise FactsError(f"an invariant is of 1 to {MOST} elements", where=str(source))
    for word in predicate.words:
        if word.offset + word.size > each.size:
            raise FactsError(f"'{word}' is behind the end of an element", where=str(source))
    return InvariantFact(source, match["name"], predicate, each)


FORMS = (
    FactForm(
        r"invariant\b",
        rf"invariant (?P<name>{NAME}): (?:for each of (?P<array>{SYMBOL}) \((?P<count>{NUMBER}) "
        rf"elements of (?P<size>{NUMBER}) bytes\): )?(?P<predicate>.+)",
        "invariant NAME: [for each of ARRAY (N elements of S bytes):] PREDICATE",
        invariant,
    ),
)
