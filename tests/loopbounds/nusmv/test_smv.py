"""Printed terms are well-typed, and NuSMV and our evaluator give the same values."""

from __future__ import annotations

import pytest

from loopbounds.budgets.budget import Budget, ProcessLimits, SolverLimits
from loopbounds.nusmv.model_text import smv_text
from loopbounds.nusmv.nusmv_run import check_invariants, find_solver
from loopbounds.nusmv.printing import SmvPrinter, TooLarge, is_sayable
from loopbounds.proof.abstractions import LoopAbstractions, prove
from loopbounds.proof.prove import prove_model
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, Term, const, sym
from loopbounds.terms.term import make
from loopbounds.terms.well_typed import IllTyped
from loopbounds.transition.model import LoopModel, StateVariable
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.drawn_terms import Drawn, equals


def claims_of(drawn: Drawn, found: list[Term]) -> list[Term]:
    return [equals(t, v) for t, v in zip(found, drawn.values_of(found), strict=True)]


def judged(drawn: Drawn, claims: list[Term]) -> InvariantVerdict:
    """NuSMV's verdict on all claims at once, for the values that symbols have."""
    symbols = tuple(drawn.values)
    starts = tuple(equals(s, v) for s, v in drawn.values.items())
    model = LoopModel(symbols, (), (), starts, FALSE)
    together = make("and", 1, tuple(claims)) if len(claims) > 1 else claims[0]
    [answer] = check_invariants(
        smv_text(model, [("all", together)]),
        [InvariantQuery("all")],
        ProcessLimits(),
        find_solver(),
    )
    assert answer.verdict is not InvariantVerdict.FAILED, answer.reason
    return answer.verdict


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("seed", range(cases(1)))
def test_nusmv_computes_what_the_evaluator_does(seed: int) -> None:
    """Every operator, on words of every width and on Booleans, in random terms.

    Sums, products, shifts, comparisons and counts of Booleans were ill-typed ("illegal operand
    types"), overflow of 64 bits was, and other widths than powers of two raised KeyError.
    """
    drawn = Drawn(seed)
    claims = claims_of(drawn, drawn.terms(1))
    pending = [claims[i : i + 150] for i in range(0, len(claims), 150)]
    wrong = []
    while pending:
        part = pending.pop()
        if judged(drawn, part) is not InvariantVerdict.TRUE:
            half = len(part) // 2
            wrong += part if not half else []
            pending += [part[:half], part[half:]] if half else []
    assert not wrong


@pytest.mark.slow("NuSMV proves each bound")
def test_a_wrong_value_is_seen() -> None:
    """The comparison above can fail."""
    drawn = Drawn(99)
    claims = claims_of(drawn, drawn.terms(1))
    assert judged(drawn, [*claims[:20], make("not", 1, (claims[30],))]) is InvariantVerdict.FALSE


@pytest.mark.parametrize(
    "term",
    [
        make("linear", 32, (sym("b", 1), sym("w", 32)), 0, (1, 1)),
        make("ite", 32, (sym("w", 32), sym("w", 32), sym("w", 32))),
        make("eq", 1, (sym("w", 32), sym("h", 8))),
        make("not", 32, (sym("w", 32),)),
        make("clz", 8, (sym("w", 32),)),
        make("zext", 32, (sym("w", 32),)),
        make("extract", 8, (sym("w", 32),), 28),
        make("unheard of", 32, (sym("w", 32), sym("w", 32))),
    ],
)
def test_ill_typed_terms_are_not_printed(term: Term) -> None:
    """Terms that NuSMV would refuse raise IllTyped."""
    symbols = {s: s.name for s in rewrite.symbols([term])}
    with pytest.raises(IllTyped):
        SmvPrinter(symbols).define([term])
    with pytest.raises(IllTyped):
        SmvPrinter({}).define([sym("q", 12)])


def test_a_boolean_counted_from_its_start() -> None:
    """A variable of one bit that is counted from its start is a sum of Booleans."""
    x, p = sym("x0", 1), sym("p0", 1)
    start = make("linear", 1, (x, p), 1, (1, 1))
    model = LoopModel((p,), (StateVariable(x, FALSE, start),), (), (), terms.TRUE)
    [answer] = check_invariants(
        smv_text(model, [("q", terms.TRUE)]), [InvariantQuery("q")], ProcessLimits(), find_solver()
    )
    assert answer.verdict is InvariantVerdict.TRUE


