"""Bounds of loops with few states, which are listed: explicit-state reachability.

The invariant says which states there are, and how often the header has been executed at most in
each. It is inductive because the list is complete, and is proved as any other. A loop may start in
any of several states, if few bits of parameters tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from itertools import product

from loopbounds.reduction.control import demanded_of
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, const, mask
from loopbounds.transition.model import LoopModel, at_most
from loopbounds.transition.stepper import ModelStepper

__all__ = ["listed", "states_of"]

STATES = 512
INPUTS = 8  # bits
STARTS = 9  # bits of parameters
STEPS = 1 << 16  # from one state to another

State = tuple[int, ...]


def states_of(model: LoopModel) -> dict[State, int] | None:
    """Every state at the header, and the most header executions with which it is reached.

    None for a model with more states or bits of inputs than are listed, that comes back to a state,
    or in which parameters decide more than where it starts.
    """
    starts = _starts(model)
    if starts is None or sum(i.width for i in model.inputs) > INPUTS:
        return None
    parameters = (0,) * len(model.parameters)  # of no matter to a step
    choices = list(product(*(range(mask(i.width) + 1) for i in model.inputs)))
    stepper, steps = ModelStepper(model), 0
    before: dict[State, set[State]] = {start: set() for start in starts}
    pending = list(before)
    while pending:
        state = pending.pop()
        steps += len(choices)
        if steps > STEPS or len(before) > STATES:
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
    """The initial states; None where there are too many, or parameters decide more than these.

    Constraints about other bits than those that tell initial states apart are left out.
    """
    parameters, initial = set(model.parameters), [v.initial for v in model.state]
    if parameters & rewrite.symbols([model.again, *(v.next for v in model.state)]):
        return None
    bits = dict.fromkeys(model.parameters, 0)
    for value in initial:
        for symbol, wanted in demanded_of(value, mask(value.width)).items():
            bits[symbol] |= wanted
    if sum(wanted.bit_count() for wanted in bits.values()) > STARTS:
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
    """Every word of some of these bits."""
    word = bits
    yield 0
    while word:
        yield word
        word = word - 1 & bits


def listed(model: LoopModel, reached: dict[State, int]) -> tuple[int, Term]:
    """The bound, and the invariant that it follows from."""
    symbols = [v.symbol for v in model.state]
    cases = [
        terms.both(_is(symbols, state), at_most(executions))
        for state, executions in reached.items()
    ]
    return max(reached.values()), _any_of(cases)


def _any_of(cases: list[Term]) -> Term:
    """Their disjunction, as a tree: each is compared with all that it meets."""
    while len(cases) > 1:
        cases = [reduce(terms.either, cases[i : i + 2]) for i in range(0, len(cases), 2)]
    return cases[0] if cases else FALSE


def _is(symbols: Sequence[Term], state: State) -> Term:
    equal = (
        terms.eq(symbol, const(value, symbol.width))
        for symbol, value in zip(symbols, state, strict=True)
    )
    return reduce(terms.both, equal, TRUE)
