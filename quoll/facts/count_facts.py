"""Facts about execution counts of places: loop bounds and constraints (paper, section 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quoll import assumptions
from quoll.assumptions import AssumptionKind
from quoll.facts.fact import (
    IN,
    NAME,
    NUMBER,
    PLACE,
    CountedFact,
    FactForm,
    FactSource,
    FactStage,
    FactSubject,
    LimitedFact,
    PlacedFact,
    invocations,
    number,
    positive,
    scope,
)

__all__ = [
    "FORMS",
    "AtMostFact",
    "ConflictFact",
    "ConsistentFact",
    "LoopFact",
    "LoopParameter",
    "NeverExecutesFact",
]


@dataclass(frozen=True, slots=True)
class LoopFact(PlacedFact):
    """``loop PLACE at most N``."""

    stage = FactStage.LOOP_BOUNDS
    assumption = assumptions.LOOP_FACT

    bound: int

    def fields(self) -> Mapping[str, str | int]:
        return {"evidence": f": {self}"}

    def __str__(self) -> str:
        return f"loop {self.place} at most {self.bound}"

    def subject(self) -> FactSubject:
        return ("loop", self.place), self.bound


@dataclass(frozen=True, slots=True)
class LoopParameter(PlacedFact):
    """``loop PLACE at most NAME + plus``: the result is a function of NAME (rule 27).

    With ``total``, ``PLACE executes at most NAME + plus times`` on the whole path: this bounds the
    loops whose every iteration passes PLACE, for all their entries together.
    """

    stage = FactStage.INTEGER_PROGRAM
    assumption = assumptions.LOOP_FACT

    name: str
    plus: int
    total: bool = False

    def fields(self) -> Mapping[str, str | int]:
        return {"evidence": f": {self}"}

    def __str__(self) -> str:
        most = f"{self.name} + {self.plus}" if self.plus else self.name
        if self.total:
            return f"{self.place} executes at most {most} times"
        return f"loop {self.place} at most {most}"

    def subject(self) -> FactSubject:
        if self.total:
            return ("count", self.place, None, None), (self.name, self.plus)
        return ("loop", self.place), (self.name, self.plus)


@dataclass(frozen=True, slots=True)
class RelatedFact(LimitedFact, CountedFact):
    """Two places in the invocations of one function; their relation is one query.

    With ``caller``, the fact holds only in invocations from a call instruction in that function, as
    for ``AtMostFact``.
    """

    stage = FactStage.INTEGER_PROGRAM

    a: str
    b: str
    function: str
    caller: str | None = None

    def fields(self) -> Mapping[str, str | int]:
        return {"a": self.a, "b": self.b, "function": invocations(self.function, self.caller)}

    def places(self) -> tuple[str, ...]:
        return self.a, self.b

    def relation_subject(self) -> tuple[object, ...]:
        """The subject of each kind of relation."""
        return "pair", frozenset((self.a, self.b)), self.function, self.caller


class ConflictFact(RelatedFact):
    """``a conflicts with b in function``: at most one of them executes in one invocation."""

    __slots__ = ()
    assumption = assumptions.CONFLICT

    def subject(self) -> FactSubject:
        return self.relation_subject(), "conflict"


class ConsistentFact(RelatedFact):
    """``a is consistent with b in function``: both execute equally often in one invocation."""

    __slots__ = ()
    assumption = assumptions.CONSISTENT

    def subject(self) -> FactSubject:
        return self.relation_subject(), "consistent"

    def fully_counted(self) -> tuple[str, ...]:
        return self.places()


@dataclass(frozen=True, slots=True)
class AtMostFact(PlacedFact, LimitedFact, CountedFact):
    """``place executes at most n times``: in total, or per invocation of ``function``."""

    stage = FactStage.INTEGER_PROGRAM

    count: int
    function: str | None
    caller: str | None = None

    @property
    def assumption(self) -> AssumptionKind:
        return assumptions.COUNT if self.count else assumptions.NEVER

    def fields(self) -> Mapping[str, str | int]:
        within = scope(self.function, self.caller)
        if not self.count:
            return {"place": self.place, "scope": within}
        return {"place": self.place, "count": f"{self.count} times{within}"}

    def subject(self) -> FactSubject:
        return ("count", self.place, self.function, self.caller), self.count

    def broken(self, total: int) -> str:
        return f"{total} times" if total > self.count else ""


class NeverExecutesFact(AtMostFact):
    """``place never executes``: the count is 0, and code that only it leads to is left out."""

    __slots__ = ()
    stage = FactStage.INLINING


def _count(
    source: FactSource, place: str, count: int, function: str | None, caller: str | None
) -> AtMostFact:
    """The fact about a count; of 0, that the place never executes."""
    kind = AtMostFact if count else NeverExecutesFact
    return kind(source, place, count, function, caller)


NO_HEADER = "a loop bound counts executions of the header, which are at least 1 per entry"
NEVER_ENTERED = "for a loop that is never entered write: PLACE never executes"

FORMS = (
    FactForm(
        rf"loop {PLACE} at most [A-Za-z_]",
        rf"loop (?P<place>{PLACE}) at most (?P<name>{NAME})(?: ?\+ ?(?P<plus>{NUMBER}))?",
        "loop PLACE at most NAME [+ N]",
        lambda s, m: LoopParameter(s, m["place"], m["name"], number(m["plus"] or "0")),
    ),
    FactForm(
        r"\S+ executes at most [A-Za-z_]",
        rf"(?P<place>{PLACE}) executes at most (?P<name>{NAME})"
        rf"(?: ?\+ ?(?P<plus>{NUMBER}))? times",
        "PLACE executes at most NAME [+ N] times",
        lambda s, m: LoopParameter(s, m["place"], m["name"], number(m["plus"] or "0"), True),
    ),
    FactForm(
        r"loop (?!conflicts with|is consistent|executes at|never executes|never returns)",
        rf"loop (?P<place>{PLACE}) at most (?P<count>{NUMBER})",
        "loop PLACE at most N",
        lambda s, m: LoopFact(s, m["place"], positive(s, m["count"], NO_HEADER, NEVER_ENTERED)),
    ),
    FactForm(
        r"\S+ conflicts\b",
        rf"(?P<a>{PLACE}) conflicts with (?P<b>{PLACE}){IN}",
        "PLACE conflicts with PLACE in FUNCTION [when called from FUNCTION]",
        lambda s, m: ConflictFact(s, m["a"], m["b"], m["function"], m["caller"]),
    ),
    FactForm(
        r"\S+ is\b",
        rf"(?P<a>{PLACE}) is consistent with (?P<b>{PLACE}){IN}",
        "PLACE is consistent with PLACE in FUNCTION [when called from FUNCTION]",
        lambda s, m: ConsistentFact(s, m["a"], m["b"], m["function"], m["caller"]),
    ),
    FactForm(
        r"\S+ executes\b",
        rf"(?P<place>{PLACE}) executes at most (?P<count>{NUMBER}) times?(?:{IN})?",
        "PLACE executes at most N times [in FUNCTION [when called from FUNCTION]]",
        lambda s, m: _count(s, m["place"], number(m["count"]), m["function"], m["caller"]),
    ),
    FactForm(
        r"\S+ never executes\b",
        rf"(?P<place>{PLACE}) never executes(?:{IN})?",
        "PLACE never executes [in FUNCTION [when called from FUNCTION]]",
        lambda s, m: NeverExecutesFact(s, m["place"], 0, m["function"], m["caller"]),
    ),
)
