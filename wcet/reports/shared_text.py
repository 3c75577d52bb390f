"""Worst paths inside functions that were analysed once for all their calls.

A caller's path has only the number of cycles of such a function. This looks into it, and into
those that it calls in turn, as long as they matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilp.paths.outline import Outline, outline
from ilp.paths.solution import Solution
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.prepared import SharedFunction
from wcet.analysis.result import EntryResult, Result

__all__ = ["inside_shared", "shared_calls"]

SHARE = 0.01  # of the bound, from which on a function is looked into
LOOP_SHARE = 0.05  # of a call, from which on its loops are shown


@dataclass(frozen=True, slots=True)
class SharedCall:
    """A function on a worst path: how often it is called there, and what a call takes at most."""

    function: SharedFunction
    calls: int
    depth: int

    @property
    def cycles(self) -> int:
        """Of all these calls."""
        return self.calls * self.function.solution.cycles


def inside_shared(result: Result, entry: EntryResult) -> Iterator[str]:
    """The shared functions that matter on the worst path of an entry, each with its own path."""
    found = list(shared_calls(entry))
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
        for part in loops_of(one):
            loop = part.stretch.loop
            assert loop is not None
            graph, bound = one.paths.graph, one.paths.bounds[loop]
            place = result.image.place(graph.nodes[graph.loops[loop].header].block.addr)
            times = f"{part.rounds:,} times" + (f" in {part.entries:,}" if part.entries > 1 else "")
            yield (
                f"{'':>{width + 7 + often}}{part.cycles:>{width},}  {indent}  loop {place}: "
                f"{times} (at most {bound.bound:,}, {bound.method})"
            )


def shared_calls(entry: EntryResult) -> Iterator[SharedCall]:
    """The calls of shared functions on the worst path, callers before what they call.

    Those that take less than a hundredth of the bound are left out.
    """
    positions = {id(one): position for position, one in enumerate(entry.shared)}
    pending = called(entry.shared, entry.graph, entry.solution, 1, 0)
    while pending:
        call = pending.pop()
        if call.cycles >= SHARE * entry.cycles:
            yield call
            known = entry.shared[: positions[id(call.function)]]
            graph, solution = call.function.paths.graph, call.function.solution
            pending += called(known, graph, solution, call.calls, call.depth + 1)


def called(
    known: Sequence[SharedFunction],
    graph: Supergraph,
    solution: Solution,
    times: int,
    depth: int,
) -> list[SharedCall]:
    """The shared functions that ``times`` such paths call, the costliest last.

    ``known`` were analysed before: a recursive call finds one activation less. Of several functions
    that a call may reach, the one that takes longest: that is what the call is charged.
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
    found = [SharedCall(functions[f], count, depth) for f, count in calls.items()]
    return sorted(found, key=lambda call: call.cycles)


def loops_of(one: SharedFunction) -> Iterator[Outline]:
    """The loops on the worst path of one call that matter; their cycles are with those of calls."""
    whole = outline(one.paths.graph, one.paths.costs, one.solution)
    for _, part in whole.walk():
        if part.stretch.loop is not None and part.cycles >= LOOP_SHARE * whole.cycles:
            yield part
