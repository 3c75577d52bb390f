"""The control of a model, and the list of its states, against every run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loopbounds.proof.prove import prove_explicit
from loopbounds.reduction.control import control_of, demanded
from loopbounds.strategies.explicit_states import states_of
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, operation
from loopbounds.terms.rewrite import substitute
from loopbounds.transition.model import LoopModel, StateVariable
from loopbounds.transition.stepper import ModelStepper
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.brute_force import most_executions
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.drawn_models import A, B, J, P, Q, models, small
from tests.testing.loopbounds.models import BUDGET

C = terms.sym("c", 4)


@st.composite
def dividing(draw: st.DrawFn) -> LoopModel:
    """A bit that is shifted through a word, and gathered in another: two passes, or for ever."""
    shift = small(draw(st.sampled_from([1, 2])))
    shifted = operation("lshr", A, shift)
    through = terms.eq(shifted, small(0))
    bit = small(draw(st.sampled_from([1, 2, 4, 8])))
    found = draw(st.sampled_from([terms.ult(C, P), terms.ult(operation("xor", C, P), J)]))
    gathered = terms.ite(found, operation("or", B, A), B)
    kept = draw(st.sampled_from([gathered, terms.ite(through, small(0), gathered)]))
    done = terms.both(through, terms.negate(terms.eq(operation("and", B, bit), small(0))))
    start = st.sampled_from([small(n) for n in (0, 1, 4, 8, 15)])
    state = (
        StateVariable(A, draw(start), terms.ite(through, draw(start), shifted)),
        StateVariable(B, draw(st.one_of(start, st.just(operation("and", P, small(6))))), kept),
        StateVariable(C, P, operation("xor", terms.add(C, P), J)),
    )
    return LoopModel((P,), state, (J,), (), terms.negate(done))


def drawn() -> st.SearchStrategy[LoopModel]:
    return st.one_of(dividing(), models())


@pytest.mark.slow("many random loop models")
@given(drawn(), st.data())
@settings(max_examples=cases(60))
def test_other_bits_than_those_demanded_decide_nothing(
    model: LoopModel, data: st.DataObject
) -> None:
    """Words that agree in the demanded bits go on alike, and agree in them ever after."""
    bits = demanded(model)
    word = st.integers(0, 15)
    parameters = [data.draw(word) for _ in model.parameters]
    one = [data.draw(word) for _ in model.state]
    masks = [bits[v.symbol] for v in model.state]
    other = [(a & m) | (data.draw(word) & ~m & 15) for a, m in zip(one, masks, strict=True)]
    step = ModelStepper(model).step
    inputs = [data.draw(word) for _ in model.inputs]
    first, second = step(parameters, one, inputs), step(parameters, other, inputs)
    assert (first is None) == (second is None)
    for a, b, m in zip(first or (), second or (), masks, strict=False):
        assert a & m == b & m


@pytest.mark.slow("many random loop models")
@given(drawn())
@settings(max_examples=cases(80))
def test_control_goes_on_as_long(model: LoopModel) -> None:
    """Each run of the model has one of its control, whose states are all listed."""
    control = control_of(model)
    assume(control is not None)
    assert control is not None
    states = states_of(control)
    exact = most_executions(model)
    longest = most_executions(control)
    if exact is None or longest is None:
        assert longest is None
        assert not states
    else:
        assert exact <= longest
        assert states is None or max(states.values()) == longest


@st.composite
def starting(draw: st.DrawFn) -> LoopModel:
    """A model of which parameters decide where it starts, and nothing else."""
    model = draw(models())
    known = {P: small(draw(st.integers(0, 15))), Q: small(draw(st.integers(0, 15)))}
    state = tuple(replace(v, next=substitute(v.next, known)) for v in model.state)
    return replace(model, state=state, again=substitute(model.again, known))


@pytest.mark.slow("many random loop models")
@given(starting())
@settings(max_examples=cases(60))
def test_all_starts_are_listed(model: LoopModel) -> None:
    """No run is longer than the states say; where no constraint is left out, one is as long."""
    states, longest = states_of(model), most_executions(model)
    if states:
        assert longest is not None
        assert max(states.values()) >= longest
    if longest is None:
        assert states is None


@pytest.mark.slow("many random loop models, with proofs by NuSMV")
@given(starting())
@settings(max_examples=cases(4))
def test_bounds_from_all_starts_are_proved(model: LoopModel) -> None:
    """By the model checker."""
    outcome = prove_explicit(model, BUDGET, find_checker())
    assert not outcome.failed
    exact = most_executions(model)
    assert outcome.bound is None or exact is None or exact <= outcome.bound


@pytest.mark.slow("many random loop models, with proofs by NuSMV")
@given(dividing())
@settings(max_examples=cases(8))
def test_bounds_by_listing_are_proved(model: LoopModel) -> None:
    """By the model checker, as any other: no run is longer."""
    outcome = prove_explicit(model, BUDGET, find_checker())
    assert not outcome.failed
    exact = most_executions(model)
    assert outcome.bound is None or (exact is not None and exact <= outcome.bound)


def test_bits_that_are_demanded_of_operators() -> None:
    def of(again: Term) -> int:
        return demanded(LoopModel((), (StateVariable(A, small(0), A),), (), (), again))[A]

    def is_set(word: Term, bit: int) -> Term:
        return terms.negate(terms.eq(operation("and", word, small(bit)), small(0)))

    assert of(is_set(A, 4)) == 4
    assert of(is_set(operation("lshr", A, small(1)), 2)) == 4
    assert of(is_set(operation("ashr", A, small(1)), 2)) == 12
    assert of(is_set(terms.add(A, small(3)), 4)) == 7
    assert of(terms.extract(A, 2, 1)) == 4
    assert of(terms.ult(A, small(5))) == 15
