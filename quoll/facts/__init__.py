"""Facts files: knowledge of the user that the binary does not contain.

Takes lines of text, one fact a line.
Gives ``Facts``: a class for each kind and its stage; ``LocatedFacts``: their places in an image.
Source: Blackham, Shi, Heiser, EuroSys 2012, section 5.2, for constraints; docs/facts.md.
Names: read.load, read.parse, fact.FactForm, located.locate, regions.MemoryRegions.
"""

from quoll.facts.control_flow_facts import (
    CallsThroughFact,
    NeverReturnsFact,
    ReturnsFact,
    SwitchesContextFact,
    TargetsFact,
)
from quoll.facts.count_facts import (
    AtMostFact,
    ConflictFact,
    ConsistentFact,
    LoopFact,
    LoopParameter,
)
from quoll.facts.fact import Fact, FactSource, FactStage
from quoll.facts.guidance import (
    BranchFact,
    IgnoreEdgeFact,
    IgnoreFact,
    PathEndFact,
    PathStartFact,
    RecursionFact,
    ReplacedFact,
    RequireFact,
    ReturnsEndFact,
    SelfJumpsEndFact,
    SupervisorCallsFact,
    SupervisorEntersFact,
)
from quoll.facts.invariants import ListAtMostFact, RegisterAtMostFact
from quoll.facts.linear import LinearFact
from quoll.facts.memory_facts import (
    InitialContentsFact,
    PointsIntoFact,
    RegionFact,
    UnknownPointsIntoFact,
)
from quoll.facts.read import Facts, load, parse

__all__ = [
    "AtMostFact",
    "BranchFact",
    "CallsThroughFact",
    "ConflictFact",
    "ConsistentFact",
    "Fact",
    "FactSource",
    "FactStage",
    "Facts",
    "IgnoreEdgeFact",
    "IgnoreFact",
    "InitialContentsFact",
    "LinearFact",
    "ListAtMostFact",
    "LoopFact",
    "LoopParameter",
    "NeverReturnsFact",
    "PathEndFact",
    "PathStartFact",
    "PointsIntoFact",
    "RecursionFact",
    "RegionFact",
    "RegisterAtMostFact",
    "ReplacedFact",
    "RequireFact",
    "ReturnsEndFact",
    "ReturnsFact",
    "SelfJumpsEndFact",
    "SupervisorCallsFact",
    "SupervisorEntersFact",
    "SwitchesContextFact",
    "TargetsFact",
    "UnknownPointsIntoFact",
    "load",
    "parse",
]
