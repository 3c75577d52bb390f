"""What one more iteration of a loop costs: the slope of a bound in the loop's own bound."""

from __future__ import annotations

from collections.abc import Mapping

from ilp.constraints.region import iteration_of
from ilp.ipet import build_ipet
from ilp.solvers.answer import Solver
from ilp.solvers.solve import maximise
from pipeline.costs import Costs
from quoll.inlining.supergraph import Supergraph

__all__ = ["cycles_per_iteration"]


def cycles_per_iteration(
    graph: Supergraph,
    costs: Costs,
    bounds: Mapping[int, int],
    loop: int,
    solver: Solver,
    seconds: float | None = None,
) -> int | None:
    """Most cycles from one execution of a header to the next; None if a loop inside is unbounded,
    or contexts are shared.

    User constraints are left out.
    """
    if graph.merged:
        return None  # what is called outside of its part is not in the region
    region = iteration_of(graph, loop)
    if any(inner not in bounds for inner in region.loops):
        return None
    inner_bounds = [bounds[inner] for inner in region.loops]
    return max(
        maximise(
            build_ipet(
                region.with_exits([graph.edges[e].src]), region.costs(costs), inner_bounds
            ).model,
            solver,
            seconds,
        ).bound
        + costs.edge_cycles(e)
        for e in graph.loops[loop].backs
    )
