"""A loop's transition system, state by state: from its initial states, or from any state.

The next state is a function of state, parameters and inputs: only these are symbols, and each later
state consists of formulas over them. ``loopbounds.nusmv.model_text`` is the same for NuSMV.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopbounds.smt.solver import Formula, SmtOutcome, SmtSolver
from loopbounds.smt.translation import SmtTranslation
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, const, mask
from loopbounds.transition.model import COUNT, COUNT_WIDTH, RUNNING, LoopModel
from loopbounds.transition.query import State

__all__ = ["ModelUnrolling"]


class ModelUnrolling:
    """Consecutive states of a model; ``constraints`` restrict the first state."""

    def __init__(self, model: LoopModel, solver: SmtSolver, *, initial: bool) -> None:
        self._model, self._solver = model, solver
        self._parameters = {p: solver.symbol(p.name, p.width) for p in model.parameters}
        self._states: list[Mapping[Term, Formula]] = []
        self._inputs: list[Mapping[Term, Formula]] = []
        self._translations: list[SmtTranslation] = []
        self.constraints: list[Formula] = []
        variables = [*(v.symbol for v in model.state), COUNT, RUNNING]
        if initial:
            start = SmtTranslation(solver, self._parameters)
            self.constraints = start.of(model.constraints)
            values = [*(v.initial for v in model.state), const(1, COUNT_WIDTH), terms.TRUE]
            first = start.of(values)
        else:
            first = [solver.symbol(v.name, v.width) for v in variables]
        self._variables = variables
        self._add(first)
        going = terms.both(RUNNING, model.again)
        counts = terms.both(
            going, terms.negate(terms.eq(COUNT, const(mask(COUNT_WIDTH), COUNT_WIDTH)))
        )
        self._following = [
            *(terms.ite(going, v.next, v.symbol) for v in model.state),
            terms.ite(counts, terms.add(COUNT, const(1, COUNT_WIDTH)), COUNT),
            going,
        ]

    def _add(self, values: list[Formula]) -> None:
        step, solver = len(self._states), self._solver
        state = dict(zip(self._variables, values, strict=True))
        inputs = {i: solver.symbol(f"{i.name}@{step}", i.width) for i in self._model.inputs}
        self._states.append(state)
        self._inputs.append(inputs)
        self._translations.append(SmtTranslation(solver, {**self._parameters, **state, **inputs}))

    def at(self, step: int, claim: Term) -> Formula:
        """``claim`` about the state after ``step`` transitions. Raises IllTyped."""
        while len(self._states) <= step:
            self._add(self._translations[-1].of(self._following))
        [found] = self._translations[step].of([claim])
        return found

    def trace(self, last: int, outcome: SmtOutcome) -> tuple[State, ...]:
        """The states up to ``last`` of a satisfiable check, each with the inputs that led to it."""
        known = {p.name: outcome.value(f) for p, f in self._parameters.items()}
        found = []
        for step, state in enumerate(self._states[: last + 1]):
            inputs = self._inputs[step - 1] if step else {}
            values = {t.name: outcome.value(f) for t, f in (*inputs.items(), *state.items())}
            found.append({**known, **values})
        return tuple(found)
