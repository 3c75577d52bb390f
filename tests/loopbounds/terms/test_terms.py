"""Terms against plain arithmetic, intervals against members, SMV text against NuSMV."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopbounds.budgets.budget import ProcessLimits
from loopbounds.nusmv.model_text import smv_text
from loopbounds.nusmv.nusmv_run import check_invariants, find_solver
from loopbounds.terms import arithmetic, rewrite
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, const, operation, sym
from loopbounds.terms.evaluate import compile_loop, compile_terms, evaluate
from loopbounds.terms.interval import interval
from loopbounds.transition.model import LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.drawn_terms import Drawn

WIDTH = 8
X, Y, Z = (sym(f"v{n}", WIDTH) for n in "xyz")
WORDS = st.integers(0, 255)
BINARY = ("and", "or", "xor", "mul", "udiv", "urem", "shl", "lshr", "ashr")
COMPARE = ("eq", "ult", "slt", "ule", "sle", "sborrow", "scarry", "carry")

Value = tuple[Term, int]  # a term, and its value by plain arithmetic


def _mask(value: int) -> int:
    return value & 255


def _binary(op: str, a: Value, b: Value) -> Value:
    build = terms.shl if op == "shl" else lambda x, y: operation(op, x, y)
    return build(a[0], b[0]), arithmetic.apply(op, (a[1], b[1]), WIDTH)


def _compare(op: str, a: Value, b: Value) -> Value:
    signed = tuple(arithmetic.signed(v, WIDTH) for v in (a[1], b[1]))
    expected = {
        "eq": a[1] == b[1],
        "ult": a[1] < b[1],
        "ule": a[1] <= b[1],
        "slt": signed[0] < signed[1],
        "sle": signed[0] <= signed[1],
        "carry": a[1] + b[1] > 255,
        "sborrow": not -128 <= signed[0] - signed[1] <= 127,
        "scarry": not -128 <= signed[0] + signed[1] <= 127,
    }[op]
    if op in ("sborrow", "scarry"):
        return operation(op, a[0], b[0]), int(expected)
    return getattr(terms, op)(a[0], b[0]), int(expected)


def _flags(n: Value, v: Value) -> Value:
    """N xor V of a compare of two words, as ARM code tests it."""
    difference = terms.sub(n[0], v[0])
    negative = terms.slt(difference, const(0, WIDTH))
    less = operation("xor", negative, operation("sborrow", n[0], v[0]))
    expected = arithmetic.signed(n[1], WIDTH) < arithmetic.signed(v[1], WIDTH)
    return less, int(expected)


@st.composite
def values(draw: st.DrawFn, assignment: dict[Term, int], depth: int = 4) -> Value:
    """A random word and its value."""
    kind = draw(st.integers(0, 9 if depth else 1))
    if kind == 0:
        value = draw(WORDS)
        return const(value, WIDTH), value
    if kind == 1:
        symbol = draw(st.sampled_from(sorted(assignment, key=lambda t: t.name)))
        return symbol, assignment[symbol]
    a = draw(values(assignment, depth - 1))
    b = draw(values(assignment, depth - 1))
    if kind == 2:
        return terms.add(a[0], b[0]), _mask(a[1] + b[1])
    if kind == 3:
        return terms.sub(a[0], b[0]), _mask(a[1] - b[1])
    if kind == 4:
        return terms.negate(a[0]), _mask(~a[1])
    if kind == 5:
        low, width = draw(st.integers(0, 7)), draw(st.integers(1, 8))
        width = min(width, WIDTH - low)
        piece = terms.extract(a[0], low, width)
        extend = draw(st.sampled_from(["zext", "sext"]))
        value = a[1] >> low & terms.mask(width)
        if extend == "sext":
            value = _mask(arithmetic.signed(value, width))
        return getattr(terms, extend)(piece, WIDTH), value
    if kind == 6:
        op = draw(st.sampled_from(["clz", "popcount"]))
        return operation(op, a[0]), arithmetic.apply(op, (a[1],), WIDTH)
    if kind == 7:
        op = draw(st.sampled_from(BINARY))
        if op in ("udiv", "urem"):
            divisor = draw(st.integers(1, 255))
            b = const(divisor, WIDTH), divisor
        return _binary(op, a, b)
    if kind == 8:
        pieces = terms.extract(a[0], 4, 4), terms.extract(b[0], 1, 4)
        return terms.concat(*pieces), (a[1] >> 4) << 4 | (b[1] >> 1 & 15)
    condition = draw(conditions(assignment, depth - 1))
    return terms.ite(condition[0], a[0], b[0]), a[1] if condition[1] else b[1]


@st.composite
def conditions(draw: st.DrawFn, assignment: dict[Term, int], depth: int = 3) -> Value:
    """A random condition and its truth."""
    kind = draw(st.integers(0, 4 if depth else 1))
    if kind < 2:
        a = draw(values(assignment, max(depth - 1, 0)))
        b = draw(values(assignment, max(depth - 1, 0)))
        return _flags(a, b) if kind == 0 else _compare(draw(st.sampled_from(COMPARE)), a, b)
    p, q = draw(conditions(assignment, depth - 1)), draw(conditions(assignment, depth - 1))
    if kind == 2:
        return terms.both(p[0], q[0]), p[1] & q[1]
    if kind == 3:
        return terms.either(p[0], q[0]), p[1] | q[1]
    return operation("xor", p[0], terms.negate(q[0])), p[1] ^ q[1] ^ 1


@pytest.mark.slow("many random terms")
@given(st.data(), WORDS, WORDS, WORDS)
@settings(max_examples=cases(80))
def test_simplification_keeps_values(data: st.DataObject, x: int, y: int, z: int) -> None:
    """Every constructor gives the value of plain arithmetic, with any simplification."""
    assignment = {X: x, Y: y, Z: z}
    replaced = rewrite.Substitution({X: const(x, WIDTH)})
    for term, value in (data.draw(values(assignment)), data.draw(conditions(assignment))):
        assert evaluate(term, assignment) == value
        again = rewrite.substitute(term, {X: const(x, WIDTH)})
        assert evaluate(again, assignment) == value
        assert replaced(term) is again


@pytest.mark.slow("many random terms")
@given(st.data(), WORDS, WORDS, WORDS)
@settings(max_examples=cases(60))
def test_intervals_hold_values(data: st.DataObject, x: int, y: int, z: int) -> None:
    """A term is within its interval, for any ranges of its symbols."""
    term, value = data.draw(values({X: x, Y: y, Z: z}))
    low, high = data.draw(st.integers(0, x)), data.draw(st.integers(x, 255))
    least, most = interval(term, {X: (low, high)})
    assert least <= value <= most
    found: dict[Term, tuple[int, int]] = {}
    for part in (*rewrite.parts(term), term):  # known intervals of subterms change nothing
        assert interval(part, {X: (low, high)}, found) == interval(part, {X: (low, high)})


def test_what_flags_mean() -> None:
    """The combinations that compares and conditions make become one comparison."""
    word = sym("w", 32)
    hundred = const(100, 32)
    higher = terms.both(terms.ule(hundred, word), terms.negate(terms.eq(word, hundred)))
    assert higher is terms.ult(hundred, word)
    negative = terms.slt(terms.sub(word, hundred), const(0, 32))
    assert operation("xor", negative, operation("sborrow", word, hundred)) is terms.slt(
        word, hundred
    )
    other, chosen = sym("v", 32), sym("chosen", 1)
    below = terms.slt(terms.sub(other, const(4, 32)), const(0, 32))
    either_negative = terms.ite(chosen, negative, below)
    either_overflow = terms.ite(
        chosen,
        operation("sborrow", word, hundred),
        operation("sborrow", other, const(4, 32)),
    )
    assert operation("xor", either_negative, either_overflow) is terms.ite(
        chosen, terms.slt(word, hundred), terms.slt(other, const(4, 32))
    )
    p = sym("p", 32)
    distance = terms.sub(terms.add(p, const(8, 32)), terms.add(p, const(4, 32)))
    assert distance is const(4, 32)


@pytest.mark.slow("many random terms")
@given(st.data())
@settings(max_examples=cases(4))
def test_smv_text_means_the_same(data: st.DataObject) -> None:
    """NuSMV finds each printed term equal to the value that it has here."""
    assignment = {X: data.draw(WORDS), Y: data.draw(WORDS), Z: data.draw(WORDS)}
    pairs = [data.draw(values(assignment)) for _ in range(8)]
    pairs += [data.draw(conditions(assignment)) for _ in range(4)]
    model = LoopModel(
        tuple(assignment),
        (),
        (),
        tuple(terms.eq(s, const(v, 8)) for s, v in assignment.items()),
        terms.FALSE,
    )
    claims = [terms.eq(t, const(v, t.width)) for t, v in pairs]
    claims = [c for c in claims if c.constant is None]
    text = smv_text(model, [(f"c{i}", c) for i, c in enumerate(claims)])
    checks = [InvariantQuery(f"c{i}") for i in range(len(claims))]
    answers = check_invariants(text, checks, ProcessLimits(), find_solver())
    assert [a.verdict for a in answers] == [InvariantVerdict.TRUE] * len(claims)


def test_a_symbol_without_a_value_is_refused() -> None:
    with pytest.raises(KeyError):
        compile_terms([sym("q", 12)], [])


@pytest.mark.parametrize("seed", range(6))
def test_a_compiled_loop_does_what_its_terms_say_step_by_step(seed: int) -> None:
    drawn = Drawn(seed)
    found = drawn.terms(1)
    parameters, state = list(drawn.values)[::2], list(drawn.values)[1::2]
    following = [next(t for t in reversed(found) if t.width == s.width) for s in state]
    again = drawn.chance.choice([t for t in found if t.width == 1])
    step = compile_terms([again, *following], [*parameters, *state])
    fixed = [drawn.values[s] for s in parameters]
    words = tuple(drawn.values[s] for s in state)
    expected: list[tuple[int, ...]] = []
    while len(expected) < 9:
        goes_on, *words_after = step([*fixed, *(expected[-1] if expected else words)])
        if not goes_on:
            break
        expected.append(tuple(words_after))
    seen: list[tuple[int, ...]] = []
    taken, last = compile_loop(again, following, parameters, state)(fixed, words, 9, seen.append)
    assert (taken, seen) == (len(expected), expected)
    assert last == (expected[-1] if expected else words)
