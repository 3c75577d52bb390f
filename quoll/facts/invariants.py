"""Facts about data that the binary does not bound: the range of a register, a list's length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quoll import assumptions
from quoll.errors import FactsError
from quoll.facts.fact import (
    NUMBER,
    PLACE,
    FactForm,
    FactSource,
    FactStage,
    FactSubject,
    PlacedFact,
    number,
)

__all__ = ["FORMS", "REGISTERS", "ListAtMostFact", "RegisterAtMostFact"]

REGISTERS = {**{f"r{n}": n for n in range(15)}, "sp": 13, "lr": 14}


@dataclass(frozen=True, slots=True)
class RegisterAtMostFact(PlacedFact):
    """``register rN at PLACE is at most M``, unsigned.

    It holds whenever the instruction at the place is about to execute.
    """

    stage = FactStage.VALUES
    assumption = assumptions.REGISTER

    register: int
    most: int

    def fields(self) -> Mapping[str, str | int]:
        return {"register": self.register, "place": self.place, "most": self.most}

    def subject(self) -> FactSubject:
        return ("at most", self.register, self.place), self.most


@dataclass(frozen=True, slots=True)
class ListAtMostFact(PlacedFact):
    """``list at PLACE has at most N elements``: the list that the loop there walks.

    It holds at every entry of the loop: starting from the loop's first element and following its
    own loads of links, there are at most N elements before a link is 0.
    """

    stage = FactStage.LOOP_BOUNDS
    assumption = assumptions.LIST

    most: int

    def fields(self) -> Mapping[str, str | int]:
        return {"place": self.place, "most": self.most}

    def subject(self) -> FactSubject:
        return ("list", self.place), self.most


def at_most(source: FactSource, register: str, place: str, most: int) -> RegisterAtMostFact:
    """The fact; raises FactsError for an invalid register or number."""
    if register not in REGISTERS:
        raise FactsError(f"there is no register {register}", where=str(source))
    if most >= 1 << 32:
        raise FactsError(f"a register holds less than {most:#x}", where=str(source))
    return RegisterAtMostFact(source, place, REGISTERS[register], most)


FORMS = (
    FactForm(
        r"register \S+ at \S+ is\b",
        rf"register (?P<register>\w+) at (?P<place>{PLACE}) is (?:at most (?P<most>{NUMBER})|0)",
        "register rN at PLACE is at most M",
        lambda s, m: at_most(s, m["register"], m["place"], number(m["most"] or "0")),
    ),
    FactForm(
        r"list at \S+ has\b",
        rf"list at (?P<place>{PLACE}) has at most (?P<most>{NUMBER}) elements?",
        "list at PLACE has at most N elements",
        lambda s, m: ListAtMostFact(s, m["place"], number(m["most"])),
    ),
)
