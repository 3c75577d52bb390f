"""Bounds of functions with a summary without excluded places, and the costs of their callers.

With a lower bound of a function, its calls cost less. A function that always executes an excluded
place costs nothing: paths through its calls remain, which none takes under the fact that the place
never executes. So all bounds remain upper bounds.

A function with tests for interrupts is bounded from each of its starts again. Those that are left
out, or that no path without the places leads to, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from operator import is_

from ilp.constraints.constraint import Constraint
from ilp.constraints.exclusion import ProvedRow
from ilp.paths.solution import IlpSolution
from pipeline.costs import CallOption, CostCause, Costs, ExcludedEdges, LimitedCall
from quoll.errors import InfeasibleError, SolverError
from quoll.facts.applied import FunctionReplacement
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.prepared import PreparedPaths, SummarisedFunction, SummaryStart, worst_start
from wcet.analysis.result import EntryResult
from wcet.latency.arrivals import arrival_at, reached_arrivals, reached_without
from wcet.latency.summarised_calls import numbers_in
from wcet.result_classes.class_bounds import bounds_by_results
from wcet.result_classes.result_class import CalledResult, ResultClass

__all__ = [
    "begins_nowhere",
    "executes",
    "lowered_costs",
    "lowered_summaries",
    "lowers",
    "nodes_at",
]

Without = Callable[
    [PreparedPaths, frozenset[int], tuple[ProvedRow, ...], tuple[Constraint, ...]],
    EntryResult | None,
]


def lowered_summaries(
    summaries: Sequence[SummarisedFunction],
    current: Sequence[SummarisedFunction],
    excluded: Set[int],
    left_out: Set[int],
    solve: Without,
) -> tuple[SummarisedFunction, ...]:
    """``summaries`` without the addresses ``excluded``; callees come before their callers.

    ``current``: the same without fewer addresses. ``left_out``: the starts of paths that do not
    count, by the identity of their graphs. ``solve`` bounds the paths of a summary without some
    nodes, with more rows and constraints; None if there are none.
    """
    found: list[SummarisedFunction] = []
    for one, known in zip(summaries, current, strict=True):
        before, latest = summaries[: len(found)], _starts(known)
        solved = tuple(
            _lowered_start(start.paths, now, one.classes, before, found, excluded, solve)
            for start, now in zip(_starts(one), latest, strict=True)
        )
        if one.starts:
            found.append(_worst(known, solved, excluded, left_out, found))
        elif solved[0] is latest[0]:
            found.append(known)
        else:
            (start,) = solved
            by_counts = tuple((start.paths, solution) for _, solution in start.counted)
            limited = tuple(cycles for cycles, _ in start.counted)
            found.append(
                replace(
                    known,
                    paths=start.paths,
                    solution=start.solution,
                    by_counts=by_counts,
                    limited=limited,
                )
            )
    return tuple(found)


def _starts(one: SummarisedFunction) -> tuple[SummaryStart, ...]:
    """The starts of a summary; one without tests has only its entry."""
    solutions = (solution for _, solution in one.by_counts)
    counted = tuple(zip(one.limited, solutions, strict=True)) if not one.starts else ()
    return one.starts or (SummaryStart(one.paths, one.solution, counted),)


def _lowered_start(
    original: PreparedPaths,
    latest: SummaryStart,
    classes: Sequence[ResultClass],
    before: Sequence[SummarisedFunction],
    now: Sequence[SummarisedFunction],
    excluded: Set[int],
    solve: Without,
) -> SummaryStart:
    """The paths from one start of a summary; as they were if the solver proves no lower bound."""
    known, graph = latest.paths, original.graph
    costs = lowered_costs(graph, original.costs, before, now)
    nodes = frozenset(nodes_at(graph, excluded))
    solutions = (latest.solution, *(solution for _, solution in latest.counted))
    if not any(executes(one.nodes, nodes) or lowers(one, known.costs, costs) for one in solutions):
        return latest
    paths = replace(known, costs=costs)

    def solved(
        inside: Costs, rows: tuple[ProvedRow, ...], more: tuple[Constraint, ...]
    ) -> IlpSolution:
        bound = solve(replace(paths, costs=inside), nodes, rows, more)
        if bound is None:
            raise InfeasibleError("no path remains")
        return bound.solution

    try:
        bound = solve(paths, nodes, (), ())
        if bound is None:
            return SummaryStart(paths, _no_path(latest.solution))
        if bound.cycles > latest.solution.cycles:
            return latest
        remaining = [_renumbered(one, graph, before, now) for one in classes]
        counted = bounds_by_results(remaining, bound.constraints, costs, bound.solution, solved)
    except SolverError:
        return latest
    return SummaryStart(paths, bound.solution, counted)


def _renumbered(
    one: ResultClass,
    graph: Supergraph,
    before: Sequence[SummarisedFunction],
    now: Sequence[SummarisedFunction],
) -> ResultClass:
    """A class of results with the levels that its callees have now.

    A result of a callee stays excluded if all its levels with the same words were.
    """
    numbers = numbers_in(graph, before)
    found: set[CalledResult] = set()
    for called in one.results:
        number = numbers.get(called.function)
        if number is None or now[number] is before[number]:
            found.add(called)
            continue
        then, latest = before[number].limited, now[number].limited
        if called.level is None:
            continue
        words = then[called.level].result
        same = (level for level, of in enumerate(then) if of.result == words)
        if all(replace(called, level=level) in one.results for level in same):
            levels = (level for level, of in enumerate(latest) if of.result == words)
            found.update(replace(called, level=level) for level in levels)
    return replace(one, results=frozenset(found))


def _worst(
    known: SummarisedFunction,
    starts: tuple[SummaryStart, ...],
    excluded: Set[int],
    left_out: Set[int],
    summaries: Sequence[SummarisedFunction],
) -> SummarisedFunction:
    """A function with tests: the worst of its starts that are reached, for its arrivals."""
    reached = reached_arrivals(
        [
            (
                arrival_at(one.paths.graph, one.paths.graph.entry),
                reached_without(one.paths.graph, frozenset(nodes_at(one.paths.graph, excluded))),
                not one.behind,
            )
            for one in starts
        ]
    )

    def counts(one: SummaryStart) -> bool:
        graph = one.paths.graph
        return (
            arrival_at(graph, graph.entry) in reached
            and id(graph) not in left_out
            and not begins_nowhere(one.paths, summaries)
        )

    worst = worst_start(known.address, starts, behind=bool(known.behind), counts=counts)
    if worst is None:
        solution = _no_path(known.solution)
        return replace(known, solution=solution, by_counts=(), limited=(), starts=starts)
    same = worst.solution is known.solution and worst.limited == known.limited
    return known if same and all(map(is_, starts, known.starts)) else worst


def begins_nowhere(paths: PreparedPaths, summaries: Sequence[SummarisedFunction]) -> bool:
    """Whether ``paths`` begin behind tests in a function, and no start remains there."""
    if paths.begins_inside is None:
        return False
    numbers = numbers_in(paths.graph, summaries)
    called = paths.graph.nodes[paths.graph.entry].block.passes
    inside = [summaries[numbers[f]] for f in called if f in numbers]
    return all(one.behind and one.solution.cycles == 0 for one in inside)


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


def lowers(solution: IlpSolution, before: Costs, now: Costs) -> bool:
    """Whether a path costs less now; False if no counts are known."""
    if not solution.nodes or before is now:
        return False
    edges = zip(solution.edges, before.edges, now.edges, strict=True)
    nodes = zip(solution.nodes, before.nodes, now.nodes, strict=True)
    cheaper = any(count and old != new for count, old, new in (*edges, *nodes))
    return cheaper or before.limited != now.limited


def _no_path(solution: IlpSolution) -> IlpSolution:
    return replace(solution, cycles=0, nodes=(), edges=(), calls=())


def lowered_costs(
    graph: Supergraph,
    costs: Costs,
    before: Sequence[SummarisedFunction],
    now: Sequence[SummarisedFunction],
) -> Costs:
    """The costs of a caller of summaries, ``before`` and ``now``; ``costs`` if none is lower."""
    numbers = numbers_in(graph, before)
    changed = {at: now[n] for at, n in numbers.items() if now[n] is not before[n]}
    if not changed:
        return costs
    known = {at: before[n] for at, n in numbers.items()}
    edges, nodes = list(costs.edges), list(costs.nodes)
    limited = {(one.node, one.edge): one for one in costs.limited}
    for node, edge in _calls(graph):
        passes = graph.nodes[node].block.passes
        less = _less(graph, node, known, changed) if changed.keys() & set(passes) else None
        if less is None:
            continue
        if edge is None:
            nodes[node] = _minus(nodes[node], less)
        else:
            edges[edge] = _minus(edges[edge], less)
        call = _call(node, edge, [changed.get(f, known[f]) for f in passes])
        before_it = limited.pop((node, edge), None)
        if call is not None:
            excluded = () if before_it is None else _excluded(before_it, call)
            limited[node, edge] = replace(call, excluded=excluded)
    return replace(costs, nodes=tuple(nodes), edges=tuple(edges), limited=tuple(limited.values()))


def _call(node: int, edge: int | None, callees: Sequence[SummarisedFunction]) -> LimitedCall | None:
    """The call of one of some functions, as ``pipeline.limited_calls`` has it.

    None if its cycles depend neither on counts nor on results.
    """
    options = [option for callee in callees for option in _options(callee)]
    if not any(option.counts or option.result for option in options):
        return None
    charged = max(options, key=lambda option: (option.cycles, not option.counts))
    options.remove(charged)
    return LimitedCall(node, edge, charged, tuple(options))


def _options(callee: SummarisedFunction) -> list[CallOption]:
    if not callee.limited:
        return [CallOption(callee.address, None, callee.solution.cycles, ())]
    return [
        CallOption(callee.address, level, one.cycles, one.counts, one.result)
        for level, one in enumerate(callee.limited)
    ]


def _excluded(before: LimitedCall, now: LimitedCall) -> tuple[ExcludedEdges, ...]:
    """The edges that results of a call exclude, for its options now."""
    found = []
    for one in before.excluded:
        words = [option.result for option in one.options if option.result is not None]
        options = frozenset(o for o in (now.charged, *now.options) if o.result in words)
        if options:
            found.append(replace(one, options=options))
    return tuple(found)


def _calls(graph: Supergraph) -> Iterator[tuple[int, int | None]]:
    """The calls of replaced functions, each with its edge; None at an end of paths."""
    yield from ((edge.src, e) for e, edge in enumerate(graph.edges) if graph.passed(e))
    yield from (
        (node, None)
        for node in graph.exits
        if graph.nodes[node].block.tail and graph.nodes[node].block.passes
    )


def _minus(causes: tuple[int, ...], cycles: int) -> tuple[int, ...]:
    found = list(causes)
    found[CostCause.OTHER] -= cycles
    return tuple(found)


def _less(
    graph: Supergraph,
    node: int,
    known: Mapping[int, SummarisedFunction],
    changed: Mapping[int, SummarisedFunction],
) -> int | None:
    """The cycles by which the calls of a node cost less, as the longest callee does.

    None if one of the callees has no summary.
    """
    replaced = {f: graph.guidance.replaced[f] for f in graph.nodes[node].block.passes}
    if not all(_is_summary(one, known.get(callee)) for callee, one in replaced.items()):
        return None
    cycles = {callee: one.cycles or 0 for callee, one in replaced.items()}
    now = {callee: one.solution.cycles for callee, one in changed.items()}
    return max(cycles.values()) - max(now.get(callee, cycles[callee]) for callee in cycles)


def _is_summary(replaced: FunctionReplacement, known: SummarisedFunction | None) -> bool:
    """Whether a replaced function has exactly the cycles of this summary."""
    return known is not None and replaced.settled and replaced.cycles == known.solution.cycles
