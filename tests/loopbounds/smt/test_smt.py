"""The SMT solver agrees with our evaluator, and its k-induction with NuSMV's."""

from __future__ import annotations

import random
import resource
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from types import FrameType

import pytest

from loopbounds.budgets.budget import ProcessLimits, StepLimits
from loopbounds.nusmv.model_text import smv_text
from loopbounds.nusmv.nusmv_run import check_invariants, find_solver
from loopbounds.smt.induction import SmtInduction
from loopbounds.smt.solver import SmtResult, SmtSolver
from loopbounds.smt.translation import SmtTranslation
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, const, operation, sym
from loopbounds.terms.evaluate import compile_terms
from loopbounds.terms.term import make
from loopbounds.terms.well_typed import IllTyped
from loopbounds.transition.model import COUNT, RUNNING, LoopModel, StateVariable, at_most
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict
from loopbounds.transition.stepper import ModelStepper
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.drawn_terms import Drawn, equals
from tests.testing.loopbounds.models import PROVED

EFFORT = StepLimits()
VERDICTS = (InvariantVerdict.TRUE, InvariantVerdict.FALSE, InvariantVerdict.UNKNOWN)


def translated(drawn: Drawn) -> tuple[SmtSolver, SmtTranslation]:
    solver = SmtSolver()
    symbols = {s: solver.symbol(s.name, s.width) for s in drawn.values}
    return solver, SmtTranslation(solver, symbols)


@pytest.mark.parametrize("seed", range(cases(2)))
def test_the_solver_computes_what_the_evaluator_does(seed: int) -> None:
    """Every operator, on words of every width and on Booleans, in random terms."""
    drawn = Drawn(seed)
    found = drawn.terms(2)
    solver, translation = translated(drawn)
    formulas = translation.of(found)
    starts = translation.of(equals(s, v) for s, v in drawn.values.items())
    answer = solver.check(starts, EFFORT)
    assert answer.result is SmtResult.SAT
    assert [answer.value(f) for f in formulas] == list(drawn.values_of(found))


@pytest.mark.slow("the solver chooses values of hundreds of terms")
@pytest.mark.parametrize("seed", range(cases(2)))
def test_what_the_solver_chooses_the_evaluator_confirms(seed: int) -> None:
    """Values are not given: it is the circuits of the operators that are compared."""
    drawn = Drawn(seed)
    found = drawn.terms(1)
    order = list(drawn.values)
    wanted = [t for t in found if t.width == 1 and t.op not in ("and", "or", "not", "const")]
    satisfied = 0
    for claim in wanted[:60]:
        for value in (0, 1):
            solver, translation = translated(drawn)
            [formula] = translation.of([equals(claim, value)])
            answer = solver.check([formula], StepLimits(steps=4000))
            if answer.result is SmtResult.SAT:
                satisfied += 1
                values = [answer.value(f) for f in translation.of(order)]
                assert compile_terms([claim], order)(values) == (value,), claim
    assert satisfied > 60


