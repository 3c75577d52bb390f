"""A function summary: one bound for every call of a function.

    shared_functions   functions with a summary, where inlining grows too large (rule 20)
    context_switches   functions that switch contexts, and handlers that an svc enters (rule 2)

Each takes a program and gives it with summaries instead of calls. A summary assumes nothing about
its callers: values, caches and pipeline are unknown at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum

from ilp.constraints.constraint import Constraint, resolve_constraints
from ilp.constraints.exclusion import ProvedRow
from ilp.constraints.nest import all_unbounded
from ilp.paths.solution import IlpSolution
from loopbounds.proof.bound import LoopBound
from loopbounds.slicing.stacks import StackSpans
from pipeline.costs import Costs
from quoll.arm.insn import SP, Insn
from quoll.assumptions import SUMMARISED, Assumption
from quoll.cfg.cfg import Program
from quoll.errors import ControlFlowError, InfeasibleError, UnboundedLoop, UsageError
from quoll.facts.applied import CALLEE_SAVED, FunctionReplacement
from quoll.facts.located import locate
from quoll.facts.read import Facts
from quoll.inlining.expand import refuse_unexpandable
from quoll.inlining.sharing import SummaryCandidates, is_total
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.acknowledgement import acknowledging_nodes
from quoll.preemption.counters import written_by
from quoll.preemption.masks import may_unmask
from quoll.preemption.segments import undivided
from quoll.value_analysis.known_stores import WordStore, word_stores
from wcet.analysis.entry_stages import (
    AnalysisTarget,
    Arrival,
    PathOrigin,
    ValuedCode,
    block_timer,
    bounded,
    charged,
    divided,
    iterations,
    timed,
    with_values,
)
from wcet.analysis.integer_programs import paths_result
from wcet.analysis.prepared import Prepared, PreparedPaths, SummarisedFunction
from wcet.analysis.presupposed import presupposed
from wcet.analysis.provisional_bounds import once
from wcet.analysis.run import AnalysisRun
from wcet.result_classes.branches import excluded_branches, with_branches
from wcet.result_classes.class_bounds import bounds_by_results
from wcet.result_classes.readers import may_decide
from wcet.result_classes.returned_words import result_classes, returned_words

__all__ = [
    "BoundedGraph",
    "Effort",
    "FunctionSummary",
    "Summaries",
    "SwitchPaths",
    "acknowledges",
    "as_called",
    "candidates_of",
    "context_switches",
    "fixes_callers",
    "passed",
    "path_ends",
    "shared_functions",
    "stacks_of",
]

ADDRESS = 0xFFFFFFFF
Prepare = Callable[[AnalysisTarget], Prepared]


@dataclass(frozen=True, slots=True)
class BoundedGraph:
    """The paths of a function with a summary, and the bounds of their loops.

    ``stores``: all stores on them; None if the summary has cycles.
    """

    graph: Supergraph
    bounds: tuple[LoopBound, ...]
    stores: frozenset[WordStore] | None = None


@dataclass(frozen=True, slots=True)
class SwitchPaths:
    """The paths of a function that switches contexts; the other fields as in ``Prepared``."""

    paths: tuple[BoundedGraph, ...]
    assumptions: tuple[Assumption, ...]
    unmasking: tuple[int, ...]
    cut_off: bool
    assumes_pending: bool = False
    acknowledges: bool = False


Follow = Callable[[AnalysisTarget], SwitchPaths]


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A bound of every call of ``function``, its paths, and its assumptions.

    ``functions``: the function with its worst path, once for each kind of arrival if it tests for
    interrupts; empty for a context switch, and without cycles. ``unmasking``: instructions after
    which interrupts may be unmasked. ``unbounded``: the loops without a bound, with which the
    summary is provisional.
    """

    function: int
    replacement: FunctionReplacement
    paths: tuple[BoundedGraph, ...]
    assumptions: tuple[Assumption, ...]
    functions: tuple[SummarisedFunction, ...] = ()
    unmasking: tuple[int, ...] = ()
    unbounded: UnboundedLoop | None = None


