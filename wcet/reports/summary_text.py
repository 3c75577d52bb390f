"""Worst paths inside functions with a summary.

A caller's path only has the cycles of a summary. This report shows the function's own path, and the
paths of the summaries that it calls, if they are costly enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilp.paths.outline import PathOutline, outline
from ilp.paths.solution import IlpSolution
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.prepared import SummarisedFunction
from wcet.analysis.result import AnalysisResult, EntryResult

__all__ = ["inside_summaries", "summarised_calls"]

SHARE = 0.01  # share of the bound from which on a function's path is shown
LOOP_SHARE = 0.05  # share of a call from which on its loops are shown


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


def inside_summaries(result: AnalysisResult, entry: EntryResult) -> Iterator[str]:
    """The relevant summarised functions on the worst path of an entry, each with its own path."""
    found = list(summarised_calls(entry))
    if not found:
        return
    width = len(f"{entry.cycles:,}") + 2
    yield "inside functions that were analysed once for all their calls"
    often = max(7, *(len(f"{call.calls:,}") + 2 for call in found))
    yield (
        f"{'cycles':>{width}}{'share':>7}{'calls':>{often}}{'of a call':>{width}}"
        "  function, its loops"
    )
    for call in found:
        indent, one = "  " * call.depth, call.function
        yield (
            f"{call.cycles:>{width},}{call.cycles / entry.cycles:>7.1%}{call.calls:>{often},}"
            f"{one.solution.cycles:>{width},}  {indent}{result.function(one.address)}"
        )
        for section in loops_of(one):
            loop = section.stretch.loop
            assert loop is not None
            graph, bound = one.paths.graph, one.paths.bounds[loop]
            place = result.image.place(graph.nodes[graph.loops[loop].header].block.addr)
            times = f"{section.iterations:,} times" + (
                f" in {section.entries:,}" if section.entries > 1 else ""
            )
            yield (
                f"{'':>{width + 7 + often}}{section.cycles:>{width},}  {indent}  loop {place}: "
                f"{times} (at most {bound.bound:,}, {bound.method})"
            )


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


def loops_of(one: SummarisedFunction) -> Iterator[PathOutline]:
    """The costly loops on the worst path of one call; their cycles include calls."""
    whole = outline(one.paths.graph, one.paths.costs, one.solution)
    for _, section in whole.walk():
        if section.stretch.loop is not None and section.cycles >= LOOP_SHARE * whole.cycles:
            yield section
