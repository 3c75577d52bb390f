"""What is printed is well-typed, and NuSMV computes of it what our evaluator does."""

from __future__ import annotations

import random

import pytest

from loopbounds.nusmv.model import LoopModel, Variable
from loopbounds.nusmv.printing import IllTyped, Printer, is_sayable
from loopbounds.nusmv.query import Check, CheckVerdict, Limits, ask, find_solver
from loopbounds.proof.prove import Budget, Question, prove
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, Term, const, mask, sym
from loopbounds.terms.evaluate import compile_terms
from loopbounds.terms.term import make

WIDTHS = (1, 2, 3, 5, 8, 13, 16, 24, 31, 32, 33, 48, 63, 64)
SAME = ("and", "or", "xor", "mul", "udiv", "urem")
COMPARE = ("eq", "ult", "slt", "sborrow", "scarry")
SHIFTS = ("shl", "lshr", "ashr")
COUNTS = ("clz", "popcount")
OTHERS = ("not", "ite", "linear", "zext", "sext", "extract", "concat")
OPERATORS = (*SAME, *COMPARE, *SHIFTS, *COUNTS, *OTHERS)
CORNERS = (0, 1, 2, 3, -1, -2)


class Drawn:
    """Random terms of every operator on words of every width, with their values."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.values = {
            sym(f"v{width}_{n}", width): self.word(width) for width in WIDTHS for n in range(3)
        }
        self.pool: dict[int, list[Term]] = {}
        for symbol in self.values:
            self.pool.setdefault(symbol.width, []).append(symbol)

    def word(self, width: int) -> int:
        corner = self.chance.choice((*CORNERS, 1 << (width - 1), mask(width) >> 1))
        return self.chance.choice((corner, self.chance.getrandbits(width))) & mask(width)

    def some(self, width: int) -> Term:
        """Something known, often what was made last; sometimes a constant."""
        if self.chance.random() < 0.12:
            return const(self.word(width), width)
        known = self.pool[width]
        return self.chance.choice(known[-6:] if self.chance.random() < 0.6 else known)

    def operation(self, op: str, width: int) -> Term:
        """The operator as it is, whatever constructors would make of it."""
        a, b, some = self.some(width), self.some(width), self.some
        if op in ("udiv", "urem"):
            return make(op, width, (a, const(self.word(width), width)))
        if op in SAME or op in COUNTS:
            return make(op, width, (a, b) if op in SAME else (a,))
        if op in COMPARE:
            return make(op, 1, (a, b))
        if op in SHIFTS:
            amount = some(self.chance.choice(WIDTHS))
            if self.chance.random() < 0.5:
                amount = const(self.chance.randrange(2 * width), max(8, width))
            return make(op, width, (a, amount))
        if op == "not":
            return make(op, 1, (some(1),))
        if op == "ite":
            return make(op, width, (some(1), a, b))
        if op == "linear":
            args = [some(width) for _ in range(self.chance.randint(1, 3))]
            factors = tuple(self.word(width) for _ in args)
            return make(op, width, tuple(args), self.word(width), factors)
        narrower = [w for w in WIDTHS if w < width]
        if op == "concat":
            pairs = [(w, width - w) for w in narrower if width - w in WIDTHS]
            high, low = self.chance.choice(pairs) if pairs else (1, 1)
            return make(op, high + low, (some(high), some(low)))
        if not narrower:
            width, narrower = 8, [1, 2, 3, 5]
        inner = self.chance.choice(narrower)
        if op == "extract":
            low = self.chance.randrange(width - inner + 1)
            return make(op, inner, (some(width),), low)
        return make(op, width, (some(inner),))

    def terms(self, rounds: int) -> list[Term]:
        """Every operator on every width, ``rounds`` times, over what was made before."""
        asked = [(op, width) for _ in range(rounds) for op in OPERATORS for width in WIDTHS]
        self.chance.shuffle(asked)
        found = []
        for op, width in asked:
            term = self.operation(op, width)
            if rewrite.size(term) < 20:
                self.pool[term.width].append(term)
            found.append(term)
        return found


def claims_of(drawn: Drawn, found: list[Term]) -> list[Term]:
    order = list(drawn.values)
    values = compile_terms(found, order)([drawn.values[s] for s in order])
    return [equals(t, v) for t, v in zip(found, values, strict=True)]


def equals(term: Term, value: int) -> Term:
    if term.width > 1:
        return make("eq", 1, (term, const(value, term.width)))
    return term if value else make("not", 1, (term,))


def judged(drawn: Drawn, claims: list[Term]) -> CheckVerdict:
    """NuSMV's verdict on all claims at once, for the values that symbols have."""
    symbols = tuple(drawn.values)
    starts = tuple(equals(s, v) for s, v in drawn.values.items())
    model = LoopModel(symbols, (), (), starts, FALSE)
    together = make("and", 1, tuple(claims)) if len(claims) > 1 else claims[0]
    [answer] = ask(model.smv([("all", together)]), [Check("all")], Limits(), find_solver())
    assert answer.verdict is not CheckVerdict.FAILED, answer.reason
    return answer.verdict


