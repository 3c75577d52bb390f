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

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ilp.constraints.constraint import Constraint
from ilp.counted_bounds import bounds_by_counts
from quoll.assumptions import PREEMPTIBLE
from quoll.cfg.cfg import Program
from quoll.errors import WcetError
from quoll.facts.applied import (
    CALLEE_SAVED,
    CallCycles,
    CyclesByArrival,
    FunctionReplacement,
)
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
from wcet.analysis.prepared import (
    PreparedPaths,
    SummarisedFunction,
    SummaryStart,
    together,
    worst_start,
)
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
    if any(start.result.parametric is not None for start in starts):
        return None
    solved = tuple(start.solved for start in starts)
    called = worst_start(function, solved, behind=False)
    behind = worst_start(function, solved, behind=True)
    assert called is not None, "paths start at the call"
    cycles = max(start.solution.cycles for start in solved)
    assumed = PREEMPTIBLE.of(function=run.image.place(function), cycles=cycles)
    replacement = FunctionReplacement(
        cycles,
        False,
        assumed,
        given_back,
        settled=True,
        stores=program.left[function].stores,
        exits=path_ends(graph),
        written=written_by(values),
        limited=tuple(one for one, _ in together(solved)),
        result=returned_words(values),
        returns=returns,
        tests=CyclesByArrival(_cycles(called), None if behind is None else _cycles(behind)),
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
    shared = (called,) if behind is None else (called, behind)
    inside = BoundedGraph(graph, loops.bounds)
    return FunctionSummary(function, replacement, (inside,), assumptions, shared)


def _cycles(one: SummarisedFunction) -> CallCycles:
    return CallCycles(one.solution.cycles, one.limited)


@dataclass(frozen=True, slots=True)
class _Start:
    """The paths from one start, and their result."""

    solved: SummaryStart
    result: EntryResult

    @staticmethod
    def of(code: AnalysisTarget, paths: PreparedPaths, effort: Effort) -> _Start:
        def solve(more: tuple[Constraint, ...] = ()) -> EntryResult:
            found = paths_result(code.run, code.name, code.address, paths, whole=False, more=more)
            effort.solutions.append(found.solution)
            return found

        result = solve()
        counted = bounds_by_counts(
            result.constraints, result.solution, lambda more: solve(more).solution
        )
        return _Start(SummaryStart(paths, result.solution, counted), result)
