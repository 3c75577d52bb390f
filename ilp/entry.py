"""The bound of one entry: a number, or a function of the parameters of its loops (rule 27)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ilp.constraints.constraint import Constraint
from ilp.constraints.exclusion import ProvedRow
from ilp.constraints.nest import checked_bounds, totals
from ilp.constraints.parameters import (
    LoopBoundParameter,
    VisitLimit,
    named,
    numbered,
    open_loops,
    visits,
)
from ilp.parametric import ParametricBound, parametric_bound
from ilp.paths.path_check import check_path
from ilp.solvers.solver_result import Solver
from ilp.worst_case import WorstCase, worst_case
from loopbounds.execution.counts import ExecutionCounts
from loopbounds.proof.bound import LoopBound
from pipeline.costs import Costs
from quoll.inlining.supergraph import Supergraph

__all__ = ["EntryBound", "bound_entry"]


@dataclass(frozen=True, slots=True)
class EntryBound:
    """The bound of an entry. ``worst``: the solution; with ``parametric`` for its ``example``.

    ``bounds``: the loop bounds of the program; a loop with an open parameter has the method
    "parameter".
    """

    worst: WorstCase
    bounds: tuple[LoopBound, ...]
    numbers: tuple[int, ...]  # per loop: its bound in ``worst``
    parametric: ParametricBound | None
    example: Mapping[str, int]
    limits: tuple[VisitLimit, ...] = ()  # by parameters with a number


def bound_entry(
    graph: Supergraph,
    costs: Costs,
    bounds: Sequence[LoopBound],
    constraints: Sequence[Constraint],
    parameters: Mapping[int, LoopBoundParameter],
    values: Mapping[str, int],
    execution: ExecutionCounts | None = None,
    exclusions: Sequence[ProvedRow] = (),
    *,
    solver: Solver,
    seconds: float | None = None,
    place: Callable[[int], str] = hex,
    known: WorstCase | None = None,
    with_path: bool = True,
) -> EntryBound:
    """The bound of the longest path; ``values``: the parameters with a number.

    ``execution``: the concrete execution, if known. ``exclusions``: edges that no execution takes
    together; a parametric bound does not use them, nor those of the costs. ``known``: a cached
    solution of the same program, with or without its constraints. ``with_path``: as for
    ``worst_case``; a parametric bound has its example's path in any case.

    Raises as ``worst_case`` and ``parametric_bound`` do.
    """
    stated = numbered(bounds, parameters, values)
    without = {loop: p for loop, p in parameters.items() if p.name not in values}
    still = open_loops(stated, without)
    limits = visits(parameters, values)
    if not still:
        worst = known
        if worst is None or (constraints and wrong(worst, graph, stated, constraints)):
            worst = worst_case(
                graph, costs, stated, constraints, limits, execution, exclusions,
                solver=solver, seconds=seconds, place=place, with_path=with_path,
            )  # fmt: skip
        return EntryBound(worst, stated, checked_bounds(graph, stated), None, {}, limits)
    costs = costs.without_exclusions()
    parametric = parametric_bound(
        graph,
        costs,
        stated,
        constraints,
        still,
        limits,
        solver=solver,
        seconds=seconds,
        place=place,
    )
    example = parametric.example()
    numbers = numbered(stated, still, example)
    example_limits = (*limits, *visits(still, example))
    worst = worst_case(
        graph,
        costs,
        numbers,
        constraints,
        example_limits,
        solver=solver,
        seconds=seconds,
        place=place,
    )
    shown = named(stated, still)
    return EntryBound(worst, shown, checked_bounds(graph, numbers), parametric, example, limits)


def wrong(
    known: WorstCase,
    graph: Supergraph,
    bounds: Sequence[LoopBound],
    constraints: Sequence[Constraint],
) -> tuple[str, ...]:
    """The violations of a cached solution's path.

    Without any it is the solution with these constraints, too: they only exclude paths, so that the
    bound stays valid, and its path still reaches it.
    """
    numbers, inside = checked_bounds(graph, bounds), totals(graph, bounds)
    return check_path(graph, numbers, constraints, known.path.steps, inside)
