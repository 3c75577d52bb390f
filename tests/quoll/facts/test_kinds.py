"""Kinds of facts: the required properties of each."""

from __future__ import annotations

from collections.abc import Iterator

from quoll.facts.count_facts import RelatedFact
from quoll.facts.fact import CountedFact, Fact, FunctionFact, LimitedFact, PlacedFact
from quoll.facts.read import FORMS

BASES = (Fact, PlacedFact, FunctionFact, LimitedFact, CountedFact, RelatedFact)


def kinds(base: type[object]) -> Iterator[type[object]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_kind_says_what_it_is_about() -> None:
    """The forms come from the modules of all kinds, which are imported with them."""
    bases = {base.__name__ for base in BASES}
    found = {kind for kind in kinds(Fact) if kind.__name__ not in bases}
    assert len(FORMS) > 15
    assert len({kind.__name__ for kind in found}) > 15
    assert not [kind for kind in found if issubclass(kind, Fact) and kind.subject is Fact.subject]
