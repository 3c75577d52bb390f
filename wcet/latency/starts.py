"""The starts of paths of a kernel, and their bounds without excluded places.

A place is excluded as by the fact that it never executes. Only integer programs are solved again,
for starts whose worst path executes the place: the other bounds stay.

An execution without the place consists of paths of segments, each from a start to the next test
(``wcet.executions.recorded_paths`` cuts recorded executions so). So a start is left out if no such
path leads to it, from the entry or from a start that is not left out. The new bounds are at most
too high: with the fact, values, caches and bounds of loops may be more precise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ilp.constraints.constraint import Constraint
from ilp.constraints.exclusion import ProvedRow
from ilp.paths.solution import WorstPath
from quoll.errors import InfeasibleError, SolverError
from quoll.facts.count_facts import AtMostFact
from quoll.facts.fact import FactSource
from wcet.analysis.integer_programs import paths_result
from wcet.analysis.prepared import PreparedPaths, SummarisedFunction
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.analysis.run import AnalysisRun
from wcet.latency.arrivals import (
    Arrival,
    all_arrivals,
    arrival_at,
    reached_arrivals,
    reached_without,
)
from wcet.latency.frames import first_frame
from wcet.latency.lowered_summaries import (
    begins_nowhere,
    executes,
    lowered_costs,
    lowered_summaries,
    lowers,
    nodes_at,
)

__all__ = ["PathStarts", "StartPaths"]

HERE = FactSource("latency", 1, "the excluded place")


@dataclass(frozen=True, slots=True)
class StartPaths:
    """The paths of an entry from one start; ``worst``: their bound, None if no path remains.

    ``bound``: without excluded places. ``whole``: executions neither begin before nor continue
    behind them. ``leads``: the starts of the entry that its paths reach; ``first``: some execution
    begins there, or is assumed to.
    """

    paths: PreparedPaths
    bound: EntryResult
    worst: EntryResult | None
    whole: bool
    first: bool
    leads: frozenset[Arrival]

    @property
    def arrival(self) -> Arrival:
        """The place and context of the start."""
        return arrival_at(self.paths.graph, self.paths.graph.entry)

    def excluding(
        self, run: AnalysisRun, excluded: Set[int], summaries: tuple[SummarisedFunction, ...]
    ) -> StartPaths:
        """The same without the addresses ``excluded``; ``summaries``: those without them."""
        graph, worst = self.paths.graph, self.worst
        nodes = frozenset(nodes_at(graph, excluded))
        leads = self.leads & reached_without(graph, nodes) if nodes else self.leads
        if worst is None or begins_nowhere(self.paths, summaries):
            return replace(self, worst=None, leads=leads)
        costs = lowered_costs(graph, self.paths.costs, self.bound.summaries, summaries)
        if executes(worst.solution.nodes, nodes) or lowers(worst.solution, worst.costs, costs):
            paths = replace(self.paths, costs=costs)
            worst = _not_above(worst, lambda: self._without(run, paths, nodes))
        return replace(self, worst=worst and replace(worst, summaries=summaries), leads=leads)

    def _without(
        self, run: AnalysisRun, paths: PreparedPaths, nodes: frozenset[int]
    ) -> EntryResult | None:
        bound = self.bound
        return _without(run, bound, paths, nodes, bound.exclusions, whole=self.whole)


def _without(
    run: AnalysisRun,
    of: EntryResult,
    paths: PreparedPaths,
    nodes: frozenset[int],
    exclusions: tuple[ProvedRow, ...],
    *,
    whole: bool,
    limits: tuple[Constraint, ...] = (),
) -> EntryResult | None:
    """The bound of the paths without ``nodes``; None if there are none. Raises SolverError."""
    never = Constraint(AtMostFact(HERE, "excluded places", 0, None), nodes, frozenset(), None, None)
    more = (never, *limits) if nodes else limits
    try:
        return paths_result(
            run, of.name, of.address, paths, whole=whole, more=more, exclusions=exclusions
        )
    except InfeasibleError:
        return None


def _not_above(known: EntryResult, solve: Callable[[], EntryResult | None]) -> EntryResult | None:
    """The bound of fewer paths, or ``known`` without counts if the solver proves none below it."""
    with suppress(SolverError):
        found = solve()
        if found is None or known.parametric or found.cycles <= known.cycles:
            return found
    solution = replace(known.solution, optimal=False, nodes=(), edges=())
    path = WorstPath((), 0, "the solver proved no lower bound")
    return replace(known, solution=solution, path=path)


@dataclass(frozen=True, slots=True)
class PathStarts:
    """All starts of all bounded entries, without the places ``excluded``, which are addresses.

    ``left_out``: starts that do not count, by the identity of their graphs. ``summaries``: of each
    entry, without excluded places.
    """

    run: AnalysisRun
    starts: tuple[StartPaths, ...]
    excluded: frozenset[int] = field(default=frozenset())
    left_out: frozenset[int] = field(default=frozenset())
    summaries: Mapping[str, tuple[SummarisedFunction, ...]] = field(default_factory=dict)

    @staticmethod
    def of(run: AnalysisRun, result: AnalysisResult, masked: Set[str] = frozenset()) -> PathStarts:
        """The starts of a result; ``masked``: the entries whose paths are masked regions."""
        found = []
        for name, entry in result.entries.items():
            found += _of_regions(entry) if name in masked else _of_entry(entry)
        return PathStarts(run, tuple(found))

    @property
    def tests(self) -> frozenset[int]:
        """The addresses of the blocks that start paths behind a test."""
        of_entries = (start.paths for start in self.starts)
        of_summaries = (
            start.paths
            for bound in self._bounds().values()
            for one in bound.summaries
            for start in one.starts
        )
        return frozenset(
            paths.start
            for paths in (*of_entries, *of_summaries)
            if paths.start is not None and paths.begins_inside is None
        )

    def longest(self) -> StartPaths | None:
        """The start with the longest paths; None if no path remains."""
        names = dict.fromkeys(start.bound.name for start in self.starts)
        live = [start for name in names for start in self._live(name)]
        return max(live, key=lambda start: _cycles(start.worst), default=None)

    def _live(self, entry: str) -> Iterator[StartPaths]:
        """The starts of an entry from which a path remains."""
        of_entry = [start for start in self.starts if start.bound.name == entry]
        reached = _arrivals(of_entry)
        for start in of_entry:
            if start.worst is not None and (start.first or start.arrival in reached):
                yield start

    def without(self, place: int) -> PathStarts:
        """The same without the place, too."""
        return replace(self, excluded=self.excluded | {place})._lowered()

    def _lowered(self) -> PathStarts:
        """The same with the bounds without excluded places, and without starts left out."""
        bounds = self._bounds().items()
        summaries = {name: self._lowered_summaries(bound) for name, bound in bounds}
        starts = tuple(
            start.excluding(self.run, self.excluded, summaries[start.bound.name])
            for start in self.starts
        )
        return replace(self, starts=starts, summaries=summaries)

    def _bounds(self) -> dict[str, EntryResult]:
        """A bound of each entry: all have the same summaries."""
        return {start.bound.name: start.bound for start in self.starts}

    def _lowered_summaries(self, bound: EntryResult) -> tuple[SummarisedFunction, ...]:
        """The summaries of an entry without the excluded places."""

        def solve(
            paths: PreparedPaths,
            nodes: frozenset[int],
            rows: tuple[ProvedRow, ...],
            limits: tuple[Constraint, ...],
        ) -> EntryResult | None:
            return _without(self.run, bound, paths, nodes, rows, whole=False, limits=limits)

        current = self.summaries.get(bound.name, bound.summaries)
        return lowered_summaries(bound.summaries, current, self.excluded, self.left_out, solve)

    def without_start(self, left_out: StartPaths) -> PathStarts:
        """The same without the bound of one start: of the function in which its path begins."""
        assert left_out.worst is not None
        inside = id(first_frame(left_out.worst).graph)
        if inside != id(left_out.paths.graph):
            return replace(self, left_out=self.left_out | {inside})._lowered()
        starts = tuple(
            replace(start, worst=None) if start is left_out else start for start in self.starts
        )
        return replace(self, starts=starts)


def _cycles(result: EntryResult | None) -> int:
    return 0 if result is None else result.cycles


def _of_regions(entry: EntryResult) -> list[StartPaths]:
    """The masked regions of an entry: it is not known which code leads to them."""
    bounds = {id(bound.graph): bound for bound in entry.by_start}
    found = [(paths, bounds[id(paths.graph)]) for paths in entry.paths]
    return [
        StartPaths(paths, bound, bound, whole=False, first=True, leads=frozenset())
        for paths, bound in found
    ]


def _of_entry(entry: EntryResult) -> list[StartPaths]:
    """The starts of an entry; all that no path seems to lead to count as first ones."""
    whole = len(entry.paths) == 1 and entry.paths[0].start is None
    bounds = {id(b.graph): replace(b, summaries=entry.summaries) for b in entry.by_start}
    found = []
    for paths in entry.paths:
        bound, graph = bounds[id(paths.graph)], paths.graph
        first = paths.start is None
        found.append(StartPaths(paths, bound, bound, whole, first, all_arrivals(graph)))
    arrivals = frozenset(start.arrival for start in found)
    found = [replace(start, leads=start.leads & arrivals) for start in found]
    reached = _arrivals(found)
    return [replace(s, first=s.first or s.arrival not in reached) for s in found]


def _arrivals(starts: Sequence[StartPaths]) -> set[Arrival]:
    """The starts that paths from the first ones lead to, directly or by others."""
    return reached_arrivals([(start.arrival, start.leads, start.first) for start in starts])
