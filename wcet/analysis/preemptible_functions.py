"""Summaries of functions with tests for interrupts, where inlining them grows too large.

The bound of such a summary is the largest one of all its starts: from the call with an interrupt
that is pending, and from each test in it with one that has just arrived. Callers add all their own
paths, on which they assume no interrupt. So the bound of an entry covers every arrival:

    before the call     the caller's path, and the function from the call on
    in the function     a part of the caller's path, the function from its test on, and the rest
    behind the call     a part of the caller's path

The function's tests only see an interrupt that nothing has acknowledged. So on each path at most
one such function is called, once, and no access before the call may acknowledge (``tests_once``).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ilp.constraints.constraint import Constraint
from ilp.counted_bounds import CountedBound, bounds_by_counts
from ilp.paths.solution import IlpSolution
from quoll.assumptions import PREEMPTIBLE
from quoll.cfg.cfg import Program
from quoll.errors import WcetError
from quoll.facts.applied import CALLEE_SAVED, FunctionReplacement, LimitedCycles
from quoll.facts.fact import FactSource
from quoll.facts.guidance import PathStartFact
from quoll.graph.closure import closure
from quoll.preemption.acknowledgement import acknowledging_nodes
from quoll.preemption.counters import written_by
from quoll.preemption.masks import may_unmask
from quoll.preemption.predicate import PendingPredicate
from quoll.value_analysis.value_results import ValueResults
from wcet.analysis.entry_stages import (
    AnalysisTarget,
    ValuedCode,
    assumed_by_segments,
    bounded,
    divided,
    with_values,
)
from wcet.analysis.integer_programs import paths_result
from wcet.analysis.prepared import PreparedPaths, SummarisedFunction
from wcet.analysis.presupposed import presupposed
from wcet.analysis.provisional_bounds import solved_provisionally
from wcet.analysis.result import EntryResult
from wcet.analysis.schedule import costing
from wcet.analysis.summaries import (
    BoundedGraph,
    Effort,
    FunctionSummary,
    Summaries,
    as_called,
    candidates_of,
    fixes_callers,
    path_ends,
    stacks_of,
)
from wcet.result_classes.returned_words import returned_words

__all__ = ["preemptible_functions", "tests_once"]

LEVELS = 32
Counts = tuple[tuple[FactSource, int], ...]  # least executions of limited places
Solved = tuple[PreparedPaths, IlpSolution]


def preemptible_functions(code: AnalysisTarget, program: Program) -> Summaries:
    """``program`` with summaries of functions that test for interrupts, as long as it is too large.

    If one of them has no bound from unknown values, all stay inlined: the entry then has its error.
    A survey collects its loops and goes on with a provisional bound.
    """
    run, effort = code.run, Effort()
    tests = run.platform.pending.fields and not run.facts.of(PathStartFact)
    found: tuple[FunctionSummary, ...] = ()
    if tests and run.options.summary_settings.cycles:
        with suppress(WcetError):  # all are inlined then: the entry has its own errors
            program, found = _summarised(code, program, effort)
    return Summaries(program, found, bool(found), effort.cut_off(run))


def tests_once(values: ValueResults, predicate: PendingPredicate) -> bool:
    """Whether each path calls one function with tests in its summary at most.

    No access on the way to the call, or to a function whose tests see an interrupt that is pending,
    may acknowledge it.
    """
    graph, replaced = values.graph, values.graph.guidance.replaced
    calls, before = set[int](), set[int]()
    for number, node in enumerate(graph.nodes):
        callees = [replaced[callee] for callee in node.block.passes]
        if not callees or not values.reached(number):
            continue
        if any(one.tests or one.assumes_pending for one in callees):
            calls.add(number)
        if any(one.tests or one.acknowledges for one in callees):
            before.add(number)
    if not calls:
        return True
    acknowledging = acknowledging_nodes(values, predicate).all
    before |= acknowledging
    after = [graph.edges[e].dst for node in before for e in graph.successors[node]]
    reached = closure(after, lambda node: (graph.edges[e].dst for e in graph.successors[node]))
    return calls.isdisjoint(reached | acknowledging)


def _summarised(
    code: AnalysisTarget, program: Program, effort: Effort, levels: int = LEVELS
) -> tuple[Program, tuple[FunctionSummary, ...]]:
    """``program`` with summaries, and these summaries, callees before their callers.

    ``levels``: the most functions with such summaries that call one another. Raises WcetError.
    """
    found: list[FunctionSummary] = []
    candidates = candidates_of(code, program)
    while levels and (function := candidates.preemptible()) is not None:
        inside = as_called(code, function, stacks_of(code, program))
        callees, within = _summarised(inside, candidates.program, effort, levels - 1)
        summary = _tried(inside, callees, effort)
        if summary is None:  # its callers have to see it
            candidates.leave(function)
            continue
        candidates.replace_by(function, summary.replacement)
        found += (*within, summary)
    return candidates.program, tuple(found)


def _tried(code: AnalysisTarget, program: Program, effort: Effort) -> FunctionSummary | None:
    run, function = code.run, code.address
    with code.stage("shared functions"):
        found = with_values(code, program)
    graph, values = found.graph, found.values
    valued = ValuedCode(code, graph, values)
    returns, given_back = program.functions[function].returns, values.preserved_registers()
    depends = (
        found.changed
        or (found.first.retranslates and not fixes_callers(code))
        or (returns and not given_back >= CALLEE_SAVED)
        or may_unmask(values)
        or not tests_once(values, run.platform.pending)
    )
    names = (name for span in values.stored for name in run.image.memory.physical_aliases(*span))
    if depends or any(code.origin.stacks.surely_reach(*span) for span in names):
        return None
    parts = divided(valued)
    with costing(valued, parts) as costs:
        with code.stage("loop bounds"):
            loops = bounded(valued, parts)
        paths = costs(loops)
    effort.bounds.extend(loops.bounds)
    unbounded = None if run.loops is None else run.loops.doubtful
    bound = partial(_Start.of, code, effort=effort)
    starts = [solved_provisionally(one, bound, unbounded) for one in paths]
    worst = max(starts, key=lambda start: start.result.cycles)
    if any(start.result.parametric is not None for start in starts):
        return None
    limited = _together(starts)
    assumed = PREEMPTIBLE.of(function=run.image.place(function), cycles=worst.result.cycles)
    replacement = FunctionReplacement(
        worst.result.cycles,
        False,
        assumed,
        given_back,
        settled=True,
        stores=program.left[function].stores,
        exits=path_ends(graph),
        written=written_by(values),
        limited=tuple(cycles for cycles, _ in limited),
        result=returned_words(values),
        returns=returns,
        tests=True,
    )
    assumptions = (
        assumed,
        *presupposed(values, run.image, run.platform, code.name, run.exits, ()),
        *(removed.fact for removed in graph.guidance.removed),
        *values.assumptions,
        *assumed_by_segments(run, parts),
        *(one for bound in loops.bounds for one in bound.assumed),
        *(one for path in paths for one in path.costs.assumptions),
        *(one for start in starts for one in start.result.assumptions),
    )
    shared = SummarisedFunction(
        function,
        worst.paths,
        worst.result.solution,
        tuple(solved for _, solved in limited),
    )
    inside = BoundedGraph(graph, loops.bounds)
    return FunctionSummary(function, replacement, (inside,), assumptions, shared)


@dataclass(frozen=True, slots=True)
class _Start:
    """The paths from one start, and their bound, also for ranges of counts (``CountedBound``)."""

    paths: PreparedPaths
    result: EntryResult
    counted: tuple[CountedBound, ...]

    @staticmethod
    def of(code: AnalysisTarget, paths: PreparedPaths, effort: Effort) -> _Start:
        def solved(more: tuple[Constraint, ...] = ()) -> EntryResult:
            found = paths_result(code.run, code.name, code.address, paths, whole=False, more=more)
            effort.solutions.append(found.solution)
            return found

        result = solved()
        counted = bounds_by_counts(
            result.constraints, result.solution, lambda more: solved(more).solution
        )
        return _Start(paths, result, counted)

    def most(self, counts: Counts) -> CountedBound | None:
        """The bound of calls with these counts; None if there are none."""
        if not self.counted:
            return LimitedCycles(counts, self.result.cycles), self.result.solution
        given = dict(counts)
        found = [
            one
            for one in self.counted
            if all(n <= given.get(place, 0) for place, n in one[0].counts)
        ]
        return max(found, key=lambda one: one[0].cycles, default=None)


def _together(starts: Sequence[_Start]) -> list[tuple[LimitedCycles, Solved]]:
    """The bounds for ranges of counts from all starts; empty if counts do not matter.

    A bound that one start lacks is covered by its bounds for fewer executions.
    """
    keys = dict.fromkeys(limited.counts for start in starts for limited, _ in start.counted)
    found = []
    for counts in keys:
        each = [(start, bound) for start in starts if (bound := start.most(counts)) is not None]
        start, (limited, solution) = max(each, key=lambda one: one[1][0].cycles)
        found.append((LimitedCycles(counts, limited.cycles), (start.paths, solution)))
    return found
