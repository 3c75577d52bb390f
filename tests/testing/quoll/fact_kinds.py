"""The kinds of facts that a line can state, for tests of all of them."""

from __future__ import annotations

from quoll.facts.fact import Fact
from quoll.facts.guidance import RestrictedInlining
from quoll.facts.read import FORMS

__all__ = ["fact_kinds"]


def fact_kinds() -> list[type[Fact]]:
    """The classes with a subject, by name; their modules are imported with the forms."""
    found: dict[str, type[Fact]] = {}
    pending = Fact.__subclasses__()
    while pending:
        kind = pending.pop()  # the class with slots before the one that it was made of
        pending += kind.__subclasses__()
        if kind.subject is not Fact.subject:
            found.setdefault(kind.__name__, kind)
    del found[RestrictedInlining.__name__]
    assert len(found) > len(FORMS) // 2
    return [kind for _, kind in sorted(found.items())]
