"""The facts that extraction needs: targets, never-returning or replaced functions, path exits.

Every statement that is used is an assumption of the result.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from quoll.arm.insn import SP, ControlFlow, Insn
from quoll.arm.supervisor import SUPERVISOR_VECTOR, is_supervisor_call
from quoll.assumptions import OTHER_CALLS, Assumption, stated
from quoll.cfg.cfg import Block, Cfg
from quoll.cfg.discover import SupervisorCallEffect
from quoll.cfg.growing_function import CalleeEntry
from quoll.cfg.transfers import TransferEffect
from quoll.cfg.unresolved import WritableSection
from quoll.errors import FactsError
from quoll.extraction.called_tables import CalledTables
from quoll.facts import (
    CallsThroughFact,
    Fact,
    Facts,
    NeverReturnsFact,
    PathEndFact,
    PointsIntoFact,
    RecursionFact,
    ReplacedFact,
    ReturnsEndFact,
    ReturnsFact,
    SelfJumpsEndFact,
    SupervisorCallsFact,
    SupervisorEntersFact,
    SwitchesContextFact,
    TargetsFact,
)
from quoll.facts.applied import AppliedGuidance, FunctionReplacement, RecursionDepth
from quoll.facts.fact_places import AtPlaces, FactPlace, find_place, resolve, resolve_code
from quoll.facts.guidance import ELSEWHERE, RestrictedInlining
from quoll.image.image import Image
from quoll.image.vtables import Vtables
from quoll.indirect.address_taken import AddressTaken

__all__ = ["ExtractionFacts"]

ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
INDIRECT = (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)


class ExtractionFacts:
    """The facts that extraction uses, with resolved places.

    Raises FactsError when a place does not exist.
    """

    def __init__(self, image: Image, facts: Facts) -> None:
        self._image = image
        self.replaced: Mapping[int, ReplacedFact] = {
            _function_address(image, fact): fact for fact in facts.of(ReplacedFact)
        }
        self.never: Mapping[int, NeverReturnsFact] = {
            addr: fact
            for fact in facts.of(NeverReturnsFact)
            for addr in resolve(image, fact.function, fact.source)
        }
        self._places: list[tuple[FactPlace, str, Fact]] = []  # places of stated indirect transfers
        self._targets = AtPlaces(
            image,
            (
                (self._place(fact.place, fact), (stated(fact), TransferEffect(self._callees(fact))))
                for fact in facts.of(TargetsFact)
            ),
        )
        self._calls = AtPlaces(
            image,
            (
                (self._place(site, fact), effect)
                for fact in facts.of(CallsThroughFact)
                for effect in [
                    (
                        stated(fact),
                        CalledTables(image, self.vtables, self.address_taken, fact),
                    )
                ]
                for site in fact.sites
            ),
        )
        self._returns = {
            addr: fact
            for fact in facts.of(ReturnsFact)
            for addr in self._place(fact.place, fact).addresses
        }
        self.switching: Mapping[int, SwitchesContextFact] = {
            addr: fact
            for fact in facts.of(SwitchesContextFact)
            for addr in resolve(image, fact.function, fact.source)
        }
        for addr, fact in self.replaced.items():
            if addr in self.never:
                raise FactsError(
                    f"{fact.function} is replaced by a bound, but said never to return",
                    where=str(fact.source),
                    hint="end the path before its calls: path must end at PLACE",
                )
        self.restricted_to = next(iter(facts.of(RestrictedInlining)), None)
        self.exits: Mapping[int, PathEndFact] = {
            addr: fact
            for fact in facts.of(PathEndFact)
            for addr in resolve(image, fact.place, fact.source)
        }
        self.returns_end = next(iter(facts.of(ReturnsEndFact)), None)
        self.self_jumps_end = next(iter(facts.of(SelfJumpsEndFact)), None)
        said = (*facts.of(SupervisorCallsFact), *facts.of(SupervisorEntersFact))
        self.supervisor = next(iter(said), None)
        self._handler = self._supervisor_handler(facts)
        self._depths = {
            resolve(image, fact.function, fact.source)[0]: fact for fact in facts.of(RecursionFact)
        }
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

    def _place(self, text: str, fact: Fact) -> FactPlace:
        """The place of a fact about an indirect transfer."""
        place = find_place(self._image, text, fact.source)
        self._places.append((place, text, fact))
        return place

    def _callees(self, fact: TargetsFact) -> tuple[CalleeEntry, ...]:
        addrs = [a for text in fact.targets for a in self._target(text, fact)]
        return tuple(CalleeEntry(a & ~1, bool(a & 1)) for a in addrs)

    def _target(self, text: str, fact: TargetsFact) -> tuple[int, ...]:
        """The addresses of a target: possibly in ROM, if a bound replaces the function there."""
        outside = ADDRESS.fullmatch(text) is not None and int(text, 16) & ~1 in self.replaced
        return (int(text, 16),) if outside else resolve_code(self._image, text, fact.source)

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

    def _supervisor_handler(self, facts: Facts) -> int | None:
        """The handler that every svc enters, if a fact states it."""
        said = self.supervisor
        if not isinstance(said, SupervisorEntersFact):
            return None
        (handler,) = resolve(self._image, said.function, said.source)
        for fact in facts.of(PointsIntoFact):
            at = find_place(self._image, fact.place, fact.source)
            if fact.register == SP and at.covers(self._image, handler & ~1):
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
        found = self._targets.at(insn.addr)
        if found is None:
            return None
        self.used.setdefault(found[0])
        return found[1]

    def through(self, insn: Insn) -> CalledTables | None:
        """The tables that the call ``insn`` is stated to go through."""
        found = self._calls.at(insn.addr)
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
        staying = {b.last.addr for b in blocks if b.exits and b.last.jumps_to_itself}
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
                for addr, fact in self._depths.items()
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
        for place, text, fact in self._places:
            covered = [insns[addr] for addr in place.among(self._image, insns)]
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


def _function_address(image: Image, fact: ReplacedFact) -> int:
    """The address of a replaced function, which may be outside of the image (in ROM)."""
    if ADDRESS.fullmatch(fact.function):
        return int(fact.function, 16) & ~1  # possibly outside of the image
    return resolve(image, fact.function, fact.source)[0]
