"""Proofs against brute force on small words, and the traps of rules 19 to 22."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from loopbounds.budgets.budget import Budget, ProcessLimits, StepLimits
from loopbounds.budgets.table import HUGE, LONG_LOOP_SHARE, RUN_STEPS
from loopbounds.nusmv import nusmv_run as nusmv
from loopbounds.nusmv.model_text import smv_text
from loopbounds.nusmv.nusmv_run import check_invariants, find_solver
from loopbounds.proof.abstractions import LoopAbstractions, prove
from loopbounds.proof.prove import ProofOutcome, prove_model
from loopbounds.reduction.canonical import canonical
from loopbounds.reduction.coarsen import coarsen
from loopbounds.reduction.simplify import simplified
from loopbounds.sampling.runs import explore, longest
from loopbounds.smt.induction import SmtInduction
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, const, operation, sym
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import COUNT_WIDTH, LoopModel, StateVariable, at_most
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.brute_force import most_executions
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.drawn_models import A, B, J, P, Q, mixed, models, small
from tests.testing.loopbounds.models import (
    BUDGET,
    BYTE,
    PROVED,
    UP,
    M,
    N,
    X,
    Y,
    bits,
    counted,
    nonzero,
    word,
)

LARGE = mixed(16, N, bits(N, 0xFF))
KIB = bits(M, 0xFFFFFC00)
COARSE = {
    "the least of a large word and a constant": (
        counted(
            terms.ite(terms.ult(LARGE, word(32)), LARGE, word(32)),
            terms.sub(X, word(1)),
            terms.negate(terms.eq(X, word(1))),
            nonzero(LARGE),
        ),
        32,
    ),
    "from a large word, whose low bits have a say": (
        counted(
            LARGE,
            terms.add(X, word(1024)),
            terms.both(
                terms.ult(terms.ite(nonzero(bits(X, 31)), word(0x3F0), word(0x400)), word(0x401)),
                terms.negate(terms.eq(terms.add(X, word(1024)), terms.add(LARGE, KIB))),
            ),
            nonzero(KIB),
        ),
        (1 << 22) - 1,
    ),
}


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("name", COARSE)
def test_coarse_models_keep_what_relates_large_words(name: str) -> None:
    """A large word is one symbol everywhere: in initial values and in constraints."""
    model, expected = COARSE[name]
    simple = LoopAbstractions.of(model).simple
    starts = [v.initial for v in simple.state]
    assert rewrite.size(simple.again, *simple.constraints, *starts) < rewrite.size(LARGE)
    assert prove_model(simple, Budget(seconds=20), find_checker()).bound == expected


def test_only_the_low_bits_of_a_sum_are_those_of_the_start() -> None:
    """Low bits of other terms over the variable may change, as in half of it."""
    half = operation("lshr", X, const(2, 32))
    low = bits(terms.add(X, half), 3)
    again = terms.negate(terms.eq(low, word(3)))
    model = counted(word(0), terms.add(X, word(4)), again, TRUE)
    assert longest(explore(simplified(model))) == longest(explore(model)) == 4


TRAPS = {
    "no initial state": LoopModel((N,), (), (), (terms.ult(N, word(1)), nonzero(N)), TRUE),
    "runs for ever": LoopModel((), (StateVariable(X, word(0), X),), (), (), TRUE),
    "step of zero": counted(word(0), terms.add(X, bits(N, 1)), terms.ult(X, word(10))),
    "may step over the end": counted(
        word(0), terms.add(X, word(2)), terms.negate(terms.eq(X, bits(N, 7)))
    ),
    "wraps before the end": LoopModel(
        (), (StateVariable(X, word(5), UP),), (), (), terms.negate(terms.eq(X, word(4)))
    ),
    "waits for a device": LoopModel((), (), (BYTE,), (), terms.eq(BYTE, const(0, 8))),
    "list": LoopModel((N,), (StateVariable(X, N, Y),), (Y,), (), nonzero(X)),
}


ENDLESS = {
    "runs for ever": True,
    "step of zero": True,
    "waits for a device": True,
    "list": True,
    "may step over the end": False,
    "wraps before the end": False,
}


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("name", TRAPS)
def test_not_bounded(name: str) -> None:
    """Empty, endless, wrapping and device loops have no bound below the counter's range.

    A state that comes back needs no solver; a run that is only long may still have an end.
    """
    outcome = prove(TRAPS[name], Budget(seconds=20), find_checker())
    assert outcome.bound is None
    assert not outcome.failed
    assert outcome.endless == ENDLESS.get(name, outcome.endless)


def test_a_loop_that_is_never_repeated() -> None:
    """Leaving at once is one execution, in a model whose exit loops to itself."""
    outcome = prove(LoopModel((), (), (), (), FALSE), BUDGET, find_checker())
    assert (outcome.bound, outcome.reached) == (1, 1)


@pytest.mark.slow("NuSMV proves each bound")
def test_a_truncated_model_proves_nothing() -> None:
    """The property stands last: text that was cut off anywhere has no verdict."""
    text = smv_text(PROVED["signed"][0], [("bounded", at_most(1 << 20))])
    checks = [InvariantQuery("bounded")]
    for length in range(0, len(text) - 2, 23):
        [answer] = check_invariants(text[:length], checks, ProcessLimits(), find_solver())
        assert answer.verdict is InvariantVerdict.FAILED


def test_the_counter_saturates() -> None:
    """No bound may be claimed at or above the value where the counter stays."""
    with pytest.raises(ValueError, match="beyond the counter"):
        at_most((1 << COUNT_WIDTH) - 2)
    assert "executions != 0ud32_4294967295 ?" in smv_text(TRAPS["runs for ever"], [])


@pytest.mark.slow("many random loop models, with proofs by NuSMV")
@given(models())
@settings(max_examples=cases(7))
def test_against_brute_force(model: LoopModel) -> None:
    """No bound is below an execution; the reached number is an execution's."""
    exact = most_executions(model)
    assume(exact != 0)
    outcome = prove(model, Budget(seconds=20), find_checker())
    assert not outcome.failed
    if exact is None:
        assert outcome.bound is None
    else:
        assert outcome.reached <= exact
        assert outcome.bound is None or outcome.bound >= exact


