"""The calls of functions with a summary on a worst path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilp.paths.solution import IlpSolution
from pipeline.costs import Costs
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.prepared import SummarisedFunction
from wcet.analysis.result import EntryResult

__all__ = ["SummarisedCall", "called", "called_by", "numbers_in", "summarised_calls"]

SHARE = 0.01  # share of the bound from which on a call counts


@dataclass(frozen=True, slots=True)
class SummarisedCall:
    """A function with a summary on a worst path: the number of its calls there, and its bound.

    ``earlier``: the number of summaries that it may call.
    """

    function: SummarisedFunction
    calls: int
    depth: int
    earlier: int

    @property
    def cycles(self) -> int:
        """The cycles of all these calls."""
        return self.calls * self.function.solution.cycles


def summarised_calls(entry: EntryResult) -> Iterator[SummarisedCall]:
    """The calls of summarised functions on the worst path, callers before callees.

    Calls below a hundredth of the bound are left out.
    """
    pending = called(entry.summaries, entry.graph, entry.costs, entry.solution, 1, 0)
    while pending:
        call = pending.pop()
        if call.cycles >= SHARE * entry.cycles:
            yield call
            known = entry.summaries[: call.earlier]
            paths, solution = call.function.paths, call.function.solution
            pending += called(known, paths.graph, paths.costs, solution, call.calls, call.depth + 1)


def called(
    known: Sequence[SummarisedFunction],
    graph: Supergraph,
    costs: Costs,
    solution: IlpSolution,
    times: int,
    depth: int,
) -> list[SummarisedCall]:
    """The summarised functions that ``times`` such paths call, the costliest last.

    ``known``: earlier summaries, so that a recursive call has one activation less.
    """
    calls: dict[tuple[int, int | None], int] = {}
    for node, count in enumerate(solution.nodes):
        if count and graph.nodes[node].block.passes:
            for number, level, executions in called_by(known, graph, costs, solution, node):
                calls[number, level] = calls.get((number, level), 0) + executions * times
    found = [
        SummarisedCall(known[number].at(level), count, depth, number)
        for (number, level), count in calls.items()
    ]
    return sorted(found, key=lambda call: call.cycles)


def numbers_in(graph: Supergraph, known: Sequence[SummarisedFunction]) -> dict[int, int]:
    """By address, the index in ``known`` of each function that ``graph`` may call.

    Of a recursive function the last one; of one with tests the one for the graph's arrivals.
    """
    replaced = graph.guidance.replaced
    return {
        one.address: number
        for number, one in enumerate(known)
        if one.address in replaced and one.behind == replaced[one.address].behind
    }


def called_by(
    known: Sequence[SummarisedFunction],
    graph: Supergraph,
    costs: Costs,
    solution: IlpSolution,
    node: int,
) -> Iterator[tuple[int, int | None, int]]:
    """The summarised functions that a node calls: index in ``known``, level, executions.

    Along an edge, or at the end of the path. Of several callees the slowest one counts, as in the
    charge of the call.
    """
    ways: list[tuple[int | None, int]] = [
        (e, solution.edges[e]) for e in graph.successors[node] if graph.passed(e)
    ]
    if graph.nodes[node].block.tail and node in graph.exit_nodes:
        ways.append((None, solution.nodes[node]))
    numbers = numbers_in(graph, known)
    for edge, executions in ways:
        for function, level, count in _options(graph, costs, solution, node, edge, executions):
            if count and function in numbers:
                yield numbers[function], level, count


def _options(
    graph: Supergraph,
    costs: Costs,
    solution: IlpSolution,
    node: int,
    edge: int | None,
    executions: int,
) -> Iterator[tuple[int, int | None, int]]:
    """The functions that one call executes, with levels and executions."""
    limited = next(
        (n for n, one in enumerate(costs.limited) if (one.node, one.edge) == (node, edge)), None
    )
    if limited is None:
        replaced = graph.guidance.replaced
        passes = graph.nodes[node].block.passes
        yield max(passes, key=lambda f: replaced[f].cycles or 0), None, executions
        return
    call = costs.limited[limited]
    for one in solution.calls:
        if one.call == limited:
            option = call.options[one.option]
            yield option.function, option.level, one.count
            executions -= one.count
    yield call.charged.function, call.charged.level, executions
