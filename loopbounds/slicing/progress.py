"""What a loop leaves known behind it: in each iteration but the last its condition to go on held.

With t iterations that came back, a cell that moves by s was x0 + s*k at the header's visit number
k = 0 .. t, and the condition held of it for every k < t. Said for the last of them, for the first
few, and for a word d that the condition finds different from 0 for every k:

    d0 + k != 0, k < t            t <= -d0
    d0 - k != 0, k < t            t <= d0
    d0 + 2**j * k != 0, k < t     t <= -d0 >> j    where the low j bits of d0 are 0

because the values of k at which d would be 0 are those from there on. All are without sign.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopbounds.terms.bit_vectors import (
    Term,
    add,
    const,
    either,
    eq,
    neg,
    negate,
    operation,
    scale,
    sub,
    ule,
)
from loopbounds.terms.rewrite import substitute

__all__ = ["Progress", "went_on"]

FIRST = 4  # visits looked at one by one

Progress = dict[Term, tuple[Term, int]]  # leaf -> its value at the first visit, and its step


def went_on(condition: Term, progress: Progress, trip: Term, most: int) -> Iterator[Term]:
    """What ``condition`` says of the ``trip`` <= ``most`` iterations that came back."""
    for k in range(min(most, FIRST)):
        yield either(ule(trip, const(k, 32)), _at(condition, progress, const(k, 32)))
    if most > FIRST:
        last = _at(condition, progress, sub(trip, const(1, 32)))
        yield either(eq(trip, const(0, 32)), last)
        if condition.op == "not" and condition.args[0].op == "eq":
            yield from _never_equal(condition.args[0], progress, trip)


def _at(term: Term, progress: Progress, k: Term) -> Term:
    """A term over leaves, at one visit of the header."""
    return substitute(
        term, {leaf: add(start, scale(k, step)) for leaf, (start, step) in progress.items()}
    )


def _never_equal(equal: Term, progress: Progress, trip: Term) -> Iterator[Term]:
    distance = sub(*equal.args)
    if distance.width != 32:
        return
    start = _at(distance, progress, const(0, 32))
    step = sub(_at(distance, progress, const(1, 32)), start).constant
    if step is None:
        return
    size = min(step, neg(const(step, 32)).value)
    if size.bit_count() != 1:
        return
    left = neg(start) if step == size else start
    between = operation("and", left, const(size - 1, 32))
    turns = operation("lshr", left, const(size.bit_length() - 1, 32))
    yield either(negate(eq(between, const(0, 32))), ule(trip, turns))