@pytest.mark.slow("many random loop models, with proofs by NuSMV")
@given(models())
@settings(max_examples=cases(30))
def test_simpler_models_are_no_shorter(model: LoopModel) -> None:
    """Simplified: the same length. Coarse: the same or longer."""
    exact = most_executions(model)
    assert most_executions(simplified(model)) == exact
    coarse = most_executions(coarsen(model))
    assert coarse is None or (exact is not None and coarse >= exact)


def renamed(model: LoopModel) -> LoopModel:
    """The same model under other names, whose terms were not made in the same order."""
    names = {s: sym(f"other_{s.name}", 4) for s in (J, Q, B, P, A)}

    def other(term: Term) -> Term:
        return rewrite.substitute(term, names)

    return LoopModel(
        tuple(names[p] for p in reversed(model.parameters)),
        tuple(
            StateVariable(names[v.symbol], other(v.initial), other(v.next))
            for v in model.state[::-1]
        ),
        tuple(names[i] for i in model.inputs),
        tuple(map(other, reversed(model.constraints))),
        other(model.again),
    )


@pytest.mark.slow("many random loop models, with proofs by NuSMV")
@given(models())
@settings(max_examples=cases(30))
def test_names_and_order_make_no_other_question(model: LoopModel) -> None:
    """The canonical model of a model that differs in them has runs of the same lengths."""
    exact = most_executions(model)
    assert most_executions(canonical(model)) == exact
    assert most_executions(canonical(renamed(model))) == exact


def test_models_that_differ_in_names_and_order_are_one_question() -> None:
    counted_down = StateVariable(A, P, terms.sub(A, terms.add(operation("and", J, Q), small(1))))
    followed = StateVariable(B, small(0), terms.add(B, A))
    constraints = (terms.ule(P, small(9)), terms.ule(Q, P), terms.ult(small(0), Q))
    again = terms.both(terms.ult(B, A), terms.negate(terms.eq(A, Q)))
    model = LoopModel((P, Q), (counted_down, followed), (J,), constraints, again)
    assert renamed(model) != model
    assert canonical(renamed(model)) == canonical(model)
    assert smv_text(canonical(renamed(model)), []) == smv_text(canonical(model), [])


