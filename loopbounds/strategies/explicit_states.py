"""Bounds of loops with few states, by explicit-state reachability.

The invariant lists all reachable states, each with the most executions of the header. It is
inductive because the list is complete, and the checker proves it like any other. A loop may start
in any of several states, if few bits of parameters distinguish them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from itertools import product

from loopbounds.budgets import table
from loopbounds.reduction.control import control_of, demanded_of, with_demanded_bits
from loopbounds.strategies.session import SolverSession
from loopbounds.strategies.strategy import InductiveBound, ProofTask, ProvedBound, prove_by
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, const, mask
from loopbounds.transition.model import LoopModel, at_most
from loopbounds.transition.stepper import ModelStepper

__all__ = ["ExplicitStates", "listed", "states_of"]

State = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExplicitStates:
    """The bound by the states of a model, or of its control, if these are few.

    It needs no samples, and has a full budget of its own.
    """

    name = "explicit-state enumeration"

    def applies(self, task: ProofTask) -> bool:
        """Always: enumeration gives up early."""
        return True

    def attempt(self, task: ProofTask) -> ProvedBound | None:
        """As ``Strategy``."""
        model: LoopModel | None = with_demanded_bits(replace(task.model, hints=(), exits=()))
        states = states_of(model) if model is not None else None
        if not states:
            model = control_of(task.model)
            states = states_of(model) if model is not None else None
        if model is None or not states:
            return None
        bound, relation = listed(model, states)
        session = SolverSession(model, task.budget, task.checker)
        return prove_by(session, InductiveBound(bound, (relation,)))


def states_of(model: LoopModel) -> dict[State, int] | None:
    """Every state at the header, with the most header executions up to it.

    None for a model with too many states or bits of inputs, with a cycle of states, or with
    parameters that influence more than its initial state.
    """
    starts = _starts(model)
    if starts is None or sum(i.width for i in model.inputs) > table.LISTED_INPUT_BITS:
        return None
    parameters = (0,) * len(model.parameters)  # a step reads none
    choices = list(product(*(range(mask(i.width) + 1) for i in model.inputs)))
    stepper, steps = ModelStepper(model), 0
    before: dict[State, set[State]] = {start: set() for start in starts}
    pending = list(before)
    while pending:
        state = pending.pop()
        steps += len(choices)
        if steps > table.LISTED_STEPS or len(before) > table.LISTED_STATES:
            return None
        for following in {stepper.step(parameters, state, inputs) for inputs in choices} - {None}:
            if following is not None and following not in before:
                before[following] = set()
                pending.append(following)
            if following is not None:
                before[following].add(state)
    reached: dict[State, int] = {}
    try:
        for state in TopologicalSorter(before).static_order():
            reached[state] = 1 + max((reached[b] for b in before[state]), default=0)
    except CycleError:
        return None
    return reached


def _starts(model: LoopModel) -> set[State] | None:
    """The initial states; None where there are too many, or parameters influence a step.

    Constraints are left out if they are about bits that no initial state depends on.
    """
    parameters, initial = set(model.parameters), [v.initial for v in model.state]
    if parameters & rewrite.symbols([model.again, *(v.next for v in model.state)]):
        return None
    bits = dict.fromkeys(model.parameters, 0)
    for value in initial:
        for symbol, wanted in demanded_of(value, mask(value.width)).items():
            bits[symbol] |= wanted
    if sum(wanted.bit_count() for wanted in bits.values()) > table.LISTED_START_BITS:
        return None
    decided = (
        c
        for c in model.constraints
        if not any(wanted & ~bits[s] for s, wanted in demanded_of(c, 1).items())
    )
    stepper = ModelStepper(replace(model, constraints=tuple(decided)))
    words = product(*(_words(wanted) for wanted in bits.values()))
    return {start for parameters in words if (start := stepper.start(parameters)) is not None}


def _words(bits: int) -> Iterator[int]:
    """Every word with a subset of these bits."""
    word = bits
    yield 0
    while word:
        yield word
        word = word - 1 & bits


def listed(model: LoopModel, reached: dict[State, int]) -> tuple[int, Term]:
    """The bound, and the invariant that implies it."""
    symbols = [v.symbol for v in model.state]
    cases = [
        terms.both(_is(symbols, state), at_most(executions))
        for state, executions in reached.items()
    ]
    return max(reached.values()), _any_of(cases)


def _any_of(cases: list[Term]) -> Term:
    """The disjunction of ``cases``, as a balanced tree, which needs fewer comparisons."""
    while len(cases) > 1:
        cases = [reduce(terms.either, cases[i : i + 2]) for i in range(0, len(cases), 2)]
    return cases[0] if cases else FALSE


def _is(symbols: Sequence[Term], state: State) -> Term:
    equal = (
        terms.eq(symbol, const(value, symbol.width))
        for symbol, value in zip(symbols, state, strict=True)
    )
    return reduce(terms.both, equal, TRUE)
