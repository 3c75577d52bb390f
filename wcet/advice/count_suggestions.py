"""Suggestions for counts of loops and calls on the worst path.

Only the integer program is solved again. With recorded executions, the count in a line is the most
that one of them shows; otherwise it is the least that the worst path allows, if some execution may
have as few (``ilp.least_counts``). For an entry with several starts of paths (rule 21) the worst
one is solved again; the bound does not fall below the bound of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ilp.constraints.constraint import resolve_constraints
from ilp.constraints.nest import checked_bounds, totals
from ilp.ipet import build_ipet
from ilp.least_counts import LeastCounts
from ilp.longest_path import proved_maximum
from ilp.solvers.solve import solver_named
from quoll.errors import FactsError, InfeasibleError, SolverError
from quoll.facts.anchors import anchored
from quoll.facts.count_facts import AtMostFact
from quoll.facts.fact import FactSource
from quoll.facts.located import locate
from quoll.facts.read import Facts
from wcet.advice.recorded import RecordedCounts
from wcet.advice.suggestion import Suggestion
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.reports.hot_places import loop_shares

__all__ = ["CountProgram", "CountSuggestion", "of_calls", "of_loops"]

WORTH = 0.005  # share of the bound that a loop has to take
HERE = FactSource("advise", 1, "the suggested line")


@dataclass(frozen=True, slots=True)
class CountProgram:
    """The integer program of an entry, for solutions with other counts."""

    result: AnalysisResult
    entry: EntryResult
    options: AnalysisOptions
    recorded: RecordedCounts = field(default_factory=RecordedCounts)

    @property
    def within(self) -> str:
        """The entry to which facts are restricted: they need not hold on paths of other entries."""
        return self.result.function(self.entry.address)

    def least(self) -> Callable[[int], int]:
        """By address of a block, executions that no path of the entry falls below."""
        entry, graph = self.entry, self.entry.graph
        if len(entry.paths) > 1 or entry.paths[0].start is not None:
            return lambda at: 0
        solver, seconds = solver_named(self.options.solver), self.options.time_limit
        prefix = entry.paths[0].prefix
        counts = LeastCounts.of_paths(graph, entry.costs, entry.bounds, prefix, solver, seconds)
        nodes: dict[int, list[int]] = {}
        for number, node in enumerate(graph.nodes):
            nodes.setdefault(node.block.addr, []).append(number)
        return lambda at: counts.executions(nodes[at])

    def saved(self, place: str, most: int) -> int:
        """The cycles by which the bound falls if ``place`` executes at most ``most`` times.

        0 if no path remains, no result is proved, or the place cannot be counted.
        """
        entry, graph = self.entry, self.entry.graph
        fact = AtMostFact(HERE, place, most, self.within)
        numbers, inside = checked_bounds(graph, entry.bounds), totals(graph, entry.bounds)
        try:
            more = resolve_constraints(graph, locate(Facts((fact,)), self.result.image))
            constraints = (*entry.constraints, *more)
            ipet = build_ipet(
                graph, entry.costs, numbers, constraints, inside, exclusions=entry.exclusions
            )
            solver = solver_named(self.options.solver)
            found = proved_maximum(ipet, solver, self.options.time_limit).bound
        except (FactsError, InfeasibleError, SolverError):
            return 0
        other = max((start.cycles for start in entry.starts[1:]), default=0)
        return entry.cycles - max(found, other)

    def suggestion(
        self, at: int, place: str, least: int, count: int, condition: str, now: str
    ) -> CountSuggestion | None:
        """``place``, the block at ``at``, is executed ``count`` times on the worst path.

        ``least``: the executions that the worst path needs at least. None if recorded executions
        run the place as often as the worst path.
        """
        recorded = self.recorded.most.get(at)
        if recorded is not None:
            least = recorded
            condition = (
                f"no execution runs it more often than the {self.recorded.executions:,} recorded "
                f"ones, of which one ran it {recorded:,} times"
            )
        elif self.recorded.executions:
            now += "; no recorded execution runs it"
        if least >= count:
            return None
        line = f"{place} executes at most {least} times in {self.within}"
        found = Suggestion(line, self.saved(place, least), condition, now)
        return CountSuggestion(found, lambda: self.saved(place, count - 1))


@dataclass(frozen=True, slots=True)
class CountSuggestion:
    """A suggestion; ``one_less``: solves again for the cycles that one execution less saves."""

    suggestion: Suggestion
    one_less: Callable[[], int]

    def whole(self) -> Suggestion:
        """The suggestion with the cycles that one execution less saves."""
        return replace(self.suggestion, each=self.one_less())


def of_loops(counted: CountProgram) -> Iterator[CountSuggestion]:
    """A suggestion for each costly loop that the worst path repeats, the costliest first.

    Its count is no smaller than the bound of one entry of the loop, which is proved or stated.
    """
    entry, image, nodes = counted.entry, counted.result.image, counted.entry.solution.nodes
    graph, edges = entry.graph, entry.solution.edges
    iterations: dict[int, int] = {}  # by address of the header, in all contexts
    entries: dict[int, int] = {}
    bounds: dict[int, dict[str, None]] = {}
    once: dict[int, int] = {}
    for bound in entry.bounds:
        loop = graph.loops[bound.loop]
        at = graph.nodes[loop.header].block.addr
        if not nodes[loop.header]:
            continue
        iterations[at] = iterations.get(at, 0) + nodes[loop.header]
        entries[at] = entries.get(at, 0) + sum(edges[e] for e in loop.entries)
        each = bound.iterations(graph)
        once[at] = max(once.get(at, 1), each or 1)
        bounds.setdefault(at, {})[f"{each:,} ({bound.method})"] = None
    surely = counted.least()
    cycles = {at: share.cycles for at, share in loop_shares(entry).items()}
    costly = [at for at in iterations if cycles[at] >= WORTH * entry.cycles]
    for at in sorted(costly, key=lambda at: -cycles[at]):
        count = iterations[at]
        least = max(once[at], entries[at])
        least = max(least, surely(at)) if least < count else least
        most = " or ".join(bounds[at])
        suggestion = counted.suggestion(
            at,
            anchored(image, at) or f"{at:#x}",
            least,
            count,
            f"write the true number for {least:,}: executions of the loop's header on one path",
            f"{image.place(at)}: at most {most} an entry, {count:,} times on the worst path, "
            f"which enters it {entries[at]:,} times",
        )
        if suggestion is not None:
            yield suggestion


def of_calls(counted: CountProgram) -> Iterator[CountSuggestion]:
    """A suggestion for each function that the worst path calls more than once."""
    entry, image = counted.entry, counted.result.image
    graph = entry.graph
    calls: dict[int, int] = {}
    for node, count in zip(graph.nodes, entry.solution.nodes, strict=True):
        if graph.contexts[node.context].function == node.block.addr:
            calls[node.block.addr] = calls.get(node.block.addr, 0) + count
    loops = {graph.nodes[loop.header].block.addr for loop in graph.loops}
    surely = counted.least()
    for function, count in calls.items():
        if function in loops or count == 1:
            continue
        least = max(1, surely(function))
        suggestion = counted.suggestion(
            function,
            counted.result.function(function),
            least,
            count,
            f"{least:,} stands for the most calls on one path that callers make",
            f"{image.place(function)}: called {count:,} times on the worst path",
        )
        if suggestion is not None:
            yield suggestion
