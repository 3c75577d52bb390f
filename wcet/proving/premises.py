"""The facts that proofs may depend on, and the proof that each kind of fact lacks.

PREMISES    they define the paths, or the board: every analysis applies them
SHAPING     the graph and its values depend on them: proofs do without them first
the others  nothing but integer programs, and bounds of loops, depends on them
"""

from __future__ import annotations

from collections.abc import Mapping

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
    NeverExecutesFact,
)
from quoll.facts.entry_invariants import InvariantFact
from quoll.facts.fact import Fact
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
from quoll.facts.interrupt_facts import BeginsUnmaskedFact
from quoll.facts.invariants import ListAtMostFact, RegisterAtMostFact
from quoll.facts.linear import LinearFact
from quoll.facts.memory_facts import (
    InitialContentsFact,
    PointsIntoFact,
    RegionFact,
    UnknownPointsIntoFact,
)

__all__ = ["is_premise", "is_shaping", "needed_for"]

DEFINES = "nothing: it defines the paths that a bound is about"
PREMISES: Mapping[type[Fact], str] = {
    PathEndFact: DEFINES,
    PathStartFact: DEFINES,
    ReturnsEndFact: DEFINES,
    SelfJumpsEndFact: DEFINES,
    SupervisorCallsFact: "a bound of the handler: every supervisor call enters FUNCTION",
    SupervisorEntersFact: "an invariant of the handler: it preserves r4 to r11, sp and the mode",
    TargetsFact: "an invariant of the table or object that holds the address: its possible words",
    CallsThroughFact: "an invariant of the objects that choose the function: their tables",
    ReturnsFact: "an invariant of the saved return address: no store changes it",
    NeverReturnsFact: "no path from the function's first instruction to a return",
    SwitchesContextFact: "an invariant of the saved contexts: where each one goes on",
    ReplacedFact: "a bound of the function: 'wcet analyse --entry FUNCTION' without this fact",
    BeginsUnmaskedFact: "the interrupt mask at every call of the function, and at the entry",
}
SHAPING: Mapping[type[Fact], str] = {
    NeverExecutesFact: "an invariant of the words that the conditions on the way there test",
    BranchFact: "an invariant of the words that the branch tests",
    IgnoreFact: "an invariant of the words that the conditions on the way there test",
    IgnoreEdgeFact: "an invariant of the words that the transfer tests",
    RecursionFact: "a measure that each call of the recursion lowers, and its first value",
    RegisterAtMostFact: "an invariant of the word that the register is loaded from: its range",
    PointsIntoFact: "an invariant of the pointer: no store writes another address there",
    UnknownPointsIntoFact: "an invariant of all pointers that are loaded from memory",
    InvariantFact: "that each entry preserves it, perhaps with another invariant",
    ListAtMostFact: "an invariant of the links: after N elements one is 0, and none leads back",
    InitialContentsFact: "that no code stores there before the path starts: start-up code, "
    "all entries, user programs and other masters of the bus",
}
COUNTING: Mapping[type[Fact], str] = {
    LoopFact: "a bound of the loop by an invariant of the words that decide its iterations",
    LoopParameter: "an invariant that relates the words which decide the iterations to the name",
    ConflictFact: "an invariant of the words that the conditions of both places test",
    ConsistentFact: "an invariant of the words that the conditions of both places test",
    AtMostFact: "bounds of the loops around the place, or that some of its copies exclude others",
    LinearFact: "an invariant that relates the counts",
    RequireFact: "an invariant of the words that the conditions on the way there test",
}
READ_ONLY = "that no code stores there: no store of any entry, start-up code or user program"
BOARD = "the board's manual, or the code that sets up caches and translation"


def is_premise(fact: Fact) -> bool:
    """Whether every analysis applies the fact, so that no proof of it is tried."""
    return type(fact) in PREMISES or (isinstance(fact, RegionFact) and fact.kind != "read-only")


def is_shaping(fact: Fact) -> bool:
    """Whether graphs and values depend on a fact that may be proved."""
    return type(fact) in SHAPING or (isinstance(fact, RegionFact) and fact.kind == "read-only")


def needed_for(fact: Fact) -> str:
    """The proof that an assumed fact lacks."""
    if isinstance(fact, RegionFact):
        return READ_ONLY if fact.kind == "read-only" else BOARD
    return {**PREMISES, **SHAPING, **COUNTING}[type(fact)]
