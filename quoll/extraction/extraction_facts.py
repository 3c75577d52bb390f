"""The facts that extraction needs: targets, never-returning or replaced functions, path exits.

Every statement that is used is an assumption of the result.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from quoll.arm.insn import SP, ControlFlow, Insn
from quoll.arm.supervisor import SUPERVISOR_VECTOR, is_supervisor_call
from quoll.assumptions import OTHER_CALLS, Assumption, stated
from quoll.cfg.cfg import Block, Cfg
from quoll.cfg.discover import SupervisorCallEffect
from quoll.cfg.growing_function import CalleeEntry
from quoll.cfg.idle_loops import may_be_idle
from quoll.cfg.transfers import TransferEffect
from quoll.cfg.unresolved import WritableSection
from quoll.errors import FactsError
from quoll.extraction.called_tables import CalledTables
from quoll.facts.applied import AppliedGuidance, FunctionReplacement, RecursionDepth
from quoll.facts.control_flow_facts import (
    CallsThroughFact,
    NeverReturnsFact,
    ReturnsFact,
    SwitchesContextFact,
    TargetsFact,
)
from quoll.facts.fact import Fact
from quoll.facts.fact_places import FactPlace
from quoll.facts.guidance import (
    ELSEWHERE,
    PathEndFact,
    RecursionFact,
    ReplacedFact,
    RestrictedInlining,
    ReturnsEndFact,
    SelfJumpsEndFact,
    SupervisorCallsFact,
    SupervisorEntersFact,
)
from quoll.facts.located import LocatedFacts
from quoll.facts.memory_facts import PointsIntoFact
from quoll.image.image import Image
from quoll.image.vtables import Vtables
from quoll.indirect.address_taken import AddressTaken

__all__ = ["ExtractionFacts"]

INDIRECT = (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)
T = TypeVar("T")


class ExtractionFacts:
    """The facts that extraction uses, by address.

    Raises FactsError where two contradict each other, or a table holds no function.
    """

    def __init__(self, image: Image, facts: LocatedFacts) -> None:
        self._image = image
        self._facts = facts
        self.replaced: Mapping[int, ReplacedFact] = dict(facts.addressed(ReplacedFact))
        self.never: Mapping[int, NeverReturnsFact] = dict(facts.addressed(NeverReturnsFact))
        self._targets = [
            (facts.at(fact, fact.place), (stated(fact), TransferEffect(self._callees(fact))))
            for fact in facts.of(TargetsFact)
        ]
        self._calls = [
            (facts.at(fact, site), (stated(fact), tables))
            for fact in facts.of(CallsThroughFact)
            for tables in [CalledTables(image, self.vtables, self.address_taken, facts, fact)]
            for site in fact.sites
        ]
        self._returns = dict(facts.addressed(ReturnsFact))
        self.switching: Mapping[int, SwitchesContextFact] = dict(
            facts.addressed(SwitchesContextFact)
        )
        for addr, fact in self.replaced.items():
            if addr in self.never:
                raise FactsError(
                    f"{fact.function} is replaced by a bound, but said never to return",
                    where=str(fact.source),
                    hint="end the path before its calls: path must end at PLACE",
                )
        self.restricted_to = next(iter(facts.of(RestrictedInlining)), None)
        self.exits: Mapping[int, PathEndFact] = dict(facts.addressed(PathEndFact))
        self.returns_end = next(iter(facts.of(ReturnsEndFact)), None)
        self.self_jumps_end = next(iter(facts.of(SelfJumpsEndFact)), None)
        said = (*facts.of(SupervisorCallsFact), *facts.of(SupervisorEntersFact))
        self.supervisor = next(iter(said), None)
        self._handler = self._supervisor_handler()
        self.used: dict[Assumption, None] = {}

    @cached_property
    def vtables(self) -> Vtables:
        """The vtables of the image."""
        return Vtables(self._image)

    @cached_property
    def address_taken(self) -> AddressTaken:
        """The functions whose addresses the program takes."""
        return AddressTaken(self._image)

    @property
    def going_on(self) -> frozenset[int]:
        """The path ends behind which control may continue."""
        return frozenset(addr for addr, fact in self.exits.items() if not fact.must)

    def _callees(self, fact: TargetsFact) -> tuple[CalleeEntry, ...]:
        words = [word for text in fact.targets for word in self._facts.at(fact, text).words]
        return tuple(CalleeEntry(word & ~1, bool(word & 1)) for word in words)

    def passed(self, entry: int) -> Container[int]:
        """The functions whose calls are not followed in the function at ``entry``."""
        calls = [SUPERVISOR_VECTOR] if self.supervisor_calls is SupervisorCallEffect.CALLS else []
        stated = frozenset([*self.replaced, *self.switching, *calls]) - {entry}
        if self.restricted_to is None:
            return stated
        return _OtherFunctions(
            self._image, self.restricted_to.entries | self.exits.keys() | {entry}, stated
        )

    @property
    def supervisor_calls(self) -> SupervisorCallEffect:
        """The stated effect of every svc."""
        if self.supervisor is None:
            return SupervisorCallEffect.UNKNOWN
        exits = isinstance(self.supervisor, SupervisorCallsFact) and self.supervisor.cycles is None
        return SupervisorCallEffect.EXITS if exits else SupervisorCallEffect.CALLS

    def _supervisor_handler(self) -> int | None:
        """The handler that every svc enters, if a fact states it."""
        said, facts = self.supervisor, self._facts
        if not isinstance(said, SupervisorEntersFact):
            return None
        (handler,) = facts.at(said, said.function).addresses
        for fact in facts.of(PointsIntoFact):
            if fact.register == SP and facts.at(fact, fact.place).covers(handler & ~1):
                raise FactsError(
                    f"{fact} speaks of a path that starts there, but {said}: sp is then the "
                    "interrupted code's",
                    where=str(fact.source),
                    hint="name another entry for one of them, or state a number: every supervisor "
                    "call takes at most N cycles",
                )
        return handler & ~1

    def effect(self, insn: Insn) -> TransferEffect | None:
        """The stated effect of the indirect transfer ``insn``."""
        if self.restricted_to is not None and insn.addr in self.restricted_to.sites:
            return TransferEffect((CalleeEntry(ELSEWHERE, thumb=False),))
        found = _first_at(insn.addr, self._targets)
        if found is None:
            return None
        self.used.setdefault(found[0])
        return found[1]

    def through(self, insn: Insn) -> CalledTables | None:
        """The tables that the call ``insn`` is stated to go through."""
        found = _first_at(insn.addr, self._calls)
        if found is None:
            return None
        self.used.setdefault(found[0])
        return found[1]

    def returns(self, insn: Insn) -> Assumption | None:
        """The stated fact that ``insn`` returns, which values do not prove."""
        fact = self._returns.get(insn.addr)
        return None if fact is None else stated(fact)

    def writable(self, insn: Insn) -> WritableSection | None:
        """The section of ``insn``, if stores may reach its literals and tables; else None."""
        section = self._image.section_at(insn.addr)
        if section is None or self._image.constant(insn.addr, insn.size) is not None:
            return None
        return WritableSection(section.name, section.addr, section.addr + section.size - 1)

    def assumptions(self, functions: Mapping[int, Cfg]) -> list[Assumption]:
        """The statements used for a program of ``functions``."""
        never = [self.never[f] for f in sorted(functions) if f in self.never]
        blocks = [block for cfg in functions.values() for block in cfg.blocks]
        passed = {callee for block in blocks for callee in block.passes}
        bounds: list[Fact] = [f for addr, f in self.replaced.items() if addr in passed]
        switched = passed | functions.keys()
        bounds += [f for a, f in self.switching.items() if a in switched and f not in bounds]
        exits = {self.exits[b.last.addr] for b in blocks if b.exits and b.last.addr in self.exits}
        leaving = {
            b.last.addr for b in blocks if b.exits and b.last.flow is ControlFlow.EXCEPTION_RETURN
        }
        svc = self._of_supervisor(blocks)
        every = self.returns_end if leaving - self.exits.keys() else None
        staying = {b.last.addr for b in blocks if b.exits and may_be_idle(b.last)}
        spinning = self.self_jumps_end if staying - self.exits.keys() else None
        return [
            *self.used,
            *(stated(fact) for fact in (every, spinning) if fact is not None),
            *(stated(fact) for fact in never),
            *(stated(fact) for fact in bounds),
            *svc,
            *sorted(stated(fact) for fact in exits),
        ]

    def _of_supervisor(self, blocks: Iterable[Block]) -> list[Assumption]:
        """The stated fact about svc, if one is reached."""
        if self.supervisor is None:
            return []
        if self.supervisor_calls is SupervisorCallEffect.EXITS:
            used = any(b.exits and is_supervisor_call(b.last) for b in blocks)
            return [stated(self.supervisor)] if used else []
        used = any(SUPERVISOR_VECTOR in b.passes for b in blocks)
        return [stated(self.supervisor)] if used else []

    def guidance(self, functions: Mapping[int, Cfg]) -> AppliedGuidance:
        """The replacements of functions, and the stated depths of recursive ones."""
        return AppliedGuidance(
            replaced=self._others(functions)
            | {
                addr: FunctionReplacement(fact.cycles, fact.preserves, stated(fact))
                for addr, fact in self.replaced.items()
            }
            | {
                addr: FunctionReplacement(None, False, stated(fact))
                for addr, fact in self.switching.items()
                if addr not in self.replaced
            }
            | (
                {SUPERVISOR_VECTOR: self._supervisor_call()}
                if self.supervisor_calls is SupervisorCallEffect.CALLS
                else {}
            ),
            depths={
                addr: RecursionDepth(fact.activations, (stated(fact),))
                for addr, fact in self._facts.addressed(RecursionFact)
            },
            never=frozenset(self.never),
        )

    def _others(self, functions: Mapping[int, Cfg]) -> dict[int, FunctionReplacement]:
        """The replacements of the functions that a restricted extraction does not follow."""
        if self.restricted_to is None:
            return {}
        blocks = (block for cfg in functions.values() for block in cfg.blocks)
        other = FunctionReplacement(0, False, OTHER_CALLS.of())
        return {callee: other for block in blocks for callee in block.passes}

    def _supervisor_call(self) -> FunctionReplacement:
        """The replacement of every svc that returns."""
        said = self.supervisor
        assert said is not None
        cycles = said.cycles if isinstance(said, SupervisorCallsFact) else None
        return FunctionReplacement(cycles, False, stated(said), handler=self._handler)

    def check(self, insns: Mapping[int, Insn]) -> None:
        """Check that each stated place in reached code is an indirect transfer."""
        kinds = TargetsFact, CallsThroughFact, ReturnsFact
        for fact in (fact for kind in kinds for fact in self._facts.of(kind)):
            for text in fact.places():
                covered = [insns[addr] for addr in self._facts.at(fact, text).among(insns)]
                if covered and not any(insn.flow in INDIRECT for insn in covered):
                    first = covered[0]
                    raise FactsError(
                        f"{text} is no indirect jump or call",
                        where=str(fact.source),
                        hint=f"there is {first.text} at {self._image.place(first.addr)}",
                    )


@dataclass(frozen=True, slots=True)
class _OtherFunctions(Container[int]):
    """The functions ``stated``, and all functions with a symbol that are not ``followed``."""

    image: Image
    followed: frozenset[int]
    stated: frozenset[int]

    def __contains__(self, entry: object) -> bool:
        if entry in self.stated or entry == ELSEWHERE:
            return True
        symbols = self.image.symbols.at(entry) if isinstance(entry, int) else ()
        return entry not in self.followed and any(s.kind == "func" for s in symbols)


def _first_at(addr: int, stated: Sequence[tuple[FactPlace, T]]) -> T | None:
    """The statement about the instruction at ``addr``; about it alone, if there is one."""
    here = [(place, effect) for place, effect in stated if place.covers(addr)]
    return min(here, key=lambda found: not found[0].exact)[1] if here else None
