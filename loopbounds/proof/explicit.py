"""Bounds of loops with few states, which are listed: explicit-state reachability.

The invariant says which states there are, and how often the header has been executed at most in
each. It is inductive because the list is complete, and is proved as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product

from loopbounds.nusmv.model import LoopModel, at_most
from loopbounds.proof.runs import ModelStepper
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, const, mask

__all__ = ["listed", "states_of"]

STATES = 256
INPUTS = 8  # bits
STEPS = 1 << 16  # from one state to another

State = tuple[int, ...]


def states_of(model: LoopModel) -> dict[State, int] | None:
    """Every state at the header, and the most header executions with which it is reached.

    None for a model with parameters, with more states or bits of inputs than are listed, or that
    comes back to a state.
    """
    if model.parameters or sum(i.width for i in model.inputs) > INPUTS:
        return None
    choices = list(product(*(range(mask(i.width) + 1) for i in model.inputs)))
    stepper = ModelStepper(model)
    start = stepper.start(())
    reached = {} if start is None else {start: 1}
    layer, steps, executions = set(reached), 0, 1
    while layer:
        steps += len(layer) * len(choices)
        if steps > STEPS or len(reached) > STATES or executions > len(reached):
            return None  # too many; or so long that a state was passed twice
        after = (stepper.step((), state, inputs) for state in layer for inputs in choices)
        layer = {state for state in after if state is not None}
        executions += 1
        reached |= dict.fromkeys(layer, executions)
    return reached


def listed(model: LoopModel, reached: dict[State, int]) -> tuple[int, Term]:
    """The bound, and the invariant that it follows from."""
    symbols = [v.symbol for v in model.state]
    cases = (
        terms.both(_is(symbols, state), at_most(executions))
        for state, executions in reached.items()
    )
    return max(reached.values()), reduce(terms.either, cases, FALSE)


def _is(symbols: Sequence[Term], state: State) -> Term:
    equal = (
        terms.eq(symbol, const(value, symbol.width))
        for symbol, value in zip(symbols, state, strict=True)
    )
    return reduce(terms.both, equal, TRUE)
