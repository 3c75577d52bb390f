"""Cutting planes: the cost of N invocations of one context together (rule 26).

The rows of a constraint for an instance with N > 1 entries are a relaxation: one invocation may
compensate for another. They are exact for a single invocation, so its maximum is computed on the
subgraph below it: W for an invocation that returns, V for one in which the path ends. Then

    sum(cycles spent below the context) <= W * left + V * ended,  left + ended = N

holds for every path. It is added only where the present counts violate it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ilp.constraints.constraint import Constraint
from ilp.constraints.flowfacts import FlowCounts, LinearSum
from ilp.constraints.region import iteration_of, region_below
from ilp.ipet import Ipet, build_ipet
from ilp.longest_path import proved_maximum
from ilp.solvers.integer_program import LinearRow
from ilp.solvers.solver_result import Solver
from pipeline.costs import Costs
from quoll.errors import InfeasibleError
from quoll.inlining.supergraph import Supergraph

__all__ = ["cost_cuts", "cycles_per_iteration", "repeated_contexts"]


def repeated_contexts(ipet: Ipet, constraints: Iterable[Constraint]) -> tuple[int, ...]:
    """The contexts that are instances of a constrained function and may be entered repeatedly."""
    found: dict[int, None] = {}
    for constraint in constraints:
        if constraint.function is not None:
            nodes = constraint.a | constraint.b
            for instance in ipet.calls.instances(nodes, constraint.function):
                if instance.most > 1 and not instance.started:
                    found[instance.context] = None
    return tuple(found)


def cost_cuts(
    ipet: Ipet,
    costs: Costs,
    constraints: Sequence[Constraint],
    values: Sequence[int],
    solver: Solver,
    seconds: float | None,
) -> list[LinearRow]:
    """The cuts that ``values`` violate."""
    cuts = [
        cost_cut(ipet, costs, constraints, context, solver, seconds)
        for context in repeated_contexts(ipet, constraints)
    ]
    return [cut for cut in cuts if not cut.holds(values)]


def cost_cut(
    ipet: Ipet,
    costs: Costs,
    constraints: Sequence[Constraint],
    context: int,
    solver: Solver,
    seconds: float | None,
) -> LinearRow:
    """``sum(cycles spent below the context) <= W * left + V * ended``, W and V proved here.

    If no invocation can return, W is -1, and if none can end the path, V is -1, which forces their
    number to 0.
    """
    graph, counts = ipet.graph, FlowCounts(ipet.graph)
    instance = ipet.calls.instance(context)
    region = region_below(ipet.calls, context, graph.edges[instance.entries[0]].dst)

    def most(exits: Iterable[int]) -> int:
        ended = region.with_exits(exits)
        if not ended.exits:
            return -1
        bounds = [ipet.nest.bounds[loop] for loop in region.loops]
        inner = [region.constraint(c) for c in constraints if c.holds_in_subpaths]
        try:
            one = build_ipet(ended, region.costs(costs), bounds, inner)
            return proved_maximum(one, solver, seconds).bound
        except InfeasibleError:
            return -1

    w, v = most(graph.edges[e].src for e in region.leaving), most(region.ending)
    spent = LinearSum((), 0).plus(
        *(counts.executions([n]).times(costs.node_cycles(n)) for n in region.nodes),
        *(LinearSum(((e, costs.edge_cycles(e)),), 0) for e in region.edges),
    )
    left = LinearSum(tuple((e, 1) for e in region.leaving), 0)
    row = spent.minus(left.times(w)).minus(counts.exits(region.ending).times(v))
    at = f"{graph.contexts[context].function:#x} in context {context}"
    return LinearRow(
        f"cut.c{context}",
        f"one invocation of {at} takes at most {w} cycles, or {v} when the path ends in it",
        row.terms,
        equal=False,
        rhs=-row.constant,
    )


def cycles_per_iteration(
    graph: Supergraph,
    costs: Costs,
    bounds: Mapping[int, int],
    loop: int,
    solver: Solver,
    seconds: float | None = None,
) -> int | None:
    """Most cycles from one execution of a header to the next; None if an inner loop is unbounded.

    User constraints are left out.
    """
    region = iteration_of(graph, loop)
    if any(inner not in bounds for inner in region.loops):
        return None
    inner_bounds = [bounds[inner] for inner in region.loops]
    return max(
        proved_maximum(
            build_ipet(region.with_exits([graph.edges[e].src]), region.costs(costs), inner_bounds),
            solver,
            seconds,
        ).bound
        + costs.edge_cycles(e)
        for e in graph.loops[loop].backs
    )
