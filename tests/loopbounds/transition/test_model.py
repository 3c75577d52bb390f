"""A transition system as a program: it begins, steps and ends as its terms say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.evaluate import compile_terms
from loopbounds.transition.model import COUNT_WIDTH, LoopModel, StateVariable, at_most
from loopbounds.transition.stepper import ModelStepper
from tests.testing.loopbounds.drawn_models import A, P, models, small

WORD = st.integers(0, 15)
UP = StateVariable(A, small(0), terms.add(A, small(1)))
COUNTER = LoopModel((P,), (UP,), (), (terms.ult(P, small(8)),), terms.ult(A, P))


def test_a_counter_runs_to_its_limit() -> None:
    stepper = ModelStepper(COUNTER)
    state = stepper.start([5])
    steps = 0
    while state is not None:
        state = stepper.step([5], state, [])
        steps += 1
    assert steps == 6
    assert COUNTER.deterministic


def test_a_constraint_forbids_parameters() -> None:
    assert ModelStepper(COUNTER).start([8]) is None
    assert ModelStepper(COUNTER).start([7]) == (0,)


@given(models(), st.lists(WORD, min_size=6, max_size=6))
def test_a_step_is_the_terms_of_the_model(model: LoopModel, words: list[int]) -> None:
    parameters, words = words[: len(model.parameters)], words[len(model.parameters) :]
    state, inputs = tuple(words[: len(model.state)]), words[-len(model.inputs) or len(words) :]
    symbols = [*model.parameters, *(v.symbol for v in model.state), *model.inputs]
    evaluate = compile_terms([model.again, *(v.next for v in model.state)], symbols)
    again, *following = evaluate([*parameters, *state, *inputs])
    expected = tuple(following) if again else None
    assert ModelStepper(model).step(parameters, state, inputs) == expected
    assert model.deterministic == (not model.inputs)
    assert {id(v.symbol) for v in model.state} <= {id(t) for t in model.terms()}


def test_a_bound_beyond_the_counter_is_refused() -> None:
    assert at_most(0).width == 1
    for bound in (-1, (1 << COUNT_WIDTH) - 2):
        with pytest.raises(ValueError, match="beyond the counter"):
            at_most(bound)
