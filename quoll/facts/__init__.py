"""Facts files: see ``quoll.facts.read``."""

from quoll.facts.control import NeverReturns, Targets
from quoll.facts.counts import AtMost, Conflict, Consistent, LoopFact, LoopParameter
from quoll.facts.fact import Fact, Source
from quoll.facts.read import Facts, load, parse

__all__ = [
    "AtMost",
    "Conflict",
    "Consistent",
    "Fact",
    "Facts",
    "LoopFact",
    "LoopParameter",
    "NeverReturns",
    "Source",
    "Targets",
    "load",
    "parse",
]
