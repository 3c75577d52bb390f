"""Known values after a loop, against all iterations one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopbounds.slicing.trips import Progress, went_on
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, const, operation, sym
from loopbounds.terms.evaluate import evaluate

X, Y, S, TRIP = (sym(name, 32) for name in ("x", "y", "s", "trip"))
NEAR = st.integers(-40, 40)
STEPS = st.sampled_from([1, -1, 2, -4, 4, 8, 3, 0])


@st.composite
def conditions(draw: st.DrawFn) -> Term:
    """Of the two leaves X and Y."""
    a = draw(st.sampled_from([X, Y, terms.sub(X, Y), operation("and", X, const(3, 32))]))
    b = draw(st.sampled_from([Y, const(draw(NEAR), 32)]))
    term = draw(st.sampled_from([terms.eq, terms.ult, terms.slt]))(a, b)
    return terms.negate(term) if draw(st.booleans()) else term


@pytest.mark.slow("many random loop models, with proofs by NuSMV")
@given(conditions(), NEAR, NEAR, STEPS, STEPS, st.integers(0, 40))
def test_what_holds_of_every_iteration_is_found(
    condition: Term, x: int, y: int, x_step: int, y_step: int, spare: int
) -> None:
    """As long as the condition holds, the derived terms hold, too."""
    most = 40 + spare
    progress: Progress = {X: (S, x_step), Y: (const(y, 32), y_step)}
    words = {S: x % 2**32}

    def holds(k: int) -> bool:
        return bool(evaluate(condition, {X: (x + k * x_step) % 2**32, Y: (y + k * y_step) % 2**32}))

    trip = 0
    while trip <= most:
        for said in went_on(condition, progress, TRIP, most):
            assert evaluate(said, words | {TRIP: trip}), (condition, said, trip)
        if not holds(trip):
            break
        trip += 1


def test_a_pointer_that_stops_at_its_end_has_not_passed_it() -> None:
    """ "Never equal" limits the distance covered, which later loops need."""
    going = terms.negate(terms.eq(X, Y))
    end = const(0x1000, 32)
    said = list(went_on(going, {X: (const(0xFD0, 32), 4), Y: (end, 0)}, TRIP, 1 << 20))
    assert terms.ule(TRIP, const(12, 32)) in said
    odd = list(went_on(going, {X: (const(0xFD2, 32), 4), Y: (end, 0)}, TRIP, 1 << 20))
    assert all(s.constant is None or s is terms.TRUE for s in odd)
    assert not any(evaluate(s, {TRIP: 500}) == 0 for s in odd)
