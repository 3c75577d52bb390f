"""Cuts: what N invocations of one context can cost together (rule 26).

The rows of a constraint in an instance that is entered N > 1 times are a relaxation: they let one
invocation make up for another. One invocation by itself is an instance that is entered once, where
the rows are exact; so its maximum W is computed on the part of the graph below it, and

    sum(cycles spent below the context) <= W * N

holds for every path. It is added only where the counts at hand exceed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ilp.answer import Solver
from ilp.constraint import Constraint
from ilp.flowfacts import Counts, Sum
from ilp.ipet import Ipet, build_ipet
from ilp.model import Row
from ilp.region import region_below
from ilp.solve import maximise
from pipeline.costs import Costs
from quoll.errors import InfeasibleError

__all__ = ["cost_cuts", "repeated_contexts"]


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
) -> list[Row]:
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
) -> Row:
    """``sum(cycles spent below the context) <= W * N``, W proved by a solve of its own."""
    graph = ipet.graph
    instance = ipet.calls.instance(context)
    entry = graph.edges[instance.entries[0]].dst
    region = region_below(ipet.calls, context, entry)
    inner = build_ipet(
        region.graph,
        region.costs(costs),
        [ipet.nest.bounds[loop] for loop in region.loops],
        [region.constraint(c) for c in constraints],
    )
    counts = Counts(graph)
    at = f"{graph.contexts[context].function:#x} in context {context}"
    try:
        most = maximise(inner.model, solver, seconds).bound
    except InfeasibleError:
        never = counts.entries(instance)
        return Row(f"cut.c{context}", f"no invocation of {at} is allowed", never.terms, False, 0)
    spent = Sum((), 0).plus(
        *(counts.executions([n]).times(costs.node_cycles(n)) for n in region.nodes),
        *(Sum(((e, costs.edge_cycles(e)),), 0) for e in region.edges),
    )
    row = spent.minus(counts.entries(instance).times(most))
    return Row(
        f"cut.c{context}",
        f"one invocation of {at} takes at most {most} cycles",
        row.terms,
        False,
        -row.constant,
    )
