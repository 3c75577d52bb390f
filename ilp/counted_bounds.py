"""Bounds of a summarised function by counts of places that facts limit on the whole path.

Each limited place inside has ranges of counts (``quoll.inlining.sharing.count_ranges``). For each
combination of ranges the integer program of the function is solved with the upper ends as limits.
A call with some counts takes at most the bound of their ranges, and executes each place at least as
often as the lower end. So the caller may choose a combination for each call, as long as the lower
ends add up to no more than the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from ilp.constraints.constraint import Constraint
from ilp.paths.solution import IlpSolution
from quoll.errors import InfeasibleError
from quoll.facts.applied import LimitedCycles
from quoll.facts.count_facts import AtMostFact
from quoll.inlining.sharing import count_ranges, is_total

__all__ = ["CountedBound", "bounds_by_counts"]

CountedBound = tuple[LimitedCycles, IlpSolution]
Solve = Callable[[tuple[Constraint, ...]], IlpSolution]


def bounds_by_counts(
    constraints: Sequence[Constraint], whole: IlpSolution, solve: Solve
) -> tuple[CountedBound, ...]:
    """The bounds of a function for ranges of counts; the largest one is the bound of ``whole``.

    ``solve`` solves the function's program with more constraints; it raises InfeasibleError if no
    path remains. Empty if no place is limited, or calls with the largest bound execute none.
    """
    limits = [one for one in constraints if is_total(one.fact)]
    if not limits:
        return ()
    found = list(_solved(limits, whole, solve))
    useful = [one for one in found if not any(_replaces(other, one) for other in found)]
    return tuple(useful) if any(limited.counts for limited, _ in useful) else ()


def _solved(
    limits: Sequence[Constraint], whole: IlpSolution, solve: Solve
) -> Iterator[CountedBound]:
    """The bound for each combination of ranges in which a path is possible."""
    last = [count_ranges(_limit(one))[-1] for one in limits]
    for ranges in product(*(count_ranges(_limit(one)) for one in limits)):
        pairs = tuple(zip(limits, ranges, strict=True))
        counts = tuple((one.fact.source, least) for one, (least, _) in pairs if least)
        if list(ranges) == last:
            yield LimitedCycles(counts, whole.cycles), whole
            continue
        try:
            solution = solve(tuple(_with_limit(one, most) for one, (_, most) in pairs))
        except InfeasibleError:
            continue
        cycles = min(solution.cycles, whole.cycles)  # a time limit may give a higher bound
        yield LimitedCycles(counts, cycles), replace(solution, cycles=cycles)


def _limit(constraint: Constraint) -> int:
    assert isinstance(constraint.fact, AtMostFact), "is_total"
    return constraint.fact.count


def _with_limit(constraint: Constraint, most: int) -> Constraint:
    """``constraint`` with another number."""
    assert isinstance(constraint.fact, AtMostFact), "is_total"
    return replace(constraint, fact=replace(constraint.fact, count=most))


def _replaces(one: CountedBound, other: CountedBound) -> bool:
    """Whether a bound covers another one, with no more executions."""
    (first, _), (second, _) = one, other
    mine, others = dict(first.counts), dict(second.counts)
    fewer = all(n <= others.get(fact, 0) for fact, n in mine.items())
    return fewer and first.counts != second.counts and first.cycles >= second.cycles
