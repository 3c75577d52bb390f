"""Words that are divided by a constant in each iteration have a bound, as shifted ones have."""

from __future__ import annotations

from random import Random

import pytest

from loopbounds.proof.options import BoundOptions
from loopbounds.reduction.quotients import with_shorter_words
from loopbounds.terms.bit_vectors import const, eq, extract, negate, operation, scale, sym, zext
from loopbounds.transition.model import LoopModel, StateVariable
from loopbounds.transition.stepper import ModelStepper
from tests.testing.harness.cases import cases, spread
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

WORD = 1 << 32


def dividing(factor: int, shift: int) -> LoopModel:
    """``do x = (factor * x >> 32) >> shift; while (x != 0)``, from any word on."""
    start, word = sym("p0", 32), sym("x0", 32)
    high = extract(scale(zext(word, 64), factor), 32, 32)
    following = operation("lshr", high, const(shift, 32))
    variable = StateVariable(word, start, following)
    return LoopModel((start,), (variable,), (), (), negate(eq(following, const(0, 32))))


def interesting(random: Random) -> int:
    """A word: small, large, near a power of two, or any."""
    near = (1 << random.randrange(33)) + random.randint(-2, 2)
    return random.choice((near, random.randrange(WORD), WORD - 1, random.randrange(20))) % WORD


def test_each_run_is_one_of_the_model_with_shorter_words() -> None:
    """The concrete twin divides; the model may do so, as no quotient exceeds the shifted word."""
    random, shorter = Random(51), 0
    for _ in range(cases(400)):
        model = dividing(interesting(random), random.randrange(32))
        result = with_shorter_words(model)
        exact, coarse = ModelStepper(model), ModelStepper(result)
        shorter += result is not model
        for _ in range(20):
            [word] = state = exact.start([interesting(random)]) or (0,)
            following = exact.step([word], state, [])
            wanted = [0 if following is None else following[0]] * len(result.inputs)
            assert coarse.step([word], state, wanted) == following
    assert shorter > cases(400) / 2


def test_products_that_may_wrap_stay() -> None:
    """The high word of such a product is no quotient."""
    for factor in (WORD + 1, (1 << 64) - 3):
        model = dividing(factor, 3)
        assert with_shorter_words(model) is model


@pytest.mark.slow("compiles programs")
@pytest.mark.parametrize("level", spread(["-O0", "-O2"], 1))
@pytest.mark.parametrize("base", spread([10, 3, 1000], 1))
def test_digits_have_a_bound(level: str, base: int) -> None:
    """As many as 32 bits have, by the bits that each of them takes at least; no run has more."""
    program = f"""
    volatile char text[40];
    int main(unsigned v) {{
        int n = 0;
        do {{ text[n++] = '0' + v % {base}; v /= {base}; }} while (v);
        return n;
    }}
    """
    [bound] = load(build(program, optimise=level)).bounds(options=BoundOptions(workers=0))
    digits, word = 0, WORD - 1
    while word:
        digits, word = digits + 1, word // base
    assert bound.bound is not None
    assert digits <= bound.bound <= 32 // (base.bit_length() - 1) + 2
