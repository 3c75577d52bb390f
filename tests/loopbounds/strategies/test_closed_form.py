"""Loops that move one word to an end: the longest distance in initial states is the bound."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from loopbounds.budgets.table import HUGE, RUN_STEPS
from loopbounds.proof.prove import prove_model
from loopbounds.strategies.closed_form import ClosedForm, moving_word
from loopbounds.strategies.strategy import ProofTask
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, operation
from loopbounds.transition.model import LoopModel, StateVariable
from loopbounds.transition.stepper import ModelStepper
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.models import BUDGET, BYTE, UP, M, N, X, bits, counted, word

LONG = 1 << 14  # executions: no terminating run below takes as many


def until(first: Term, change: int, end: Term, *constraints: Term) -> LoopModel:
    again = terms.negate(terms.eq(X, end))
    return counted(first, terms.add(X, word(change)), again, *constraints)


def longest(model: LoopModel) -> int | None:
    """The most executions of any run; None if one does not end. Parameters are below 64."""
    stepper = ModelStepper(model)
    most = 0
    for n in range(64):
        for m in range(64):
            state = stepper.start((n, m))
            executions = 0
            while state is not None:
                executions += 1
                if executions == LONG:
                    return None
                state = stepper.step((n, m), state, ())
            most = max(most, executions)
    return most


def drawn(rng: random.Random) -> LoopModel:
    """A model from N to a word of M, or to a number, by any small step."""
    step = rng.choice([1, 2, 4, 8, 16, 3, 6])
    change = rng.choice([step, -step])
    first = rng.choice([N, terms.scale(N, step), terms.add(terms.scale(N, step), word(5))])
    sizes = terms.ite(terms.eq(bits(M, 1), word(0)), word(4 * step), word(32 * step))
    far = rng.choice([terms.scale(M, step), M, word(4 * step), bits(M, 40), sizes])
    end = terms.add(first, terms.scale(far, 1 if change > 0 else -1))
    limits = [terms.ult(one, word(64)) for one in (N, M)]
    if rng.random() < 0.3:
        limits.append(terms.ult(N, bits(M, rng.choice([0, 7, 60]))))
    return until(first, change, rng.choice([end, end, terms.scale(M, step)]), *limits)


@pytest.mark.slow("proves random loops")
def test_bounds_are_the_longest_runs() -> None:
    counts: Counter[str] = Counter()
    for seed in range(cases(30)):
        model = drawn(random.Random(seed))
        task = ProofTask(model, BUDGET, find_checker())
        if not ClosedForm().applies(task):
            counts["not of this form"] += 1
            continue
        found, most = ClosedForm().attempt(task), longest(model)
        if found is not None:
            assert found.bound == most == task.attained, seed
            counts["proved"] += 1
        elif most is None or most == 0:
            counts["no bound"] += 1
        else:
            counts["missed"] += 1
    assert counts["proved"] > cases(10), counts
    assert counts["no bound"] > cases(1), counts
    assert not counts["missed"], counts


@pytest.mark.parametrize("apart", [0, 1, 70_000, (1 << 19) - 1, (1 << 24) + 3])
def test_no_run_is_sampled(apart: int) -> None:
    model = until(N, 32, terms.add(N, terms.scale(M, 32)), terms.ule(M, word(apart)))
    task = ProofTask(model, BUDGET, find_checker())
    found = ClosedForm().attempt(task)
    assert found is not None
    assert found.bound == task.attained == apart + 1
    assert task.samples is None
    task.take(found)
    assert task.is_settled


def test_longer_runs_than_any_bound() -> None:
    outcome = prove_model(until(N, 1, M), BUDGET, find_checker())
    assert outcome.bound is None
    assert outcome.reached == RUN_STEPS
    assert not outcome.failed
    lower = until(N, 1, M, terms.ule(terms.sub(M, N), word(5000)))
    assert prove_model(lower, BUDGET, find_checker(), most=2500).bound is None
    assert prove_model(lower, BUDGET, find_checker(), most=HUGE).bound == 5001


OTHERS = {
    "two conditions": counted(N, UP, terms.both(terms.negate(terms.eq(X, M)), terms.ult(X, N))),
    "less than the end": counted(N, UP, terms.ult(X, M)),
    "no constant step": counted(N, terms.add(X, M), terms.negate(terms.eq(X, word(0)))),
    "a multiple of the word": counted(N, UP, terms.negate(terms.eq(terms.scale(X, 2), M))),
    "a moving end": counted(N, UP, terms.negate(terms.eq(X, bits(X, 0xFF00)))),
    "an end that is read anew": LoopModel(
        (N,), (StateVariable(X, N, UP),), (M,), (), terms.negate(terms.eq(X, M))
    ),
    "a step that is no power of two": until(N, 12, M),
    "a byte": LoopModel(
        (BYTE,),
        (StateVariable(X, terms.zext(BYTE, 32), operation("xor", X, word(1))),),
        (),
        (),
        terms.negate(terms.eq(X, word(0))),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_are_left_to_others(name: str) -> None:
    assert moving_word(OTHERS[name]) is None
