"""Facts that cut the graph or stand in for code: what the user vouches for (rule 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quoll.errors import FactsError
from quoll.facts.fact import (
    FUNCTION,
    IN,
    NUMBER,
    PLACE,
    FactForm,
    FactKind,
    Limited,
    Placed,
    Question,
    Source,
    Stage,
    number,
    scope,
)

__all__ = [
    "FORMS",
    "Branch",
    "Ignore",
    "IgnoreEdge",
    "PathEnd",
    "PathStart",
    "RecursionFact",
    "Replaced",
    "Require",
]


@dataclass(frozen=True, slots=True)
class Branch(Placed, Limited):
    """``branch at place is always taken`` (or ``never taken``), perhaps only in a function."""

    stage: ClassVar[Stage] = Stage.INLINING

    source: Source
    place: str
    taken: bool
    function: str | None = None
    caller: str | None = None

    def __str__(self) -> str:
        way = "always" if self.taken else "never"
        return f"branch at {self.place} is {way} taken{scope(self.function, self.caller)}"

    def question(self) -> Question:
        return ("branch", self.place, self.function, self.caller), self.taken


@dataclass(frozen=True, slots=True)
class Ignore(Placed):
    """``ignore place``: no path through the block, or the function that starts there."""

    stage: ClassVar[Stage] = Stage.INLINING

    source: Source
    place: str

    def __str__(self) -> str:
        return f"ignore {self.place}"

    def question(self) -> Question:
        return ("passed", self.place), "never"


@dataclass(frozen=True, slots=True)
class IgnoreEdge(FactKind):
    """``ignore edge place -> place``: control never passes from one block to the other."""

    stage: ClassVar[Stage] = Stage.INLINING

    source: Source
    start: str
    end: str

    def __str__(self) -> str:
        return f"ignore edge {self.start} -> {self.end}"

    def question(self) -> Question:
        return ("edge", self.start, self.end), "never"

    def places(self) -> tuple[str, ...]:
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class Require(Placed):
    """``require place``: only paths on which the place executes at least once."""

    stage: ClassVar[Stage] = Stage.INLINING

    source: Source
    place: str

    def __str__(self) -> str:
        return f"require {self.place}"

    def question(self) -> Question:
        return ("passed", self.place), "at least once"


@dataclass(frozen=True, slots=True)
class PathEnd(Placed):
    """``path must end at place`` or ``path may end at place``: after the instruction there.

    ``must``: control never goes on. Else a path that ends there is one of several.
    """

    stage: ClassVar[Stage] = Stage.EXTRACTION

    source: Source
    place: str
    must: bool

    def __str__(self) -> str:
        return f"path {'must' if self.must else 'may'} end at {self.place}"

    def question(self) -> Question:
        return ("path ends", self.place), self.must


@dataclass(frozen=True, slots=True)
class PathStart(Placed):
    """``path starts at place``: with the block there, on the way from the entry."""

    stage: ClassVar[Stage] = Stage.VALUES

    source: Source
    place: str

    def __str__(self) -> str:
        return f"path starts at {self.place}"

    def question(self) -> Question:
        return ("path starts", self.place), True


@dataclass(frozen=True, slots=True)
class Replaced(FactKind):
    """``function f takes at most n cycles``: from its first instruction to its return.

    The body is not looked at. ``preserves``: no store of it is seen by its callers.
    """

    stage: ClassVar[Stage] = Stage.EXTRACTION

    source: Source
    function: str
    cycles: int
    preserves: bool

    def __str__(self) -> str:
        memory = " and preserves memory" if self.preserves else ""
        return f"function {self.function} takes at most {self.cycles} cycles{memory}"

    def question(self) -> Question:
        return ("replaced", self.function), (self.cycles, self.preserves)


@dataclass(frozen=True, slots=True)
class RecursionFact(FactKind):
    """``recursion of f at most n``: so many activations of the function at a time."""

    stage: ClassVar[Stage] = Stage.INLINING

    source: Source
    function: str
    activations: int

    def __str__(self) -> str:
        return f"recursion of {self.function} at most {self.activations}"

    def question(self) -> Question:
        return ("recursion", self.function), self.activations


def takes(source: Source, function: str, cycles: int, preserves: bool) -> Replaced:
    """A replacement, refused if it is free."""
    if cycles == 0:
        raise FactsError(
            "a call takes at least one cycle",
            where=str(source),
            hint="to leave the function out write: ignore FUNCTION",
        )
    return Replaced(source, function, cycles, preserves)


def deep(source: Source, function: str, activations: int) -> RecursionFact:
    """A depth, refused if it is zero."""
    if activations == 0:
        raise FactsError(
            "a function that runs has at least one activation",
            where=str(source),
            hint="to leave the function out write: ignore FUNCTION",
        )
    return RecursionFact(source, function, activations)


NO_VERB = r"(?!conflicts with|is consistent|executes at|never executes|never returns)"

FORMS = (
    FactForm(
        r"branch at ",
        rf"branch at (?P<place>{PLACE}) is (?P<way>always|never) taken(?:{IN})?",
        "branch at PLACE is always taken|never taken [in FUNCTION [when called from FUNCTION]]",
        lambda s, m: Branch(s, m["place"], m["way"] == "always", m["function"], m["caller"]),
    ),
    FactForm(
        rf"ignore edge {NO_VERB}",
        rf"ignore edge (?P<start>{PLACE}) -> (?P<end>{PLACE})",
        "ignore edge PLACE -> PLACE",
        lambda s, m: IgnoreEdge(s, m["start"], m["end"]),
    ),
    FactForm(
        rf"ignore {NO_VERB}",
        rf"ignore (?P<place>{PLACE})",
        "ignore PLACE",
        lambda s, m: Ignore(s, m["place"]),
    ),
    FactForm(
        rf"require {NO_VERB}",
        rf"require (?P<place>{PLACE})",
        "require PLACE",
        lambda s, m: Require(s, m["place"]),
    ),
    FactForm(
        r"path (must|may) end ",
        rf"path (?P<way>must|may) end at (?P<place>{PLACE})",
        "path must end at PLACE; path may end at PLACE",
        lambda s, m: PathEnd(s, m["place"], m["way"] == "must"),
    ),
    FactForm(
        r"path ends ",
        r"(?!)",
        "'path must end at PLACE' (what follows is no part of any path) or 'path may end at PLACE' "
        "(a path may go on, and what follows is analysed)",
        lambda s, m: PathEnd(s, "", must=True),
    ),
    FactForm(
        r"path starts ",
        rf"path starts at (?P<place>{PLACE})",
        "path starts at PLACE",
        lambda s, m: PathStart(s, m["place"]),
    ),
    FactForm(
        r"function \S+ takes\b",
        rf"function (?P<function>{FUNCTION}) takes at most (?P<cycles>{NUMBER}) cycles?"
        r"(?P<preserves> and preserves memory)?",
        "function FUNCTION takes at most N cycles [and preserves memory]",
        lambda s, m: takes(s, m["function"], number(m["cycles"]), bool(m["preserves"])),
    ),
    FactForm(
        r"recursion of ",
        rf"recursion of (?P<function>{FUNCTION}) at most (?P<count>{NUMBER})",
        "recursion of FUNCTION at most N",
        lambda s, m: deep(s, m["function"], number(m["count"])),
    ),
)
