"""Worst paths inside functions with a summary.

A caller's path only has the cycles of a summary. This report shows the function's own path, and the
paths of the summaries that it calls, if they are costly enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilp.paths.outline import PathOutline, outline
from wcet.analysis.prepared import SummarisedFunction
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.latency.summarised_calls import summarised_calls

__all__ = ["inside_summaries"]

LOOP_SHARE = 0.05  # share of a call from which on its loops are shown


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


def loops_of(one: SummarisedFunction) -> Iterator[PathOutline]:
    """The costly loops on the worst path of one call; their cycles include calls."""
    whole = outline(one.paths.graph, one.paths.costs, one.solution)
    for _, section in whole.walk():
        if section.stretch.loop is not None and section.cycles >= LOOP_SHARE * whole.cycles:
            yield section
