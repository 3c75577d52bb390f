"""The only run of a model, in phases: within a phase each word moves by a constant.

A model without parameters and inputs has one run, which is executed. A counter that is raised a few
times on its way down, or that wraps, has few phases of any length. The invariant is

    or over phases:  first <= count <= last  and  x = x_first + s * (count - first) for each word x

It is inductive because the next state is a function of the state; the checker proves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from loopbounds.budgets import table
from loopbounds.strategies.session import SolverSession
from loopbounds.strategies.strategy import InductiveBound, ProofTask, ProvedBound, prove_by
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import FALSE, Term, const, eq, mask, scale, sub, ule
from loopbounds.transition.model import COUNT, COUNT_WIDTH, LoopModel
from loopbounds.transition.stepper import ModelStepper

__all__ = ["LinearPhase", "OnlyRunInPhases", "in_phases", "phases_of"]


@dataclass(frozen=True, slots=True)
class OnlyRunInPhases:
    """The length of the only run, up to ``most`` executions, if it has few phases.

    Short runs share the budget of most strategies, long ones have a full budget of their own.
    """

    most: int
    name = "acceleration in linear phases"

    def applies(self, task: ProofTask) -> bool:
        """For runs up to ``RUN_STEPS`` first, for longer ones after the other strategies."""
        return task.is_long == (self.most > table.RUN_STEPS) and task.best is None

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """As ``Strategy``."""
        phases = phases_of(task.model, self.most)
        if not phases:
            return None
        session = task.session
        if task.is_long:
            session = SolverSession(task.model, task.budget, task.checker)
        session.turn_to(task.model)
        found = InductiveBound(phases[-1].last, (in_phases(task.model, phases),))
        return prove_by(session, found)


@dataclass(slots=True)
class LinearPhase:
    """Executions ``first`` to ``last`` of the header; ``state``: the state at the first of them."""

    state: tuple[int, ...]
    first: int
    last: int
    steps: tuple[int, ...] = ()  # added to each word per execution; () while there is only one


class _TooMany(Exception):
    """The run has more than ``PHASES`` phases."""


class _Phases:
    def __init__(self, start: tuple[int, ...], ones: Sequence[int]) -> None:
        self.found = [LinearPhase(start, 1, 1)]
        self._before, self._ones = start, ones

    def see(self, state: tuple[int, ...]) -> None:
        """Take the next state of the run. Raises _TooMany."""
        phase, before = self.found[-1], self._before
        self._before = state
        steps = tuple([b - a & ones for a, b, ones in zip(before, state, self._ones, strict=True)])
        if phase.first == phase.last:
            phase.steps = steps
        elif phase.steps != steps:
            if len(self.found) == table.PHASES:
                raise _TooMany
            self.found.append(LinearPhase(state, phase.last + 1, phase.last + 1))
            return
        phase.last += 1


def phases_of(model: LoopModel, most: int) -> tuple[LinearPhase, ...]:
    """The phases of the run; () if there may be several runs, or too long or too many phases.

    ``most``: executions of the header.
    """
    stepper = ModelStepper(model)
    start = stepper.start(()) if not model.parameters else None
    if start is None or stepper.loop is None:
        return ()
    phases = _Phases(start, [mask(v.symbol.width) for v in model.state])
    try:
        taken, _ = stepper.loop((), start, most, phases.see)
    except _TooMany:
        return ()
    return tuple(phases.found) if taken < most else ()


def in_phases(model: LoopModel, phases: Sequence[LinearPhase]) -> Term:
    """The invariant that each state belongs to a phase."""
    return reduce(terms.either, (_during(model, phase) for phase in phases), FALSE)


def _during(model: LoopModel, phase: LinearPhase) -> Term:
    passed = sub(COUNT, const(phase.first, COUNT_WIDTH))
    claim = ule(passed, const(phase.last - phase.first, COUNT_WIDTH))
    steps = phase.steps or (0,) * len(model.state)
    for variable, value, step in zip(model.state, phase.state, steps, strict=True):
        symbol = variable.symbol
        narrow = min(symbol.width, COUNT_WIDTH)
        moved = scale(terms.zext(terms.extract(passed, 0, narrow), symbol.width), step)
        claim = terms.both(claim, eq(symbol, terms.add(const(value, symbol.width), moved)))
    return claim
