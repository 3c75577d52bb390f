"""Edges, places and functions that guidance removed or replaced in a graph, to be refuted by
executions.

Carried by programs and supergraphs, so that an error about a recorded execution names the fact
that it refutes (rule 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from quoll.arm.insn import Insn
from quoll.assumptions import LOOP_FACT, Assumption
from quoll.facts import (
    BranchFact,
    Fact,
    Facts,
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
    SwitchesContextFact,
)
from quoll.facts.contract import CALLEE_SAVED, ByteSpan

__all__ = [
    "CALLEE_SAVED",
    "NO_GUIDANCE",
    "AppliedGuidance",
    "FunctionReplacement",
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
    """Control does not pass from the instruction at ``source`` to that at ``target``.

    None stands for any other end: ``source`` None for an ignored block or function, ``target``
    None for whatever the instruction does but go on to the next one.
    """

    source: int | None
    target: int | None
    fact: Assumption

    def explains(self, source: int, target: int | None) -> bool:
        """Whether an execution that goes from ``source`` to ``target`` (None: ends) refutes it."""
        return self.source in (None, source) and self.target in (None, target)


@dataclass(frozen=True, slots=True)
class RequiredPlace:
    """Every path executes one of ``addresses``, where any of them is in the graph."""

    addresses: frozenset[int]
    fact: Assumption


@dataclass(frozen=True, slots=True)
class FunctionReplacement:
    """The function takes at most ``cycles``; ``preserves``: its callers' memory.

    It leaves the registers ``preserved`` as they were, and the processor mode if
    ``preserves_mode``. ``settled``: it was analysed, and the cycles of all its memory accesses are
    among ``cycles``. ``stores``: known places of its callers' frames that it may store to
    (``quoll.facts.contract``). ``exits``: instructions in it that end the path, within ``cycles``.
    These are None of a function that switches contexts, until they are known. ``handler`` is where
    the function starts, if that is the handler of an exception, which is taken there.
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


@dataclass(frozen=True, slots=True)
class RecursionDepth:
    """At most so many activations of a recursive function at a time.

    ``facts`` state it; there are none if it is proved, with ``evidence``.
    """

    activations: int
    facts: tuple[Assumption, ...]
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class AppliedGuidance:
    """All of it; ``replaced``, ``depths`` and functions that ``never`` return by entry address.

    ``cut`` are the last instructions of blocks that facts took a way on from, in every context.
    """

    removed: tuple[RemovedEdge, ...] = ()
    required: tuple[RequiredPlace, ...] = ()
    replaced: Mapping[int, FunctionReplacement] = field(default_factory=dict)
    depths: Mapping[int, RecursionDepth] = field(default_factory=dict)
    cut: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()

    def moved(self, sources: Mapping[str, str]) -> AppliedGuidance:
        """The same with facts where ``sources`` says that the old places are now."""
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
    """The facts that change the graph but are not among the ``assumptions`` of any result."""
    listed = {(assumption.name, assumption.source) for assumption in assumptions}

    def used(fact: Fact) -> bool:
        kinds = fact.assumption, LOOP_FACT
        return any((kind.name, str(fact.source)) in listed for kind in kinds)

    return tuple(fact for fact in facts.facts if isinstance(fact, GUIDING) and not used(fact))