@dataclass(frozen=True, slots=True)
class Summaries:
    """A program with summaries; ``solved`` and ``cut_off`` as in ``Prepared``, for all attempts."""

    program: Program
    found: tuple[FunctionSummary, ...]
    solved: bool
    cut_off: bool


class _Rejected(Enum):
    """The reason for which a function has no summary."""

    DEPENDS = "its behaviour depends on callers"
    TESTS = "callers have to see its tests for interrupts, or that it acknowledges one"


@dataclass(frozen=True, slots=True)
class Effort:
    """The proofs and the solutions of an attempt, as far as it is made."""

    bounds: list[LoopBound] = field(default_factory=list)
    solutions: list[IlpSolution] = field(default_factory=list)

    def cut_off(self, run: AnalysisRun) -> bool:
        """Whether the clock may have cut off one of them."""
        settled = all(map(run.store.is_settled, self.bounds))
        return not (settled and all(one.optimal for one in self.solutions))


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The summary of a function, or the reason why it has none; ``cut_off`` as in ``Prepared``."""

    found: FunctionSummary | _Rejected
    cut_off: bool = False


def shared_functions(code: AnalysisTarget, program: Program) -> Summaries:
    """``program`` with summaries of functions, callees first, if its inlining grows too large.

    Raises UnboundedLoop if loops prevent summaries, and inlining is too large without these. A
    first pass assumes one execution of such loops, so that the error names all of them. A survey
    collects these loops and goes on with the provisional summaries.
    """
    original, survey = code, code.run.loops
    refuse_unexpandable(program, code.address & ~1, code.run.image)  # before any work
    candidates, stacks = candidates_of(code, program), stacks_of(code, program)
    attempts: list[_Attempt] = []
    unbounded: list[UnboundedLoop] = []
    for function, callees in candidates.candidates():
        with code.stage("shared functions"):
            attempt = _of_call(as_called(code, function, stacks), callees)
        attempts.append(attempt)
        summary = attempt.found
        if isinstance(summary, _Rejected):
            if summary is _Rejected.TESTS:
                candidates.leave(function)
            continue
        candidates.replace_by(function, summary.replacement)
        if summary.unbounded is not None:
            unbounded.append(summary.unbounded)
            if survey is not None:
                survey.doubtful.append(summary.unbounded)
            code = _once(code, summary.unbounded)
    if not unbounded:
        return _summaries(candidates.program, attempts)
    loops = {one.addr for error in unbounded for one in error.missing}
    needed = candidates.exceeds_without(program, _holding(program, loops))
    if survey is not None:
        if needed:
            survey.ask(unbounded)
        return _summaries(candidates.program, attempts)
    if needed:
        raise all_unbounded(unbounded)
    bounded_ones = _bounded_functions(original, program, stacks)
    return replace(bounded_ones, cut_off=bounded_ones.cut_off or _cut_off(attempts))


def _summaries(program: Program, attempts: Sequence[_Attempt]) -> Summaries:
    """All summaries that these attempts have found."""
    found = tuple(one.found for one in attempts if isinstance(one.found, FunctionSummary))
    return Summaries(program, found, bool(attempts), _cut_off(attempts))


def _cut_off(attempts: Sequence[_Attempt]) -> bool:
    return any(one.cut_off for one in attempts)


def _once(code: AnalysisTarget, error: UnboundedLoop) -> AnalysisTarget:
    """``code`` under the assumption that the loops in ``error`` execute once."""
    run = code.run
    given = tuple(map(once, error.missing))
    located = locate(Facts(given), run.image)
    facts = replace(
        run.facts,
        facts=(*run.facts.facts, *given),
        places={**run.facts.places, **located.places},
    )
    return replace(code, run=replace(run, facts=facts))


def _holding(program: Program, addresses: Set[int]) -> set[int]:
    """The functions with a block at one of ``addresses``."""
    return {
        entry
        for entry, cfg in program.functions.items()
        if any(block.addr in addresses for block in cfg.blocks)
    }


def _bounded_functions(code: AnalysisTarget, program: Program, stacks: StackSpans) -> Summaries:
    """``program`` with summaries of the functions whose loops all have bounds."""
    candidates = candidates_of(code, program)
    attempts: list[_Attempt] = []
    for function, callees in candidates.candidates():
        with code.stage("shared functions"):
            attempt = _of_call(as_called(code, function, stacks), callees)
        summary = attempt.found
        if summary is _Rejected.TESTS:
            candidates.leave(function)
        elif isinstance(summary, FunctionSummary):
            if summary.unbounded is not None:
                attempt = _Attempt(_Rejected.DEPENDS, attempt.cut_off)
            else:
                candidates.replace_by(function, summary.replacement)
        attempts.append(attempt)
    return _summaries(candidates.program, attempts)


def candidates_of(code: AnalysisTarget, program: Program) -> SummaryCandidates:
    run = code.run
    return SummaryCandidates(program, code.address & ~1, run.facts, run.options.summary_settings)


def as_called(code: AnalysisTarget, function: int, stacks: StackSpans) -> AnalysisTarget:
    """``function`` as code that others call."""
    origin = replace(code.origin, arrival=Arrival.SUMMARY, stacks=stacks, masked=None)
    return replace(code, address=function, origin=origin)


def _of_call(code: AnalysisTarget, program: Program) -> _Attempt:
    """The attempt to summarise a function."""
    effort = Effort()
    found = _tried(code, program, effort)
    return _Attempt(found, effort.cut_off(code.run))


def _tried(code: AnalysisTarget, program: Program, effort: Effort) -> FunctionSummary | _Rejected:
    """The summary of a function; the reason if it has none. ``effort`` gets the work for it.

    Its behaviour depends on callers also if it stores into a stack whose place only they know: S4
    is not assumed there. If a loop has no bound, the summary is provisional: it names the loop, and
    its cycles are no bound. If no cycles are wanted, it is complete without bounds of loops.
    """
    run, function = code.run, code.address
    found = with_values(code, program)
    if found.changed or (found.first.retranslates and not fixes_callers(code)):
        return _Rejected.DEPENDS
    graph, values = found.graph, found.values
    valued = ValuedCode(code, graph, values)
    if acknowledges(valued) or any(one.assumes_pending for one in passed(graph)):
        return _Rejected.TESTS
    given_back = values.preserved_registers()
    if not given_back >= CALLEE_SAVED:
        return _Rejected.DEPENDS
    if len(divided(valued)) > 1:
        return _Rejected.TESTS
    names = (name for span in values.stored for name in run.image.memory.physical_aliases(*span))
    if may_unmask(values) or any(code.origin.stacks.surely_reach(*span) for span in names):
        return _Rejected.DEPENDS
    stores = program.left[function].stores
    part = undivided(graph)
    bounds = bounded(valued, [part]).bounds
    effort.bounds.extend(bounds)
    inside = BoundedGraph(graph, bounds)
    replacement = FunctionReplacement(
        None,
        False,
        None,
        given_back,
        settled=True,
        stores=stores,
        exits=path_ends(graph),
        written=written_by(values),
        result=returned_words(values),
    )
    assumptions = (
        *presupposed(values, run.image, run.platform, code.name, run.exits, ()),
        *(removed.fact for removed in graph.guidance.removed),
        *values.assumptions,
        *(rest for bound in bounds for rest in bound.assumed),
    )
    if not run.options.summary_settings.cycles:
        inside = replace(inside, stores=word_stores(values))
        return FunctionSummary(function, replacement, (inside,), assumptions)
    times = timed(valued, part, block_timer(run), data=False)
    charges = charged(valued, part, times, iterations(bounds))
    costs = with_branches(excluded_branches(values), graph, part, charges.costs)
    paths = PreparedPaths(None, graph, costs, bounds)
    surveyed = run.loops is not None  # of the bound, only its cycles matter then
    try:
        result = paths_result(run, code.name, function, paths, whole=False, with_path=not surveyed)
    except UnboundedLoop as error:
        if not error.missing:
            return _Rejected.DEPENDS
        return _provisional(function, replacement, error)
    except InfeasibleError:
        if not any(is_total(c.fact) for c in resolve_constraints(graph, run.facts)):
            raise
        return _Rejected.DEPENDS  # the fact is about the whole path: no path makes such a call
    effort.solutions.append(result.solution)
    if result.parametric is not None or any(b.bound is None for b in bounds):
        return _Rejected.DEPENDS

    def solved(
        costs: Costs, rows: tuple[ProvedRow, ...], more: tuple[Constraint, ...]
    ) -> IlpSolution:
        charged_paths = replace(paths, costs=costs)
        found = paths_result(
            run, code.name, function, charged_paths, whole=False, more=more, exclusions=rows
        )
        effort.solutions.append(found.solution)
        return found.solution

    decides = not surveyed and may_decide(program, function)
    classes = result_classes(values) if decides else ()
    limited = bounds_by_results(classes, result.constraints, costs, result.solution, solved)
    assumed = SUMMARISED.of(function=run.image.place(function), cycles=result.cycles)
    replacement = replace(
        replacement,
        cycles=result.cycles,
        fact=assumed,
        limited=tuple(cycles for cycles, _ in limited),
    )
    solutions = tuple((paths, solution) for _, solution in limited)
    return FunctionSummary(
        function,
        replacement,
        (inside,),
        (assumed, *assumptions, *costs.assumptions, *result.assumptions),
        (
            SummarisedFunction(
                function,
                paths,
                result.solution,
                solutions,
                limited=replacement.limited,
                classes=tuple(classes),
            ),
        ),
    )


def _provisional(
    function: int, replacement: FunctionReplacement, error: UnboundedLoop
) -> FunctionSummary:
    """The summary under which the callers of a function with unbounded loops are analysed."""
    assumed = SUMMARISED.of(function=f"{function:#x}", cycles=1)
    provisional = replace(replacement, cycles=1, fact=assumed)
    return FunctionSummary(function, provisional, (), (), unbounded=error)


def passed(graph: Supergraph) -> tuple[FunctionReplacement, ...]:
    """The functions that are called in ``graph`` and are outside of it."""
    callees = dict.fromkeys(callee for node in graph.nodes for callee in node.block.passes)
    return tuple(graph.guidance.replaced[callee] for callee in callees)


def acknowledges(valued: ValuedCode) -> bool:
    """Whether code, or a function outside of its graph, may acknowledge an interrupt."""
    replaced = any(one.tests or one.acknowledges for one in passed(valued.graph))
    pending = valued.code.run.platform.pending
    return replaced or bool(acknowledging_nodes(valued.values, pending).all)


def path_ends(graph: Supergraph) -> tuple[Insn, ...]:
    """The instructions at which paths end in a function or in the functions that it passes."""
    blocks = (graph.nodes[n].block for n in graph.exits)
    ends = {block.last: None for block in blocks if block.exits}
    for edge in range(len(graph.edges)):
        ends |= {end: None for replaced in graph.passed(edge) for end in replaced.exits}
    return tuple(ends)


def fixes_callers(code: AnalysisTarget) -> bool:
    """Whether a change of translations preserves code, data and stacks of all callers (rule 44).

    The platform must fix all loaded memory, and every stack of known place. A call forgets other
    memory, and S6 is listed for stacks of unknown place.
    """
    image = code.run.image
    memory = image.memory
    tops = {top for _, top in code.origin.stacks.spans}
    for pointers in code.run.facts.regions.pointers.values():
        exact = (p.known.exact for p in pointers if p.register == SP)
        tops.update(top for top in exact if top is not None)
    loaded = ((s.addr, s.addr + s.size - 1) for s in image.segments if s.size)
    return all(map(memory.fixes, loaded)) and all(memory.fixed(t - 1 & ADDRESS) for t in tops)


def context_switches(
    code: AnalysisTarget,
    program: Program,
    prepare: Prepare,
    follow: Follow,
    *,
    acknowledged: bool = False,
) -> Summaries:
    """``program`` with the cycles of the functions in it that switch contexts.

    Such a function is an entry of its own for ``prepare``, or for ``follow`` if no cycles are
    wanted; its path ends at its last transfer. In its callers the bound replaces the call (rule 2):
    a path may end in the function, or the function returns when the thread runs again, with unknown
    memory, caches and pipeline. So the bound of a caller covers both the path up to the switch and
    the path after the call. The same holds for the handler that an svc enters: it may leave to user
    mode, or return. ``acknowledged``: interrupts may be acknowledged before a call.
    """
    replaced = dict(program.guidance.replaced)
    blocks = [block for cfg in program.functions.values() for block in cfg.blocks]
    open_ = sorted({f for b in blocks for f in b.passes if replaced[f].cycles is None})
    if not open_:
        return _summaries(program, ())
    run = replace(code.run, image=code.run.image.starting_with(()))  # callers may store
    stacks = stacks_of(code, program)
    attempts: list[_Attempt] = []
    for called in open_:
        handler = replaced[called].handler
        function = called if handler is None else handler
        _refuse_in_itself(code, function, handler, program.entries)
        arrival = Arrival.SWITCH if handler is None else Arrival.HANDLER
        origin = PathOrigin(
            arrival,
            (*code.origin.switching, function),
            stacks,
            acknowledged=acknowledged or code.origin.acknowledged,
        )
        inside = AnalysisTarget(run, run.image.place(function), function, origin)
        if code.run.options.summary_settings.cycles:
            switch, cycles = _with_cycles(inside, prepare(inside))
            replaced[called] = replace(replaced[called], cycles=cycles)
        else:
            switch = follow(inside)
        summary = _of_switch(function, switch, replaced[called])
        replaced[called] = summary.replacement
        attempts.append(_Attempt(summary, switch.cut_off))
    guidance = replace(program.guidance, replaced=replaced)
    return _summaries(replace(program, guidance=guidance), attempts)


def _with_cycles(code: AnalysisTarget, prepared: Prepared) -> tuple[SwitchPaths, int]:
    """The paths of a function that switches contexts, and its bound."""
    found = [
        paths_result(code.run, code.name, code.address, paths, whole=False)
        for paths in prepared.paths
    ]
    if any(one.parametric is not None for one in found):
        raise UsageError(
            f"the bound of {code.name}, which stands in for its calls, depends on a parameter",
            hint="give the parameter a number: --set NAME=N",
        )
    graphs = tuple(BoundedGraph(paths.graph, paths.bounds) for paths in prepared.paths)
    assumptions = (*prepared.assumptions, *(a for one in found for a in one.assumptions))
    bounds = [bound for paths in prepared.paths for bound in paths.bounds]
    effort = Effort(bounds, [one.solution for one in found])
    cut_off = prepared.cut_off or effort.cut_off(code.run)
    switch = SwitchPaths(
        graphs,
        assumptions,
        prepared.unmasking,
        cut_off,
        prepared.assumes_pending,
        prepared.acknowledges,
    )
    return switch, max(one.cycles for one in found)


def _of_switch(function: int, switch: SwitchPaths, known: FunctionReplacement) -> FunctionSummary:
    """The summary of a function that switches contexts; ``known``: the one without ends."""
    nodes = [(p.graph, n) for p in switch.paths for n in p.graph.exits]
    replacement = replace(
        known,
        exits=tuple({graph.nodes[n].block.last: None for graph, n in nodes}),
        assumes_pending=switch.assumes_pending,
        acknowledges=switch.acknowledges,
    )
    return FunctionSummary(
        function, replacement, switch.paths, switch.assumptions, unmasking=switch.unmasking
    )


def _refuse_in_itself(
    code: AnalysisTarget, function: int, handler: int | None, entries: Sequence[int]
) -> None:
    """Raise ControlFlowError for a function whose bound would depend on itself."""
    place = code.run.image.place(function)
    if handler is not None and function in (*code.origin.switching, *entries):
        raise ControlFlowError(
            "an svc enters the handler that it is in",
            where=place,
            hint="state a number: every supervisor call takes at most N cycles; or end the path: "
            "path must end at every supervisor call",
        )
    if function in code.origin.switching:
        raise ControlFlowError(
            "functions that switch contexts call each other",
            where=place,
            hint="state it of the one that loads the stack pointer only",
        )


def stacks_of(code: AnalysisTarget, program: Program) -> StackSpans:
    """The stacks to which a program and the surrounding code switch."""
    return code.origin.stacks.joined(StackSpans.of_program(program, code.run.image))
