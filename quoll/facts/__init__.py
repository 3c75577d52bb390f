"""Facts files: what the user knows and the binary does not say.

Takes lines of text, one fact a line.
Gives ``Facts``: a class for each kind, its places, functions and stage.
Source: Blackham, Shi, Heiser, EuroSys 2012, section 5.2, for constraints; docs/facts.md.
Names: read.load, read.parse, fact.FactForm, places.resolve, regions.Regions, contract.Contract.
"""

from quoll.facts.control import CallsThrough, NeverReturns, Returns, SwitchesContext, Targets
from quoll.facts.counts import AtMost, Conflict, Consistent, LoopFact, LoopParameter
from quoll.facts.fact import Fact, Source, Stage
from quoll.facts.guidance import (
    Branch,
    Ignore,
    IgnoreEdge,
    PathEnd,
    PathStart,
    RecursionFact,
    Replaced,
    Require,
    ReturnsEnd,
    SelfJumpsEnd,
    SupervisorCalls,
    SupervisorEnters,
)
from quoll.facts.invariants import ListAtMost, RegisterAtMost
from quoll.facts.linear import Linear
from quoll.facts.memory import InitialContents, PointsInto, RegionFact, UnknownPointsInto
from quoll.facts.read import Facts, load, parse

__all__ = [
    "AtMost",
    "Branch",
    "CallsThrough",
    "Conflict",
    "Consistent",
    "Fact",
    "Facts",
    "Ignore",
    "IgnoreEdge",
    "InitialContents",
    "Linear",
    "ListAtMost",
    "LoopFact",
    "LoopParameter",
    "NeverReturns",
    "PathEnd",
    "PathStart",
    "PointsInto",
    "RecursionFact",
    "RegionFact",
    "RegisterAtMost",
    "Replaced",
    "Require",
    "Returns",
    "ReturnsEnd",
    "SelfJumpsEnd",
    "Source",
    "Stage",
    "SupervisorCalls",
    "SupervisorEnters",
    "SwitchesContext",
    "Targets",
    "UnknownPointsInto",
    "load",
    "parse",
]
