"""Predicates over three words of memory, drawn at random."""

from __future__ import annotations

from random import Random

from quoll.facts.entry_invariants import InvariantFact, LocatedInvariant
from quoll.facts.read import parse

__all__ = ["PLACES", "located", "random_predicate"]

SYMBOLS = {"a": 0x1000, "b": 0x2000}
PLACES = {"a": 0x1000, "a+4": 0x1004, "b": 0x2000}


def located(text: str) -> LocatedInvariant:
    """The invariant with this predicate."""
    [fact] = parse(f"invariant n: {text}", "k").facts
    assert isinstance(fact, InvariantFact)
    return LocatedInvariant(fact, SYMBOLS)


def random_predicate(random: Random) -> str:
    """The text of a predicate, often about one word only."""

    def side() -> str:
        parts = []
        for _ in range(random.choice((1, 1, 2))):
            word = random.choice(("", "byte ", "half ")) + random.choice(tuple(PLACES))
            mask = random.choice(("", "", " & 0x7", " & 0x30"))
            number = str(random.choice((0, 1, 7, 8, 255, 256, -1)))
            parts.append(random.choice((word + mask, number)))
        return " + ".join(parts)

    def one() -> str:
        words = random.choice(("", "signed ")) + random.choice(("", "byte ")) + "a"
        relation = random.choice(("<=", "<", ">=", ">", "=", "!="))
        return f"{words} {relation} {side()}" if random.random() < 0.7 else f"a {relation} {side()}"

    ways = (" and ".join(one() for _ in range(random.randint(1, 3))) for _ in range(2))
    return random.choice((" or ".join(ways), one(), f"{one()} and {one()}"))