@pytest.mark.slow("NuSMV proves each bound")
def test_the_budget_is_counted_in_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer steps than needed never give a better bound; more steps give the same one.

    The checker is asked once, however often the search was: a proof took up to 48 processes.
    """
    model = counted(word(0), terms.add(X, word(3)), terms.ult(X, bits(N, 0xFFF0)))
    asked, ask_solver = [0], nusmv.check_invariants

    def counting(
        text: str, checks: Sequence[InvariantQuery], limits: ProcessLimits, solver: Path
    ) -> tuple[InvariantResult, ...]:
        asked[0] += 1
        return ask_solver(text, checks, limits, solver)

    monkeypatch.setattr(nusmv, "check_invariants", counting)
    wanted = prove(model, BUDGET, find_checker()).bound
    assert wanted is not None
    assert asked[0] == 1
    found = [prove(model, Budget(queries=queries), find_checker()) for queries in range(1, 8)]
    assert not any(outcome.failed for outcome in found)
    bounds = [outcome.bound or HUGE for outcome in found]
    assert bounds[0] > wanted
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == wanted
    assert asked[0] == 1 + sum(bound < HUGE for bound in bounds)


def between_unknowns() -> LoopModel:
    """A loop from one unknown to another: each bound takes thousands of steps of the search."""
    start, end = bits(N, 0x7FFF_FFE0), bits(M, 0x7FFF_FFFF)
    return counted(start, terms.add(X, word(32)), terms.ult(X, end))


def beside_data() -> LoopModel:
    """A counter to 22, beside a word with a large initial value and next values from inputs."""
    a, b, c, read = sym("a", 32), sym("b", 32), sym("c", 32), sym("i", 32)
    start = terms.add(N, M)
    few = terms.negate(terms.ult(word(5), bits(start, 7)))
    shifted = operation("xor", a, terms.scale(start, 512))
    large = terms.add(terms.add(start, b), terms.ite(few, shifted, c))
    on = terms.ite(terms.ult(word(22), Y), word(0), word(1))
    goes_on = nonzero(terms.ite(terms.slt(X, word(1000)), on, word(0)))
    data = StateVariable(X, large, operation("xor", read, terms.scale(X, 8)))
    counter = StateVariable(Y, word(0), terms.add(Y, word(1)))
    return LoopModel((N, M, a, b, c), (data, counter), (read,), (), goes_on)


def test_a_counter_beside_data_takes_few_steps() -> None:
    """The counter suffices: relations of the data to their initial values take many steps."""
    outcome = prove_model(beside_data(), Budget(steps=500), find_checker())
    assert (outcome.bound, outcome.reached) == (24, 24)


@pytest.mark.slow("NuSMV proves each bound")
def test_a_loop_longer_than_runs_are_followed_is_given_up_soon() -> None:
    """A share of its budget decides: a shared budget would starve other models."""
    few = prove(between_unknowns(), Budget(steps=120_000), find_checker())
    assert few.bound is None
    assert not few.failed
    assert few.reached >= RUN_STEPS


def test_a_model_that_leaves_things_out_has_less_of_the_budget() -> None:
    """Where there is a whole one to ask about; else all of it."""
    model = counted(word(0), terms.add(X, word(3)), terms.ult(X, bits(N, 0xFFF0)))
    simple = LoopAbstractions(model, model, model, model)
    assert simple.first_budget(BUDGET) == BUDGET
    whole = replace(model, constraints=(*model.constraints, terms.ult(N, word(9))))
    finer = LoopAbstractions(model, whole, whole, whole)
    assert finer.first_budget(BUDGET).steps < BUDGET.steps
    assert replace(finer.first_budget(BUDGET), steps=BUDGET.steps) == BUDGET


def test_the_last_model_has_all_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the whole one has, where no detailed one can be asked about next."""
    model = counted(word(0), terms.add(X, word(3)), terms.ult(X, bits(N, 0xFF)))
    whole = replace(model, constraints=(terms.ult(N, word(9)),))
    detailed = replace(model, constraints=(terms.ult(N, word(8)),))
    asked: list[tuple[LoopModel, int]] = []

    def not_proved(
        model: LoopModel, budget: Budget, checker: Checker, most: int = HUGE
    ) -> ProofOutcome:
        asked.append((model, budget.steps))
        return ProofOutcome(None, 1, 0, "", "", 0.0)

    monkeypatch.setattr("loopbounds.proof.abstractions.prove_model", not_proved)
    open_ = ProofOutcome(None, 1, 0, "", "", 0.0)
    checker, steps = find_checker(), BUDGET.steps
    LoopAbstractions(model, whole, detailed, detailed).refined(open_, BUDGET, checker)
    assert [of for of, _ in asked] == [whole, detailed]
    assert asked[0][1] < asked[1][1] == steps
    asked.clear()
    LoopAbstractions(model, whole, whole, whole).refined(open_, BUDGET, checker)
    assert asked == [(whole, steps)]


@pytest.mark.slow("NuSMV proves each bound")
def test_a_search_takes_the_steps_of_its_budget() -> None:
    """The limit covers all checks; then the least bound so far is proved."""
    model = between_unknowns()
    for steps in (1, 100, 10_000):
        search = SmtInduction(model, most=steps)
        claims = [("claim", at_most(n)) for n in (1 << 27, 1 << 28, 1 << 29)]
        for claim in claims:
            search.check([claim], [InvariantQuery("claim", 4)], StepLimits())
        checks = len(claims) * 2 * 5
        assert search.steps <= steps + checks  # one that is stopped has taken one step more
    least = (1 << 26) + 1
    enough = 120_000 * LONG_LOOP_SHARE
    found = {n: prove(model, Budget(steps=n), find_checker()) for n in (100, enough)}
    assert not any(outcome.failed for outcome in found.values())
    assert found[100].bound is None
    bound = found[enough].bound
    assert bound is not None
    assert least < bound < HUGE


def test_the_seconds_of_an_answer_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds of the whole model pass on the same clock."""
    model = counted(word(0), terms.add(X, word(3)), terms.ult(X, bits(N, 0xFF)))
    whole = replace(model, constraints=(terms.ult(N, word(9)),))
    slow = ProofOutcome(None, 1, 0, "", "", 1000.0)
    monkeypatch.setattr("loopbounds.proof.abstractions.prove_model", lambda *_: slow)
    before = replace(slow, seconds=500.0)
    found = LoopAbstractions(model, whole, whole, whole).refined(before, BUDGET, find_checker())
    assert 500 <= found.seconds < 1000
