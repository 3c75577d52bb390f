"""Bounds of functions with a summary without excluded places, and the costs of their callers.

With a lower bound of a function, the edges past its calls cost less. A function that always
executes an excluded place costs nothing: paths through its calls remain, which none takes under the
fact that the place never executes. So all bounds remain upper bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from pipeline.costs import CostCause, Costs, LimitedCall
from quoll.errors import SolverError
from quoll.facts.applied import FunctionReplacement
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.prepared import PreparedPaths, SummarisedFunction
from wcet.analysis.result import EntryResult

__all__ = ["executes", "lowered_costs", "lowered_summaries", "nodes_at"]

Without = Callable[[PreparedPaths, frozenset[int]], EntryResult | None]


def lowered_summaries(
    summaries: Sequence[SummarisedFunction], excluded: Set[int], solve: Without
) -> tuple[SummarisedFunction, ...]:
    """``summaries`` without the addresses ``excluded``; callees come before their callers.

    ``solve`` bounds the paths of a summary without some nodes; None if there are none.
    """
    found: list[SummarisedFunction] = []
    for one in summaries:
        graph = one.paths.graph
        costs = lowered_costs(graph, one.paths.costs, summaries[: len(found)], found)
        nodes = frozenset(nodes_at(graph, excluded))
        paths = replace(one.paths, costs=costs)
        if costs is one.paths.costs and not executes(one.solution.nodes, nodes):
            found.append(one)
            continue
        found.append(_solved(one, paths, nodes, solve))
    return tuple(found)


def _solved(
    one: SummarisedFunction, paths: PreparedPaths, nodes: frozenset[int], solve: Without
) -> SummarisedFunction:
    """A function without some nodes; as it was if the solver proves no lower bound."""
    try:
        bound = solve(paths, nodes)
    except SolverError:
        return one
    solution = replace(one.solution, cycles=0) if bound is None else bound.solution
    return (
        one
        if solution.cycles > one.solution.cycles
        else replace(one, paths=paths, solution=solution)
    )


def nodes_at(graph: Supergraph, places: Set[int]) -> list[int]:
    """The nodes whose block contains one of the addresses."""
    return [
        number
        for number, node in enumerate(graph.nodes)
        if any(node.block.addr <= place < node.block.end for place in places)
    ]


def executes(counts: Sequence[int], nodes: Set[int]) -> bool:
    """Whether one of ``nodes`` is counted; False if no counts are known."""
    return bool(counts) and any(counts[n] for n in nodes)


def lowered_costs(
    graph: Supergraph,
    costs: Costs,
    before: Sequence[SummarisedFunction],
    now: Sequence[SummarisedFunction],
) -> Costs:
    """The costs of a caller of summaries, ``before`` and ``now``; ``costs`` if none is lower."""
    known = {one.address: one for one in before}  # of a recursive function its last activation
    latest = {one.address: one.solution.cycles for one in now}
    lower = {at: cycles for at, cycles in latest.items() if cycles < known[at].solution.cycles}
    less = {e: n for e in range(len(graph.edges)) if (n := _less(graph, e, known, lower))}
    if not less:
        return costs
    edges = list(costs.edges)
    for edge, cycles in less.items():
        causes = list(edges[edge])
        causes[CostCause.OTHER] -= cycles
        edges[edge] = tuple(causes)
    limited = tuple(_lowered_call(call, less.get(call.edge or 0, 0)) for call in costs.limited)
    return replace(costs, edges=tuple(edges), limited=limited)


def _lowered_call(call: LimitedCall, less: int) -> LimitedCall:
    """``call`` charged fewer cycles, which bound its options, too."""
    if call.edge is None or not less:
        return call
    charged = replace(call.charged, cycles=call.charged.cycles - less)
    most = charged.cycles
    options = tuple(replace(one, cycles=min(one.cycles, most)) for one in call.options)
    return replace(call, charged=charged, options=options)


def _less(
    graph: Supergraph,
    edge: int,
    known: Mapping[int, SummarisedFunction],
    lower: Mapping[int, int],
) -> int:
    """The cycles by which an edge past calls costs less, as the longest callee does."""
    if not lower or not graph.passed(edge):
        return 0
    callees = graph.nodes[graph.edges[edge].src].block.passes
    replaced = {callee: graph.guidance.replaced[callee] for callee in callees}
    if not all(_is_summary(one, known.get(callee)) for callee, one in replaced.items()):
        return 0
    cycles = {callee: one.cycles or 0 for callee, one in replaced.items()}
    return max(cycles.values()) - max(lower.get(callee, cycles[callee]) for callee in cycles)


def _is_summary(replaced: FunctionReplacement, known: SummarisedFunction | None) -> bool:
    """Whether a replaced function has exactly the cycles of this summary."""
    return known is not None and replaced.settled and replaced.cycles == known.solution.cycles