CORNERS = {
    "a shift by the width": ("shl", 8, 8, 0),
    "a shift beyond the width": ("lshr", 200, 9, 0),
    "a sign beyond the width": ("ashr", 0x80, 255, 0xFF),
    "a quotient by 0": ("udiv", 7, 0, 0),
    "a remainder by 0": ("urem", 7, 0, 7),
    "overflow of a difference": ("sborrow", 0x80, 1, 1),
    "overflow of a sum": ("scarry", 0x7F, 1, 1),
    "no overflow": ("scarry", 0xFF, 1, 0),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corners(name: str) -> None:
    """Operations that SMT-LIB defines differently or not at all, for chosen words."""
    op, a, b, value = CORNERS[name]
    x, y = sym("x", 8), sym("y", 8)
    solver = SmtSolver()
    translation = SmtTranslation(solver, {s: solver.symbol(s.name, 8) for s in (x, y)})
    width = 1 if op in ("sborrow", "scarry") else 8
    claims = [equals(x, a), equals(y, b), terms.negate(equals(make(op, width, (x, y)), value))]
    assert solver.check(translation.of(claims), EFFORT).result is SmtResult.UNSAT


@pytest.mark.parametrize("width", [1, 2, 3, 8, 13, 32])
@pytest.mark.parametrize("op", ["clz", "popcount"])
def test_counts_of_bits(op: str, width: int) -> None:
    """The count of every word equals the evaluator's."""
    x = sym("x", width)
    for value in {
        0,
        1,
        (1 << width) - 1,
        1 << (width - 1),
        random.Random(width).getrandbits(width),
    }:
        solver = SmtSolver()
        translation = SmtTranslation(solver, {x: solver.symbol("x", width)})
        count = make(op, width, (x,))
        expected = compile_terms([count], [x])([value])[0]
        claims = [equals(x, value), terms.negate(equals(count, expected))]
        assert solver.check(translation.of(claims), EFFORT).result is SmtResult.UNSAT


@pytest.mark.parametrize(
    "term",
    [
        make("linear", 32, (sym("b", 1), sym("w", 32)), 0, (1, 1)),
        make("not", 32, (sym("w", 32),)),
        make("clz", 8, (sym("w", 32),)),
        make("unheard of", 32, (sym("w", 32), sym("w", 32))),
    ],
)
def test_ill_typed_terms_are_not_translated(term: Term) -> None:
    """Refused by a name of its own, as the printer does."""
    solver = SmtSolver()
    symbols = {s: solver.symbol(s.name, s.width) for s in rewrite.symbols([term])}
    with pytest.raises(IllTyped):
        SmtTranslation(solver, symbols).of([term])
    with pytest.raises(IllTyped):
        SmtTranslation(solver, {}).of([sym("q", 12)])


def random_model(chance: random.Random) -> LoopModel:
    """Of words of four bits, with a Boolean, a parameter and sometimes an input."""
    p, i, b, x, y = sym("p", 4), sym("i", 4), sym("b", 1), sym("x", 4), sym("y", 4)
    inputs = (i,) if chance.random() < 0.5 else ()
    words = [p, x, y, *inputs]

    def drawn() -> Term:
        a, c = chance.choice(words), chance.choice(words)
        made = (
            terms.add(a, const(chance.randrange(16), 4)),
            operation(chance.choice(("and", "or", "xor", "lshr", "mul")), a, c),
            terms.ite(b, a, c),
        )
        return chance.choice(made)

    def condition() -> Term:
        a, c = drawn(), chance.choice((*words, const(chance.randrange(16), 4)))
        return chance.choice((terms.ult(a, c), terms.negate(terms.eq(a, c)), terms.slt(a, c)))

    state = (
        StateVariable(x, chance.choice((p, const(chance.randrange(4), 4))), drawn()),
        StateVariable(y, const(0, 4), drawn()),
        StateVariable(b, chance.choice((TRUE, FALSE)), condition()),
    )
    limited = (terms.ult(p, const(chance.randrange(1, 16), 4)),) if chance.random() < 0.3 else ()
    return LoopModel((p,), state, inputs, limited, condition())


def claims_about(chance: random.Random) -> list[Term]:
    x, y = sym("x", 4), sym("y", 4)
    some = const(chance.randrange(16), 4)
    return [
        at_most(chance.randrange(1, 9)),
        terms.both(at_most(chance.randrange(1, 20)), terms.ule(x, some)),
        terms.either(terms.negate(RUNNING), terms.ule(y, some)),
        TRUE,
        FALSE,
    ]


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("seed", range(cases(4)))
def test_checks_have_the_answers_of_nusmv(seed: int) -> None:
    """The same verdict for every depth, true, false or unknown; and its trace is right."""
    chance = random.Random(seed)
    seen = dict.fromkeys(VERDICTS, 0)
    for _ in range(4):
        model = random_model(chance)
        asked = [(claim, depth) for claim in claims_about(chance) for depth in (0, 1, 4)]
        asked = [(claim, depth) for claim, depth in asked if depth or claim is not TRUE]
        properties = [(f"c{n}", claim) for n, (claim, _) in enumerate(asked)]
        checks = [InvariantQuery(f"c{n}", depth) for n, (_, depth) in enumerate(asked)]
        told = check_invariants(smv_text(model, properties), checks, ProcessLimits(), find_solver())
        for plain in (False, True):
            found = SmtInduction(model, plain=plain).check(properties, checks, EFFORT)
            assert [a.verdict for a in found] == [a.verdict for a in told]
            for check, answer in zip(checks, found, strict=True):
                shown(model, dict(properties)[check.name], answer)
                seen[answer.verdict] += 1
    assert all(seen.values())


def shown(model: LoopModel, claim: Term, answer: InvariantResult) -> None:
    """A trace is one of the model, by our own evaluator, and ends where ``claim`` fails."""
    if not answer.trace:
        return
    stepper, variables = ModelStepper(model), [v.symbol for v in model.state]
    parameters = [answer.trace[0][p.name] for p in model.parameters]
    states = [tuple(at[v.name] for v in variables) for at in answer.trace]
    if answer.verdict is InvariantVerdict.FALSE:
        assert stepper.start(parameters) == states[0]
        assert (answer.trace[0][COUNT.name], answer.trace[0][RUNNING.name]) == (1, 1)
    steps = zip(pairwise(answer.trace), pairwise(states), strict=True)
    for (before, after), (now, then) in steps:
        inputs = [after[i.name] for i in model.inputs]
        following = stepper.step(parameters, now, inputs) if before[RUNNING.name] else None
        assert then == (now if following is None else following)
        assert after[COUNT.name] == before[COUNT.name] + (following is not None)
        assert after[RUNNING.name] == (following is not None)
    order = [*model.parameters, *variables, COUNT, RUNNING]
    holds = compile_terms([claim], order)
    judged = [holds([at[s.name] for s in order])[0] for at in answer.trace]
    assert judged == [1] * (len(judged) - 1) + [0]


def test_answers_are_repeatable() -> None:
    """The solver gives the same traces after other queries in the same process."""
    model, _ = PROVED["inclusive binary search"]
    properties, checks = [("c", at_most(3))], [InvariantQuery("c", 4)]
    first = SmtInduction(model).check(properties, checks, EFFORT)
    for other, _ in list(PROVED.values())[:4]:
        SmtInduction(other).check(properties, checks, EFFORT)
    assert SmtInduction(model).check(properties, checks, EFFORT) == first


def hard(width: int = 64) -> LoopModel:
    """A product of two primes is to be found."""
    a, b = sym("a", width), sym("b", width)
    product = make("mul", width, (a, b))
    limits = [terms.ult(const(1, width), s) for s in (a, b)]
    limits += [terms.ult(s, const(1 << width // 2, width)) for s in (a, b)]
    found = terms.eq(product, const(9633832748884915969, width))
    return LoopModel((a, b), (), (), (*limits, found), FALSE)


@pytest.mark.slow("waits for limits of a solver")
def test_a_check_is_bounded_in_steps() -> None:
    """It stops after as many steps, and says that nothing is known."""
    for steps in (10, 1000):
        [answer] = SmtInduction(hard()).check(
            [("c", FALSE)], [InvariantQuery("c", 0)], StepLimits(steps=steps)
        )
        assert answer.verdict is InvariantVerdict.EXPIRED


@pytest.mark.slow("waits for limits of a solver")
def test_a_check_is_bounded_in_seconds() -> None:
    """Of processor time, which other load does not use up."""
    start = time.process_time()
    [answer] = SmtInduction(hard()).check(
        [("c", FALSE)], [InvariantQuery("c", 0)], StepLimits(1 << 30, seconds=1)
    )
    assert answer.verdict is InvariantVerdict.EXPIRED
    assert time.process_time() - start < 5


def large_check() -> InvariantVerdict:
    """Four hundred equations of products need 1,700 MiB: the check stops long before."""
    words = [sym(f"w{n}", 32) for n in range(400)]
    products = [make("mul", 32, (a, b)) for a, b in pairwise((*words, words[0]))]
    others = [make("mul", 32, (words[7 * n % 400], words[3 * n % 397])) for n in range(400)]
    equal = [make("eq", 1, pair) for pair in zip(products, others, strict=True)]
    claim = make("not", 1, (make("and", 1, tuple(equal)),))
    model = LoopModel(tuple(words), (), (), (), FALSE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    effort = StepLimits(steps=1 << 30, memory=1 << 24)
    [answer] = SmtInduction(model).check([("c", claim)], [InvariantQuery("c", 0)], effort)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 3 << 18  # KiB
    return answer.verdict


@pytest.mark.slow("waits for limits of a solver")
def test_a_check_is_bounded_in_memory() -> None:
    """In a process of its own: this one has freed memory that it would use first."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(large_check).result() is InvariantVerdict.EXPIRED


def test_what_a_signal_raises_ends_a_check() -> None:
    """Also where the signal arrives inside the library, which ignores exceptions raised in it."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        start = time.process_time()
        with pytest.raises(TimeoutError):
            SmtInduction(hard()).check(
                [("c", FALSE)], [InvariantQuery("c", 0)], StepLimits(1 << 30, seconds=20)
            )
        assert time.process_time() - start < 10
        assert signal.getsignal(signal.SIGALRM) is stop
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
