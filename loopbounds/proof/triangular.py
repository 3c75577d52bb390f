"""The total of a loop over its enclosing loop: triangular nests.

Where the bound of an inner loop depends on how often the outer one has iterated, the sum over all
iterations of the outer loop is less than the product of the two bounds. With t the completed
iterations of the outer loop, a line is fitted to the longest known runs for some t,

    q * executions <= c + s * t,    t <= m,

and proved for the model of the inner loop like a bound (rule 19). Per entry of the outer loop, each
t occurs at most once, with at most one entry of the inner loop, so that

    total = sum over t = 0 .. m of min(bound, (c + s*t) // q).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from loopbounds.budgets import table
from loopbounds.budgets.budget import Budget
from loopbounds.reduction.coarsen import coarsen, without_large
from loopbounds.reduction.simplify import simplified
from loopbounds.sampling.candidates import candidate_invariants
from loopbounds.sampling.hill_climbing import RunChoice, hill_climb
from loopbounds.sampling.runs import ModelRun, explore, longest
from loopbounds.strategies.houdini import houdini, without_progress
from loopbounds.strategies.session import OutOfTime, SolverFailed, SolverSession
from loopbounds.strategies.strategy import conjunction
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, const, scale, ule
from loopbounds.terms.rewrite import substitute
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import COUNT, COUNT_WIDTH, LoopModel, StateVariable, at_most

__all__ = ["NestTotal", "total_over"]


@dataclass(frozen=True, slots=True)
class NestTotal:
    """``executions`` of the inner header per entry of the outer loop; None: none is known."""

    executions: int | None
    model: str = ""
    failed: str = ""  # failure of the solver; "" also when it ran out of time

    @staticmethod
    def lost(why: str) -> NestTotal:
        """The result of a query whose worker process died."""
        return NestTotal(None, failed=why)


def total_over(
    model: LoopModel, trip: Term, outer: int, inner: int, budget: Budget, checker: Checker
) -> NestTotal:
    """The total, from the proved bounds of both loops and the inner model's parameter ``trip``.

    A failing solver raises nothing.
    """
    model = simplified(model)
    coarse = coarsen(model)
    small = coarse if trip in coarse.parameters else without_large(model)
    if trip not in small.parameters or not 1 < outer <= table.OUTER_ITERATIONS or inner <= 1:
        return NestTotal(None)
    points = _points(small, trip, outer)
    line = _line(points)
    if line is None or not line.fits(outer, inner):
        return NestTotal(None)
    session = SolverSession(small, budget, checker)
    try:
        for last in dict.fromkeys((max(t for t, _ in points), outer - 1)):
            total = line.total(last, inner)
            if total >= outer * inner:
                continue
            goal = terms.both(line.property(trip), at_most(inner))
            goal = terms.both(goal, ule(trip, const(last, COUNT_WIDTH)))
            candidates = candidate_invariants(small, _runs(small, trip, points))
            for some in (without_progress(candidates), candidates):
                inductive_set, inductive = houdini(session, small, some, goal)
                claim = terms.both(conjunction(inductive_set), goal)
                if inductive and session.proves(claim, table.INDUCTION_DEPTH):
                    return NestTotal(total, session.text)
    except OutOfTime:
        return NestTotal(None)
    except SolverFailed as failure:
        return NestTotal(None, failed=str(failure))
    return NestTotal(None)


@dataclass(frozen=True, slots=True)
class _Line:
    """``q * executions <= c + s * t``."""

    q: int
    c: int
    s: int

    def fits(self, outer: int, inner: int) -> bool:
        """Whether neither side wraps within a word."""
        return self.c >= 0 and self.q * inner + abs(self.s) * outer + self.c < 1 << 30

    def property(self, trip: Term) -> Term:
        """The line as a term over words."""
        left, right = scale(COUNT, self.q), const(self.c, COUNT_WIDTH)
        if self.s < 0:
            return ule(terms.add(left, scale(trip, -self.s)), right)
        return ule(left, terms.add(right, scale(trip, self.s)))

    def total(self, last: int, inner: int) -> int:
        """The sum over t = 0 .. last of the quotients, each cut to 0 .. ``inner``.

        Every q-th of the quotients is an arithmetic progression.
        """
        found = 0
        for t in range(min(self.q, last + 1)):
            first, length = (self.c + self.s * t) // self.q, (last - t) // self.q + 1
            found += _sum_between(first, self.s, length, inner)
        return found


def _sum_between(first: int, step: int, length: int, most: int) -> int:
    """The sum of a progression of integers, each cut to 0 .. ``most``."""
    if step < 0:
        first, step = first + step * (length - 1), -step
    below = min(length, max(0, -(first // step)))  # members below 0
    within = min(length, max(below, (most - first) // step + 1))  # further members up to ``most``
    count = within - below
    inside = count * (first + step * below) + step * count * (count - 1) // 2
    return inside + most * (length - within)


def _points(model: LoopModel, trip: Term, outer: int) -> list[tuple[int, int]]:
    """Pairs (t, executions of the longest known run with that t), for some t."""
    chosen = {0, 1, 2, outer // 3, outer // 2, outer - 3, outer - 2, outer - 1}
    found = []
    for t in sorted(c for c in chosen if 0 <= c < outer):
        runs = _found(_with_trip(model, trip, t))
        if runs and longest(runs) < table.RUN_STEPS:  # a longer run is cut off
            found.append((t, longest(runs)))
    return found


def _found(model: LoopModel) -> list[ModelRun]:
    runs = explore(model)
    best = sorted(runs, key=lambda r: -r.executions)[:2]
    inputs = (0,) * len(model.inputs)
    return [*runs, *hill_climb(model, [RunChoice(r.parameters, inputs) for r in best])]


def _with_trip(model: LoopModel, trip: Term, t: int) -> LoopModel:
    value = {trip: const(t, trip.width)}
    return replace(
        model,
        parameters=tuple(p for p in model.parameters if p is not trip),
        state=tuple(
            StateVariable(v.symbol, substitute(v.initial, value), substitute(v.next, value))
            for v in model.state
        ),
        constraints=tuple(substitute(c, value) for c in model.constraints),
        again=substitute(model.again, value),
        hints=(),
        exits=(),
    )


def _line(points: Sequence[tuple[int, int]]) -> _Line | None:
    """The line above all points with the slope from the first point to the last; None if flat."""
    if len(points) < 2 or len({n for _, n in points}) == 1:
        return None
    (t0, n0), (t1, n1) = points[0], points[-1]
    slope = Fraction(n1 - n0, t1 - t0).limit_denominator(table.STEEPEST)
    q, s = slope.denominator, slope.numerator
    return _Line(q, max(q * n - s * t for t, n in points), s) if s else None


def _runs(model: LoopModel, trip: Term, points: Sequence[tuple[int, int]]) -> list[ModelRun]:
    """Runs of the model itself; runs with the ``trip`` values of ``points`` come first."""
    place = model.parameters.index(trip)
    seeds = [
        (*run.parameters[:place], t, *run.parameters[place:])
        for t, _ in points
        for run in _found(_with_trip(model, trip, t))[:4]
    ]
    return explore(model, seeds)
