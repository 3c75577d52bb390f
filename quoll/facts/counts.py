"""Facts about how often places execute: loop bounds and constraints (paper, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quoll.errors import FactsError
from quoll.facts.fact import (
    IN,
    NAME,
    NUMBER,
    PLACE,
    FactForm,
    Limited,
    Placed,
    Question,
    Source,
    Stage,
    number,
    scope,
)

__all__ = ["FORMS", "AtMost", "Conflict", "Consistent", "LoopFact", "LoopParameter"]


@dataclass(frozen=True, slots=True)
class LoopFact(Placed):
    """``loop PLACE at most N``."""

    stage: ClassVar[Stage] = Stage.LOOP_BOUNDS

    source: Source
    place: str
    bound: int

    def __str__(self) -> str:
        return f"loop {self.place} at most {self.bound}"

    def question(self) -> Question:
        return ("loop", self.place), self.bound


@dataclass(frozen=True, slots=True)
class LoopParameter(Placed):
    """``loop PLACE at most NAME + plus``: the answer is a function of NAME (rule 27).

    With ``total``, ``PLACE executes at most NAME + plus times``, on the whole path: what bounds the
    loops whose every turn passes PLACE, however often they are entered.
    """

    stage: ClassVar[Stage] = Stage.INTEGER_PROGRAM

    source: Source
    place: str
    name: str
    plus: int
    total: bool = False

    def __str__(self) -> str:
        most = f"{self.name} + {self.plus}" if self.plus else self.name
        if self.total:
            return f"{self.place} executes at most {most} times"
        return f"loop {self.place} at most {most}"

    def question(self) -> Question:
        if self.total:
            return ("count", self.place, None, None), (self.name, self.plus)
        return ("loop", self.place), (self.name, self.plus)


@dataclass(frozen=True, slots=True)
class Conflict(Limited):
    """``a conflicts with b in function``: not both in one invocation.

    With ``caller``, only in invocations whose call instruction stands in that function; the same
    for the other two forms.
    """

    stage: ClassVar[Stage] = Stage.INTEGER_PROGRAM

    source: Source
    a: str
    b: str
    function: str
    caller: str | None = None

    def __str__(self) -> str:
        return f"{self.a} conflicts with {self.b}{scope(self.function, self.caller)}"

    def question(self) -> Question:
        return pair(self.a, self.b, self.function, self.caller), "conflict"

    def places(self) -> tuple[str, ...]:
        return self.a, self.b


@dataclass(frozen=True, slots=True)
class Consistent(Limited):
    """``a is consistent with b in function``: equally often in one invocation."""

    stage: ClassVar[Stage] = Stage.INTEGER_PROGRAM

    source: Source
    a: str
    b: str
    function: str
    caller: str | None = None

    def __str__(self) -> str:
        return f"{self.a} is consistent with {self.b}{scope(self.function, self.caller)}"

    def question(self) -> Question:
        return pair(self.a, self.b, self.function, self.caller), "consistent"

    def places(self) -> tuple[str, ...]:
        return self.a, self.b


@dataclass(frozen=True, slots=True)
class AtMost(Placed, Limited):
    """``place executes at most n times``: in total, or per invocation of ``function``.

    ``place never executes`` is the same with ``count`` 0.
    """

    stage: ClassVar[Stage] = Stage.INTEGER_PROGRAM

    source: Source
    place: str
    count: int
    function: str | None
    caller: str | None = None

    def __str__(self) -> str:
        verb = f"executes at most {self.count} times" if self.count else "never executes"
        return f"{self.place} {verb}{scope(self.function, self.caller)}"

    def question(self) -> Question:
        return ("count", self.place, self.function, self.caller), self.count


def pair(a: str, b: str, function: str, caller: str | None) -> tuple[object, ...]:
    """Conflict and consistency of the same two places are one question."""
    return ("pair", frozenset((a, b)), function, caller)


def at_least_one(source: Source, bound: int) -> int:
    """``bound``, refused if zero: the header of a loop that is entered executes."""
    if bound == 0:
        raise FactsError(
            "a loop bound counts executions of the header, which are at least 1 per entry",
            where=str(source),
            hint="for a loop that is never entered write: PLACE never executes",
        )
    return bound


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
        lambda s, m: LoopFact(s, m["place"], at_least_one(s, number(m["count"]))),
    ),
    FactForm(
        r"\S+ conflicts\b",
        rf"(?P<a>{PLACE}) conflicts with (?P<b>{PLACE}){IN}",
        "PLACE conflicts with PLACE in FUNCTION [when called from FUNCTION]",
        lambda s, m: Conflict(s, m["a"], m["b"], m["function"], m["caller"]),
    ),
    FactForm(
        r"\S+ is\b",
        rf"(?P<a>{PLACE}) is consistent with (?P<b>{PLACE}){IN}",
        "PLACE is consistent with PLACE in FUNCTION [when called from FUNCTION]",
        lambda s, m: Consistent(s, m["a"], m["b"], m["function"], m["caller"]),
    ),
    FactForm(
        r"\S+ executes\b",
        rf"(?P<place>{PLACE}) executes at most (?P<count>{NUMBER}) times?(?:{IN})?",
        "PLACE executes at most N times [in FUNCTION [when called from FUNCTION]]",
        lambda s, m: AtMost(s, m["place"], number(m["count"]), m["function"], m["caller"]),
    ),
    FactForm(
        r"\S+ never executes\b",
        rf"(?P<place>{PLACE}) never executes(?:{IN})?",
        "PLACE never executes [in FUNCTION [when called from FUNCTION]]",
        lambda s, m: AtMost(s, m["place"], 0, m["function"], m["caller"]),
    ),
)
