"""Facts that remove paths from the graph or replace code, vouched for by the user (rule 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quoll import assumptions
from quoll.assumptions import AssumptionKind
from quoll.facts.fact import (
    FUNCTION,
    IN,
    NUMBER,
    PLACE,
    CountedFact,
    Fact,
    FactForm,
    FactStage,
    FactSubject,
    FunctionFact,
    LimitedFact,
    PlacedFact,
    positive,
    scope,
)

ELSEWHERE = 0x4  # an address without a function: the vector of undefined instructions

__all__ = [
    "ELSEWHERE",
    "FORMS",
    "BranchFact",
    "IgnoreEdgeFact",
    "IgnoreFact",
    "PathEndFact",
    "PathStartFact",
    "RecursionFact",
    "ReplacedFact",
    "RequireFact",
    "RestrictedInlining",
    "ReturnsEndFact",
    "SupervisorCallsFact",
    "SupervisorEntersFact",
]


@dataclass(frozen=True, slots=True)
class BranchFact(PlacedFact, LimitedFact):
    """``branch at place is always taken`` (or ``never taken``), optionally only in one function."""

    stage = FactStage.INLINING
    assumption = assumptions.BRANCH

    taken: bool
    function: str | None = None
    caller: str | None = None

    def fields(self) -> Mapping[str, str | int]:
        way = "always" if self.taken else "never"
        return {"place": self.place, "way": way, "scope": scope(self.function, self.caller)}

    def subject(self) -> FactSubject:
        return ("branch", self.place, self.function, self.caller), self.taken


@dataclass(frozen=True, slots=True)
class IgnoreFact(PlacedFact):
    """``ignore place``: no path through the block, or the function that starts there."""

    stage = FactStage.INLINING
    assumption = assumptions.IGNORE

    def subject(self) -> FactSubject:
        return ("passed", self.place), "never"


@dataclass(frozen=True, slots=True)
class IgnoreEdgeFact(Fact):
    """``ignore edge place -> place``: control never passes from one block to the other."""

    stage = FactStage.INLINING
    assumption = assumptions.IGNORE_EDGE

    start: str
    end: str

    def fields(self) -> Mapping[str, str | int]:
        return {"start": self.start, "end": self.end}

    def subject(self) -> FactSubject:
        return ("edge", self.start, self.end), "never"

    def places(self) -> tuple[str, ...]:
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class RequireFact(PlacedFact, CountedFact):
    """``require place``: the place executes at least once on every considered path."""

    stage = FactStage.INLINING
    assumption = assumptions.REQUIRE

    def subject(self) -> FactSubject:
        return ("passed", self.place), "at least once"

    @property
    def monotone(self) -> bool:
        return False

    def broken(self, total: int) -> str:
        return "" if total else "it never executes"

    def fully_counted(self) -> tuple[str, ...]:
        return (self.place,)


@dataclass(frozen=True, slots=True)
class PathEndFact(PlacedFact):
    """``path must end at place`` or ``path may end at place``, after the instruction there.

    ``must``: control never continues. Otherwise some paths end there and others continue.
    """

    stage = FactStage.EXTRACTION
    assumption = assumptions.PATH_EXITS

    must: bool

    def fields(self) -> Mapping[str, str | int]:
        return {"place": self.place, "way": "must" if self.must else "may"}

    def subject(self) -> FactSubject:
        return ("path ends", self.place), self.must


@dataclass(frozen=True, slots=True)
class ReturnsEndFact(Fact):
    """``path must end at every exception return``: none restores a context of the kernel."""

    stage = FactStage.EXTRACTION
    assumption = assumptions.PATH_EXITS

    def fields(self) -> Mapping[str, str | int]:
        return {"place": "every exception return", "way": "must"}

    def subject(self) -> FactSubject:
        return ("exception returns",), "end paths"


@dataclass(frozen=True, slots=True)
class SelfJumpsEndFact(Fact):
    """``path must end at every jump to itself``: also over waits; only an interrupt leaves it."""

    stage = FactStage.EXTRACTION
    assumption = assumptions.PATH_EXITS

    def fields(self) -> Mapping[str, str | int]:
        return {"place": "every jump to itself", "way": "must"}

    def subject(self) -> FactSubject:
        return ("jumps to themselves",), "end paths"


@dataclass(frozen=True, slots=True)
class SupervisorCallsFact(Fact):
    """The effect of ``svc`` in kernel code: the path ends, or it takes ``cycles``."""

    stage = FactStage.EXTRACTION

    cycles: int | None

    @property
    def assumption(self) -> AssumptionKind:
        ends = self.cycles is None
        return assumptions.PATH_EXITS if ends else assumptions.SUPERVISOR_CALLS

    def fields(self) -> Mapping[str, str | int]:
        if self.cycles is None:
            return {"place": "every supervisor call", "way": "must"}
        return {"cycles": f"{self.cycles} cycles"}

    def subject(self) -> FactSubject:
        return ("supervisor calls",), self.cycles


@dataclass(frozen=True, slots=True)
class SupervisorEntersFact(FunctionFact):
    """``every supervisor call enters function``: the kernel's handler, which returns."""

    stage = FactStage.EXTRACTION
    assumption = assumptions.SUPERVISOR_ENTERS

    def subject(self) -> FactSubject:
        return ("supervisor calls",), self.function


@dataclass(frozen=True, slots=True)
class PathStartFact(PlacedFact):
    """``path starts at place``: with the block there, on a path from the entry."""

    stage = FactStage.VALUES
    assumption = assumptions.PATH_STARTS

    def subject(self) -> FactSubject:
        return ("path starts", self.place), True