@pytest.mark.parametrize("seed", range(3))
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
        if judged(drawn, part) is not CheckVerdict.TRUE:
            half = len(part) // 2
            wrong += part if not half else []
            pending += [part[:half], part[half:]] if half else []
    assert not wrong


def test_a_wrong_value_is_seen() -> None:
    """The comparison above can fail."""
    drawn = Drawn(99)
    claims = claims_of(drawn, drawn.terms(1))
    assert judged(drawn, [*claims[:20], make("not", 1, (claims[30],))]) is CheckVerdict.FALSE


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
    """What NuSMV would refuse is refused here, by a name of its own."""
    symbols = {s: s.name for s in rewrite.symbols([term])}
    with pytest.raises(IllTyped):
        Printer(symbols).define([term])
    with pytest.raises(IllTyped):
        Printer({}).define([sym("q", 12)])


def test_a_boolean_counted_from_its_start() -> None:
    """A variable of one bit that is counted from its start is a sum of Booleans."""
    x, p = sym("x0", 1), sym("p0", 1)
    start = make("linear", 1, (x, p), 1, (1, 1))
    model = LoopModel((p,), (Variable(x, FALSE, start),), (), (), terms.TRUE)
    [answer] = ask(model.smv([("q", terms.TRUE)]), [Check("q")], Limits(), find_solver())
    assert answer.verdict is CheckVerdict.TRUE


def test_inputs_that_determine_each_other() -> None:
    """Of two equations with the same inputs the second brought the first one's input back.

    The model then named a symbol that it did not have: KeyError in canonical.py.
    """
    i, j, p, x = sym("i0", 32), sym("i1", 32), sym("p0", 32), sym("x0", 32)
    masked = terms.eq(terms.operation("and", i, p), j)
    again = terms.both(terms.eq(i, terms.add(j, x)), masked)
    step = Variable(x, const(0, 32), terms.add(i, j))
    question = Question.about(LoopModel((p,), (step,), (i, j), (), again))
    for model in (question.simple, question.whole, question.exact):
        declared = {*model.parameters, *model.inputs, *(v.symbol for v in model.state)}
        assert rewrite.symbols(model.terms()) <= declared


def test_words_that_nusmv_does_not_have() -> None:
    """A load of 16 bytes, whose low word counts: any word, where it cannot be said what it is."""
    wide, x, n = sym("i0", 128), sym("x0", 32), sym("i1", 32)
    low = terms.extract(terms.operation("lshr", wide, terms.zext(n, 128)), 0, 32)
    again = terms.both(terms.ult(x, const(9, 32)), terms.ult(low, const(5, 32)))
    step = Variable(x, const(0, 32), terms.add(x, const(1, 32)))
    model = LoopModel((), (step,), (wide, n), (), again)
    question = Question.about(model)
    assert is_sayable(question.simple.terms())
    assert is_sayable(question.whole.terms())
    assert not is_sayable(model.terms())
    outcome = prove(model, Budget(), find_solver())
    assert (outcome.bound, outcome.failed) == (10, "")


def test_a_deep_term() -> None:
    """NuSMV recurses: a sum of a thousand parts ended it by signal 11, in a stack of 8 MiB."""
    x = sym("x0", 32)
    deep: Term = x
    for n in range(800):
        deep = make("linear", 32, (make("xor", 32, (deep, const(n, 32))),), 1, (1,))
    model = LoopModel((x,), (), (), (), FALSE)
    claim = make("eq", 1, (deep, const(3, 32)))
    [answer] = ask(model.smv([("q", claim)]), [Check("q", depth=0)], Limits(), find_solver())
    assert answer.verdict is CheckVerdict.FALSE
