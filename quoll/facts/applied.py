"""Edges, places and functions that facts removed from a graph, or replaced in it.

Programs and supergraphs carry them, so that an error about a recorded execution names the fact that
it refutes (rule 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from quoll.arm.insn import Insn
from quoll.assumptions import LOOP_FACT, Assumption
from quoll.facts.contract import ANY_ARGUMENTS, CALLEE_SAVED, ByteSpan, ReadArguments
from quoll.facts.control_flow_facts import SwitchesContextFact
from quoll.facts.fact import Fact, FactSource
from quoll.facts.guidance import (
    BranchFact,
    IgnoreEdgeFact,
    IgnoreFact,
    PathEndFact,
    PathStartFact,
    RecursionFact,
    ReplacedFact,
    ReturnsEndFact,
    SelfJumpsEndFact,
    SupervisorCallsFact,
    SupervisorEntersFact,
)
from quoll.facts.read import Facts
from quoll.intervals.strided_interval import ValueSet

__all__ = [
    "CALLEE_SAVED",
    "NO_GUIDANCE",
    "AppliedGuidance",
    "CallCycles",
    "CyclesByArrival",
    "FunctionReplacement",
    "LimitedCycles",
    "RecursionDepth",
    "RemovedEdge",
    "RequiredPlace",
    "unused_guidance",
]

GUIDING = (
    BranchFact,
    IgnoreFact,
    IgnoreEdgeFact,
    PathEndFact,
    PathStartFact,
    RecursionFact,
    ReplacedFact,
    ReturnsEndFact,
    SelfJumpsEndFact,
    SwitchesContextFact,
    SupervisorCallsFact,
    SupervisorEntersFact,
)


@dataclass(frozen=True, slots=True)
class RemovedEdge:
    """Control does not pass from the instruction at ``source`` to the instruction at ``target``.

    None stands for any other end: ``source`` None for an ignored block or function, ``target`` None
    for every effect of the instruction but falling through. Not ``everywhere``: in some calling
    contexts it does.
    """

    source: int | None
    target: int | None
    fact: Assumption
    everywhere: bool = True

    def explains(self, source: int, target: int | None) -> bool:
        """Whether an execution from ``source`` to ``target`` (None: ends) refutes the fact."""
        return self.source in (None, source) and self.target in (None, target)


@dataclass(frozen=True, slots=True)
class RequiredPlace:
    """Every path executes one of ``addresses``, if one of them is in the graph."""

    addresses: frozenset[int]
    fact: Assumption


@dataclass(frozen=True, slots=True)
class LimitedCycles:
    """The most cycles of a call that executes counted places in certain ranges of counts.

    ``counts``: the least executions of each place, by the source of the fact that limits them on
    the whole path. Zeros are left out. ``result``: the possible words of r0 after the call; None if
    calls are not told apart by it.
    """

    counts: tuple[tuple[FactSource, int], ...]
    cycles: int
    result: ValueSet | None = None


@dataclass(frozen=True, slots=True)
class CallCycles:
    """The most cycles of a call; ``limited`` as in ``FunctionReplacement``."""

    cycles: int
    limited: tuple[LimitedCycles, ...] = ()


@dataclass(frozen=True, slots=True)
class CyclesByArrival:
    """The cycles of a function with tests for interrupts, by the arrival of the interrupt.

    ``called``: it is pending at the call. ``behind``: it arrives behind a test in the function, and
    the cycles are the rest of the call; None if no path starts there.
    """

    called: CallCycles
    behind: CallCycles | None


@dataclass(frozen=True, slots=True)
class FunctionReplacement:
    """The function takes at most ``cycles``; ``preserves``: it preserves its callers' memory.

    It preserves the registers ``preserved``, and with ``preserves_mode`` the processor mode.
    ``settled``: it was analysed, and ``cycles`` include all its memory accesses. ``stores``: known
    places of its callers' frames that it may store to (``quoll.facts.contract``). ``exits``:
    instructions in it that end the path, within ``cycles``. For a function that switches contexts,
    ``cycles`` and ``fact`` are None until they are known. ``handler`` is the start of the function
    if it is the handler of an exception, which is taken there. ``written``: first and last bytes of
    all stores in it with one address; None if it may store to any. ``limited``: the cycles by
    counts of places in it and by its result, the largest ``cycles`` among them; empty if neither
    matters. ``reads``: the words of its callers that it may read.
    ``result``: the possible words of r0 when it returns; None if they are not known. ``returns``:
    False if ``cycles`` are the rest of the path. ``tests``: it tests for interrupts, and may
    acknowledge one; ``cycles`` are the most of any arrival. ``behind``: they are of one kind of
    arrival only, behind a test in the function, or before the call. Without ``tests``, a function
    ``assumes_pending`` if tests in it see a pending interrupt, and ``acknowledges`` if it may
    acknowledge one.
    """

    cycles: int | None
    preserves: bool
    fact: Assumption | None
    preserved: frozenset[int] = CALLEE_SAVED
    preserves_mode: bool = True
    settled: bool = False
    stores: tuple[ByteSpan, ...] = ()
    exits: tuple[Insn, ...] = ()
    handler: int | None = None
    written: frozenset[tuple[int, int]] | None = None
    limited: tuple[LimitedCycles, ...] = ()
    reads: ReadArguments = ANY_ARGUMENTS
    result: ValueSet | None = None
    returns: bool = True
    tests: CyclesByArrival | None = None
    behind: bool | None = None
    assumes_pending: bool = False
    acknowledges: bool = False

    def arriving(self, *, behind: bool) -> FunctionReplacement:
        """The same for an interrupt that arrives behind a test in it, or before the call."""
        if self.tests is None:
            return self
        of_tests = self.tests.behind if behind else None
        known = of_tests or self.tests.called
        return replace(
            self, cycles=known.cycles, limited=known.limited, behind=of_tests is not None
        )


@dataclass(frozen=True, slots=True)
class RecursionDepth:
    """The most simultaneous activations of a recursive function.

    ``facts`` state it; if it is proved, ``facts`` is empty and ``evidence`` is the proof.
    """

    activations: int
    facts: tuple[Assumption, ...]
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class AppliedGuidance:
    """All applied facts; ``replaced``, ``depths`` and ``never``-returning functions by entry
    address.

    ``cut`` are the last instructions of blocks that lost a successor to facts, in every context.
    """

    removed: tuple[RemovedEdge, ...] = ()
    required: tuple[RequiredPlace, ...] = ()
    replaced: Mapping[int, FunctionReplacement] = field(default_factory=dict)
    depths: Mapping[int, RecursionDepth] = field(default_factory=dict)
    cut: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()

    def moved(self, sources: Mapping[str, str]) -> AppliedGuidance:
        """The same guidance, with the new places of its facts from ``sources``."""
        return AppliedGuidance(
            tuple(replace(r, fact=r.fact.moved(sources)) for r in self.removed),
            tuple(replace(r, fact=r.fact.moved(sources)) for r in self.required),
            {
                at: replace(r, fact=r.fact and r.fact.moved(sources))
                for at, r in self.replaced.items()
            },
            {
                at: replace(d, facts=tuple(fact.moved(sources) for fact in d.facts))
                for at, d in self.depths.items()
            },
            self.cut,
            self.never,
        )


NO_GUIDANCE = AppliedGuidance()


def unused_guidance(facts: Facts, assumptions: Iterable[Assumption]) -> tuple[Fact, ...]:
    """The facts that change the graph but are among the ``assumptions`` of no result."""
    listed = {(assumption.name, assumption.source) for assumption in assumptions}

    def used(fact: Fact) -> bool:
        kinds = fact.assumption, LOOP_FACT
        return any((kind.name, str(fact.source)) in listed for kind in kinds)

    return tuple(fact for fact in facts.facts if isinstance(fact, GUIDING) and not used(fact))