@dataclass(frozen=True, slots=True)
class ReplacedFact(FunctionFact):
    """``function f takes at most n cycles``: from its first instruction to its return.

    The body is not examined. ``preserves``: its callers see none of its stores.
    """

    stage = FactStage.EXTRACTION
    assumption = assumptions.REPLACED

    cycles: int
    preserves: bool

    def fields(self) -> Mapping[str, str | int]:
        memory = " and preserves memory" if self.preserves else ""
        return {"function": self.function, "cycles": f"{self.cycles} cycles{memory}"}

    def subject(self) -> FactSubject:
        return ("replaced", self.function), (self.cycles, self.preserves)


@dataclass(frozen=True, slots=True)
class RestrictedInlining(Fact):
    """Calls of functions other than those at ``entries`` are not followed.

    Nor are the calls at ``sites``, whose targets are unknown and represented by ``ELSEWHERE``. No
    facts file states this: a command does, and ensures that no result contains such a call.
    """

    stage = FactStage.EXTRACTION
    assumption = assumptions.OTHER_CALLS

    entries: frozenset[int]
    sites: frozenset[int]

    def fields(self) -> Mapping[str, str | int]:
        return {}

    def subject(self) -> FactSubject:
        return ("only followed",), (self.entries, self.sites)


@dataclass(frozen=True, slots=True)
class RecursionFact(FunctionFact):
    """``recursion of f at most n``: the most simultaneous activations of the function."""

    stage = FactStage.INLINING
    assumption = assumptions.RECURSION

    activations: int

    def fields(self) -> Mapping[str, str | int]:
        return {"function": self.function, "activations": self.activations}

    def subject(self) -> FactSubject:
        return ("recursion", self.function), self.activations


NO_CYCLE = "a call takes at least one cycle"
NO_ACTIVATION = "a function that runs has at least one activation"
LEFT_OUT = "to leave the function out write: ignore FUNCTION"
NO_VERB = r"(?!conflicts with|is consistent|executes at|never executes|never returns)"

FORMS = (
    FactForm(
        r"branch at ",
        rf"branch at (?P<place>{PLACE}) is (?P<way>always|never) taken(?:{IN})?",
        "branch at PLACE is always taken|never taken [in FUNCTION [when called from FUNCTION]]",
        lambda s, m: BranchFact(s, m["place"], m["way"] == "always", m["function"], m["caller"]),
    ),
    FactForm(
        rf"ignore edge {NO_VERB}",
        rf"ignore edge (?P<start>{PLACE}) -> (?P<end>{PLACE})",
        "ignore edge PLACE -> PLACE",
        lambda s, m: IgnoreEdgeFact(s, m["start"], m["end"]),
    ),
    FactForm(
        rf"ignore {NO_VERB}",
        rf"ignore (?P<place>{PLACE})",
        "ignore PLACE",
        lambda s, m: IgnoreFact(s, m["place"]),
    ),
    FactForm(
        rf"require {NO_VERB}",
        rf"require (?P<place>{PLACE})",
        "require PLACE",
        lambda s, m: RequireFact(s, m["place"]),
    ),
    FactForm(
        r"path must end at every exception",
        r"path must end at every exception return",
        "path must end at every exception return",
        lambda s, m: ReturnsEndFact(s),
    ),
    FactForm(
        r"path must end at every jump",
        r"path must end at every jump to itself",
        "path must end at every jump to itself",
        lambda s, m: SelfJumpsEndFact(s),
    ),
    FactForm(
        r"path must end at every supervisor",
        r"path must end at every supervisor call",
        "path must end at every supervisor call",
        lambda s, m: SupervisorCallsFact(s, None),
    ),
    FactForm(
        r"every supervisor call enters",
        rf"every supervisor call enters (?P<function>{FUNCTION})",
        "every supervisor call enters FUNCTION",
        lambda s, m: SupervisorEntersFact(s, m["function"]),
    ),
    FactForm(
        r"every supervisor",
        rf"every supervisor call takes at most (?P<cycles>{NUMBER}) cycles?",
        "every supervisor call takes at most N cycles",
        lambda s, m: SupervisorCallsFact(s, positive(s, m["cycles"], NO_CYCLE, LEFT_OUT)),
    ),
    FactForm(
        r"path (must|may) end ",
        rf"path (?P<way>must|may) end at (?P<place>{PLACE})",
        "path must end at PLACE; path may end at PLACE",
        lambda s, m: PathEndFact(s, m["place"], m["way"] == "must"),
    ),
    FactForm(
        r"path ends ",
        r"(?!)",
        "'path must end at PLACE' (no path continues) or 'path may end at PLACE' (later code is "
        "analysed, too)",
        lambda s, m: PathEndFact(s, "", must=True),
    ),
    FactForm(
        r"path starts ",
        rf"path starts at (?P<place>{PLACE})",
        "path starts at PLACE",
        lambda s, m: PathStartFact(s, m["place"]),
    ),
    FactForm(
        r"function \S+ takes\b",
        rf"function (?P<function>{FUNCTION}) takes at most (?P<cycles>{NUMBER}) cycles?"
        r"(?P<preserves> and preserves memory)?",
        "function FUNCTION takes at most N cycles [and preserves memory]",
        lambda s, m: ReplacedFact(
            s, m["function"], positive(s, m["cycles"], NO_CYCLE, LEFT_OUT), bool(m["preserves"])
        ),
    ),
    FactForm(
        r"recursion of ",
        rf"recursion of (?P<function>{FUNCTION}) at most (?P<count>{NUMBER})",
        "recursion of FUNCTION at most N",
        lambda s, m: RecursionFact(
            s, m["function"], positive(s, m["count"], NO_ACTIVATION, LEFT_OUT)
        ),
    ),
)
