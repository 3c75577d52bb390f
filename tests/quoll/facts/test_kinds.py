"""Kinds of facts: what each one must say of itself."""

from __future__ import annotations

from collections.abc import Iterator

import quoll.facts.read  # noqa: F401 (imports every kind)
from quoll.facts.counts import Related
from quoll.facts.fact import Counted, Fact, Limited, Placed

BASES = (Fact, Placed, Limited, Counted, Related)


def kinds(base: type[Fact]) -> Iterator[type[Fact]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_kind_says_what_it_is_about() -> None:
    found = {kind for kind in kinds(Fact) if kind.__name__ not in {b.__name__ for b in BASES}}
    assert len(found) > 15
    assert not [kind for kind in found if kind.question is Fact.question]
