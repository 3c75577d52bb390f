"""Bounds of a summarised function by the class of its result.

For each class the integer program is solved without the edges, and without the results of callees,
that no execution of the class has. Each bound is divided further by counts of places that facts
limit on the whole path (``ilp.counted_bounds``). A call that returns has the class of its result,
so it takes at most the bound of this class; one that ends the path takes at most the whole bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ilp.constraints.constraint import Constraint
from ilp.constraints.exclusion import EdgeLimit, ProvedRow
from ilp.counted_bounds import CountedBound, bounds_by_counts
from ilp.paths.solution import IlpSolution
from pipeline.costs import Costs, ExcludedEdges, LimitedCall
from quoll.errors import InfeasibleError
from quoll.facts.applied import LimitedCycles
from quoll.inlining.sharing import MOST_RANGES
from wcet.result_classes.result_class import CalledResult, ResultClass

__all__ = ["Solve", "bounds_by_results"]

# The solution with costs, exclusions and further constraints; raises InfeasibleError.
Solve = Callable[[Costs, tuple[ProvedRow, ...], tuple[Constraint, ...]], IlpSolution]


def bounds_by_results(
    classes: Sequence[ResultClass],
    constraints: Sequence[Constraint],
    costs: Costs,
    whole: IlpSolution,
    solve: Solve,
) -> tuple[CountedBound, ...]:
    """The bounds for the classes of the result, and for ranges of the counts in ``constraints``.

    The largest one is the bound of ``whole``. Empty if all calls may take the same.
    """
    by_counts = bounds_by_counts(constraints, whole, lambda more: solve(costs, (), more))
    if not classes or len(classes) * max(1, len(by_counts)) > MOST_RANGES:
        return by_counts
    found = list(_by_class(classes, constraints, costs, whole, solve))
    largest = max(found, key=lambda one: one[0].cycles, default=None)
    if largest is None or all(one.cycles == whole.cycles for one, _ in found):
        return by_counts
    found.remove(largest)
    return (*found, (replace(largest[0], cycles=whole.cycles), whole))


def _by_class(
    classes: Sequence[ResultClass],
    constraints: Sequence[Constraint],
    costs: Costs,
    whole: IlpSolution,
    solve: Solve,
) -> Iterator[CountedBound]:
    """The bounds of each class in which a path is possible."""
    for one in classes:
        inside, rows = without(costs, one.results), (not_taken(one.edges),)

        def limited(
            more: tuple[Constraint, ...],
            inside: Costs = inside,
            rows: tuple[ProvedRow, ...] = rows,
        ) -> IlpSolution:
            return solve(inside, rows, more)

        try:
            solution = limited(())
        except InfeasibleError:
            continue
        solution = replace(solution, cycles=min(solution.cycles, whole.cycles))
        counted = bounds_by_counts(constraints, solution, limited)
        for bound, of in counted or ((LimitedCycles((), solution.cycles), solution),):
            yield replace(bound, result=one.words), of


def not_taken(edges: frozenset[int]) -> EdgeLimit:
    """The row of edges that no path takes."""
    return EdgeLimit(edges, 0, frozenset(), 0)


def without(costs: Costs, results: frozenset[CalledResult]) -> Costs:
    """``costs`` under which no call has one of ``results``."""
    return replace(costs, limited=tuple(_without(call, results) for call in costs.limited))


def _without(call: LimitedCall, results: frozenset[CalledResult]) -> LimitedCall:
    options = frozenset(
        option
        for option in (call.charged, *call.options)
        if CalledResult(call.node, call.edge, option.function, option.level) in results
    )
    if not options:
        return call
    never = ExcludedEdges(options, frozenset(), frozenset(), 0)
    return replace(call, excluded=(*call.excluded, never))