def test_inputs_that_determine_each_other() -> None:
    """Of two equations with the same inputs the second brought the first one's input back.

    The model then named a symbol that it did not have: KeyError in canonical.py.
    """
    i, j, p, x = sym("i0", 32), sym("i1", 32), sym("p0", 32), sym("x0", 32)
    masked = terms.eq(terms.operation("and", i, p), j)
    again = terms.both(terms.eq(i, terms.add(j, x)), masked)
    step = StateVariable(x, const(0, 32), terms.add(i, j))
    question = LoopAbstractions.of(LoopModel((p,), (step,), (i, j), (), again))
    for model in (question.simple, question.whole, question.exact):
        declared = {*model.parameters, *model.inputs, *(v.symbol for v in model.state)}
        assert rewrite.symbols(model.terms()) <= declared


def test_words_that_nusmv_does_not_have() -> None:
    """A load of 16 bytes, whose low word counts: any word, where NuSMV cannot express it."""
    wide, x, n = sym("i0", 128), sym("x0", 32), sym("i1", 32)
    low = terms.extract(terms.operation("lshr", wide, terms.zext(n, 128)), 0, 32)
    again = terms.both(terms.ult(x, const(9, 32)), terms.ult(low, const(5, 32)))
    step = StateVariable(x, const(0, 32), terms.add(x, const(1, 32)))
    model = LoopModel((), (step,), (wide, n), (), again)
    question = LoopAbstractions.of(model)
    assert is_sayable(question.simple.terms())
    assert is_sayable(question.whole.terms())
    assert not is_sayable(model.terms())
    outcome = prove(model, Budget(), find_checker())
    assert (outcome.bound, outcome.failed) == (10, "")


def doubling(times: int) -> LoopModel:
    """A counter whose start is ``times`` choices, each of which names the one before thrice."""
    x, p = sym("x0", 32), sym("p0", 32)
    large: Term = p
    for n in range(times):
        shifted = terms.operation("lshr", large, const(1, 32))
        large = terms.ite(terms.ult(large, const(n + 77, 32)), large, shifted)
    bit = terms.operation("and", terms.extract(large, 0, 8), const(1, 8))
    step = StateVariable(x, terms.zext(bit, 32), terms.add(x, const(1, 32)))
    return LoopModel((p,), (step,), (), (), terms.ult(x, const(9, 32)))


@pytest.mark.slow("NuSMV proves each bound")
def test_a_term_that_doubles_when_definitions_are_written_out() -> None:
    """NuSMV counts its parts in 32 bits: 2**31 were ill-typed to it, and it ended by signal 6."""
    budget = Budget(seconds=5, limits=SolverLimits(ProcessLimits(seconds=3)))
    whole = prove_model(doubling(5), Budget(), find_checker())
    assert (whole.bound, whole.failed) == (10, "")
    with pytest.raises(TooLarge):
        smv_text(doubling(40), [])
    large = prove_model(doubling(40), budget, find_checker())
    assert (large.bound, large.failed) == (None, "")  # not within the limits
    assert not is_sayable(doubling(40).terms())
    outcome = prove(doubling(40), Budget(), find_checker())
    assert (outcome.bound, outcome.failed) == (10, "")  # any start will do


@pytest.mark.slow("a term of 800 operations")
def test_a_deep_term() -> None:
    """NuSMV recurses: a sum of a thousand parts ended it by signal 11, in a stack of 8 MiB."""
    x = sym("x0", 32)
    deep: Term = x
    for n in range(800):
        deep = make("linear", 32, (make("xor", 32, (deep, const(n, 32))),), 1, (1,))
    model = LoopModel((x,), (), (), (), FALSE)
    claim = make("eq", 1, (deep, const(3, 32)))
    [answer] = check_invariants(
        smv_text(model, [("q", claim)]),
        [InvariantQuery("q", depth=0)],
        ProcessLimits(),
        find_solver(),
    )
    assert answer.verdict is InvariantVerdict.FALSE
