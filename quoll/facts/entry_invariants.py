"""Facts about words of memory that hold whenever an exception enters the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quoll import assumptions
from quoll.facts.fact import NAME, Fact, FactForm, FactStage, FactSubject
from quoll.facts.predicate import Comparison, MemoryWord, Predicate, read_predicate
from quoll.intervals.strided_interval import ValueSet, meet, progression

__all__ = ["FORMS", "InvariantFact", "LocatedInvariant"]

WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class InvariantFact(Fact):
    """``invariant NAME: PREDICATE``: it holds at each entry of the platform."""

    stage = FactStage.VALUES
    assumption = assumptions.INVARIANT

    name: str
    predicate: Predicate

    def fields(self) -> Mapping[str, str | int]:
        return {"name": self.name, "predicate": str(self.predicate)}

    def subject(self) -> FactSubject:
        return ("invariant", self.name), self.predicate

    def names(self) -> tuple[str, ...]:
        words = self.predicate.words
        return tuple(dict.fromkeys(text for w in words for text in (w.symbol, w.place)))


@dataclass(frozen=True, slots=True)
class LocatedInvariant:
    """An invariant with the address of each symbol that it names."""

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


FORMS = (
    FactForm(
        r"invariant\b",
        rf"invariant (?P<name>{NAME}): (?P<predicate>.+)",
        "invariant NAME: PREDICATE",
        lambda s, m: InvariantFact(s, m["name"], read_predicate(s, m["predicate"])),
    ),
)
