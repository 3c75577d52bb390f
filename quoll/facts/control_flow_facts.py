"""Facts about the targets of transfers of control."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from quoll import assumptions
from quoll.facts.fact import (
    FUNCTION,
    PLACE,
    Fact,
    FactForm,
    FactStage,
    FactSubject,
    FunctionFact,
    PlacedFact,
)

__all__ = [
    "FORMS",
    "CallsThroughFact",
    "NeverReturnsFact",
    "ReturnsFact",
    "SwitchesContextFact",
    "TargetsFact",
]


@dataclass(frozen=True, slots=True)
class TargetsFact(PlacedFact):
    """``targets of place are ...``: all targets of an indirect jump or call."""

    stage = FactStage.EXTRACTION
    assumption = assumptions.TARGETS

    targets: tuple[str, ...]

    def fields(self) -> Mapping[str, str | int]:
        return {"place": self.place, "targets": ", ".join(self.targets)}

    def subject(self) -> FactSubject:
        return ("targets", self.place), frozenset(self.targets)

    def names(self) -> tuple[str, ...]:
        return (self.place, *self.targets)


@dataclass(frozen=True, slots=True)
class CallsThroughFact(Fact):
    """``calls at place, ... go through table, ... or to function, ...``: one fact for many sites.

    ``tables`` are symbols of tables, ``vtables of CLASS`` or ``any vtable``. Of a vtable, the call
    loads the slot that it reads; of another table, any function. ``targets`` are functions, or
    ``any address-taken function``.
    """

    stage = FactStage.EXTRACTION
    assumption = assumptions.CALLS_THROUGH

    sites: tuple[str, ...]
    tables: tuple[str, ...]
    targets: tuple[str, ...]

    def fields(self) -> Mapping[str, str | int]:
        through = [f"through {', '.join(self.tables)}"] if self.tables else []
        to = [f"to {', '.join(self.targets)}"] if self.targets else []
        return {"places": ", ".join(self.sites), "where": " or ".join((*through, *to))}

    def subject(self) -> FactSubject:
        targets = frozenset(self.tables), frozenset(self.targets)
        return ("targets", *self.sites), targets

    def places(self) -> tuple[str, ...]:
        return self.sites

    def names(self) -> tuple[str, ...]:
        named = (*self.sites, *self.tables, *self.targets)
        return tuple(name for name in named if " " not in name)  # not of any, or of a class


@dataclass(frozen=True, slots=True)
class NeverReturnsFact(FunctionFact):
    """``function never returns``."""

    stage = FactStage.EXTRACTION
    assumption = assumptions.NEVER_RETURNS

    def subject(self) -> FactSubject:
        return ("returns", self.function), False


@dataclass(frozen=True, slots=True)
class ReturnsFact(PlacedFact):
    """``place returns to its caller``, with the registers and the mode that it relies on."""

    stage = FactStage.EXTRACTION
    assumption = assumptions.RETURNS

    def subject(self) -> FactSubject:
        return ("targets", self.place), frozenset[str]()


@dataclass(frozen=True, slots=True)
class SwitchesContextFact(FunctionFact):
    """``function switches context``: it continues in another thread, and returns later."""

    stage = FactStage.EXTRACTION
    assumption = assumptions.SWITCHES

    def subject(self) -> FactSubject:
        return ("returns", self.function), "as another context"


COMMA = " ?, ?"
CLASS = r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*"
TABLE = rf"(?:any vtable|vtables of {CLASS}|{FUNCTION})"
THROUGH = rf" through (?P<tables>{TABLE}(?:{COMMA}{TABLE})*)"
TARGET = rf"(?:any address-taken function|{PLACE})"
TO = rf" to (?P<targets>{TARGET}(?:{COMMA}{TARGET})*)"


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(re.split(COMMA, text)) if text else ()


FORMS = (
    FactForm(
        r"calls at ",
        rf"calls at (?P<sites>{PLACE}(?:{COMMA}{PLACE})*) go(?=.)(?:{THROUGH})?"
        rf"(?:(?(tables) or){TO})?",
        "calls at PLACE, ... go through TABLE, ... [or to FUNCTION, ...]; a TABLE is a symbol, "
        "'vtables of CLASS' or 'any vtable'; 'any address-taken function' may stand for FUNCTION",
        lambda s, m: CallsThroughFact(
            s, _listed(m["sites"]), _listed(m["tables"]), _listed(m["targets"])
        ),
    ),
    FactForm(
        r"targets of ",
        rf"targets of (?P<place>{PLACE}) are (?P<targets>{PLACE}(?: ?, ?{PLACE})*)",
        "targets of PLACE are PLACE, PLACE, ...",
        lambda s, m: TargetsFact(s, m["place"], tuple(re.split(r" ?, ?", m["targets"]))),
    ),
    FactForm(
        r"\S+ never\b",
        rf"(?P<function>{FUNCTION}) never returns",
        "FUNCTION never returns",
        lambda s, m: NeverReturnsFact(s, m["function"]),
    ),
    FactForm(
        r"\S+ switches\b",
        rf"(?P<function>{FUNCTION}) switches context",
        "FUNCTION switches context",
        lambda s, m: SwitchesContextFact(s, m["function"]),
    ),
    FactForm(
        r"\S+ returns\b",
        rf"(?P<place>{PLACE}) returns to its caller",
        "PLACE returns to its caller",
        lambda s, m: ReturnsFact(s, m["place"]),
    ),
)
