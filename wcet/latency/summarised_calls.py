"""The calls of functions with a summary on a worst path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilp.paths.solution import IlpSolution
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.prepared import SummarisedFunction
from wcet.analysis.result import EntryResult

__all__ = ["SummarisedCall", "called", "summarised_calls"]

SHARE = 0.01  # share of the bound from which on a call counts


@dataclass(frozen=True, slots=True)
class SummarisedCall:
    """A function with a summary on a worst path: the number of its calls there, and its bound."""

    function: SummarisedFunction
    calls: int
    depth: int

    @property
    def cycles(self) -> int:
        """The cycles of all these calls."""
        return self.calls * self.function.solution.cycles


def summarised_calls(entry: EntryResult) -> Iterator[SummarisedCall]:
    """The calls of summarised functions on the worst path, callers before callees.

    Calls below a hundredth of the bound are left out.
    """
    positions = {id(one): position for position, one in enumerate(entry.summaries)}
    pending = called(entry.summaries, entry.graph, entry.solution, 1, 0)
    while pending:
        call = pending.pop()
        if call.cycles >= SHARE * entry.cycles:
            yield call
            known = entry.summaries[: positions[id(call.function)]]
            graph, solution = call.function.paths.graph, call.function.solution
            pending += called(known, graph, solution, call.calls, call.depth + 1)


def called(
    known: Sequence[SummarisedFunction],
    graph: Supergraph,
    solution: IlpSolution,
    times: int,
    depth: int,
) -> list[SummarisedCall]:
    """The summarised functions that ``times`` such paths call, the costliest last.

    ``known``: earlier summaries, so that a recursive call has one activation less. For a call with
    several callees the slowest one counts, as in the charge of the call.
    """
    functions = {one.address: one for one in known}
    calls: dict[int, int] = {}
    for e, count in enumerate(solution.edges):
        if count and graph.passed(e):
            passes = graph.nodes[graph.edges[e].src].block.passes
            reached = [functions[f] for f in passes if f in functions]
            if reached:
                longest = max(reached, key=lambda one: one.solution.cycles).address
                calls[longest] = calls.get(longest, 0) + count * times
    found = [SummarisedCall(functions[f], count, depth) for f, count in calls.items()]
    return sorted(found, key=lambda call: call.cycles)
