"""Transfer of abstract states through compiled basic blocks.

Where control meets after a conditional instruction, the states in which it was and was not
executed are merged, each refined by the condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quoll.abstract_domain.abstract_machine import AbstractMachine, AnalysisEnvironment
from quoll.abstract_domain.abstract_state import FLAG, SLOTS, AbstractState, merge
from quoll.abstract_domain.condition import Condition, assume, negation
from quoll.abstract_domain.steps import (
    CompiledBlock,
    ExitStep,
    ForkStep,
    JoinStep,
    Step,
    StraightStep,
    SwitchStep,
)
from quoll.abstract_domain.terms import Fact, Facts, Term, union

__all__ = ["BlockExit", "BlockOutcome", "KnownAddress", "run"]

SP = 13


class KnownAddress(NamedTuple):
    """The known address of an access; ``term`` is None if copies of the code differ."""

    fact: Fact
    term: Term | None


class BlockExit(NamedTuple):
    """The state in which a block leaves by writing the pc, and the written term.

    The lowest bits of ``target`` are not part of the address; ``thumb`` is the instruction set.
    """

    state: AbstractState
    target: Term
    thumb: Condition


class BlockOutcome(NamedTuple):
    """The states after a block: at its end, and after a write of the pc.

    ``decision`` is the last condition that forked control, with the facts at the fork. ``noted``:
    the lowest address of each access, by instruction and executed copy; None if not requested.
    """

    fall: AbstractState | None
    leave: BlockExit | None
    decision: tuple[Condition, Facts] | None
    noted: Mapping[tuple[int, int], tuple[Term, Fact]] | None

    def accesses(self) -> dict[int, KnownAddress]:
        """The lowest address of each instruction's access, by the index of the instruction."""
        found: dict[int, KnownAddress] = {}
        assert self.noted is not None
        for (index, _), (term, fact) in self.noted.items():
            known = found.get(index)
            if known is None:
                found[index] = KnownAddress(fact, term)
            else:
                same = term if known.term == term else None
                found[index] = KnownAddress(union(known.fact, fact), same)
        return found


def run(
    block: CompiledBlock,
    state: AbstractState,
    environment: AnalysisEnvironment,
    position: int,
    *,
    noting: bool = False,
) -> BlockOutcome:
    """Interpret ``block`` from ``state``; ``noting``: record the addresses of its accesses."""
    machine = AbstractMachine(environment, position)
    machine.accesses = {} if noting else None
    machine.restore(state, list(block.tail))
    return _Run(machine, state.term(SP)).steps(block.steps)


class _Run:
    """Control while the steps of one block are interpreted."""

    def __init__(self, machine: AbstractMachine, start_sp: Term) -> None:
        self.machine, self.start_sp = machine, start_sp
        self.waiting: dict[int, AbstractState] = {}
        self.leave: BlockExit | None = None
        self.decision: tuple[Condition, Facts] | None = None
        self.alive = True

    def steps(self, steps: tuple[Step, ...]) -> BlockOutcome:
        machine = self.machine
        for step in steps:
            if type(step) is StraightStep:
                if self.alive:
                    for function, out, a, b, extra in step.micros:
                        function(machine, out, a, b, extra)
            elif type(step) is JoinStep:
                self._meet(step)
            elif type(step) is SwitchStep:
                self._swap(step.label)
            elif not self.alive:
                continue
            elif type(step) is ForkStep:
                self._fork(step)
            elif type(step) is ExitStep:
                target = machine.term(machine.v[step.target], "target")
                thumb = machine.condition(machine.v[step.thumb])
                self.leave = BlockExit(machine.finish(self.start_sp), target, thumb)
                self.alive = False
            else:
                _forget_everything(machine)
        fall = machine.finish(self.start_sp) if self.alive else None
        return BlockOutcome(fall, self.leave, self.decision, machine.accesses)

    def _fork(self, step: ForkStep) -> None:
        machine = self.machine
        if step.condition is None:
            self._wait(step.label, machine.facts)
            self.alive = False
            return
        condition = machine.condition(machine.v[step.condition])
        stacks = machine.environment.stacks
        self.decision = (condition, machine.facts)
        machine.environment.note_limits(machine.position, condition, machine.facts)
        away = machine.with_fields(assume(condition, machine.facts, stacks))
        on = machine.with_fields(assume(negation(condition), machine.facts, stacks))
        if away is not None:
            self._wait(step.label, away)
        if on is None:
            self.alive = False
        elif on is not machine.facts:
            machine.facts, machine.owned = on, False

    def _wait(self, label: int, facts: Facts) -> None:
        state = self.machine.snapshot(facts)
        before = self.waiting.get(label)
        self.waiting[label] = state if before is None else self._merged(before, state, label)

    def _meet(self, step: JoinStep) -> None:
        state = self.waiting.pop(step.label, None)
        if state is None:
            return
        if self.alive:
            state = self._merged(self.machine.snapshot(), state, step.label)
        self.machine.resume(state)
        self.alive = True
        for slot in step.unset:
            self.machine.v[slot] = None

    def _swap(self, label: int) -> None:
        other = self.waiting.pop(label, None)
        if self.alive:
            self.waiting[label] = self.machine.snapshot()
        self.alive = other is not None
        if other is not None:
            self.machine.resume(other)

    def _merged(self, a: AbstractState, b: AbstractState, label: int) -> AbstractState:
        position = self.machine.position
        names = self.machine.environment.names
        return merge(a, b, names, (position, position), ("meet", label, len(self.waiting)))


def _forget_everything(machine: AbstractMachine) -> None:
    """Forget all state after a trap: its handler may have changed anything."""
    for register in range(FLAG):
        machine.v[register] = machine.fresh(("trap", register))
    for slot in range(FLAG, SLOTS):
        machine.v[slot] = None
    machine.banks = {}
    machine.memory.forget_all()
