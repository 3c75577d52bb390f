"""An entry before its integer programs: the stages in their order, and summaries of functions.

    valued    entry       -> ValuedEntry   graph, values, and their assumptions
    prepared  ValuedEntry -> Prepared      segments, loop bounds, costs
    prepare   both

``wcet.analysis.entry_stages`` has the single stages. Every command that follows paths gets its
values from here, so that all commands refuse and assume the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from loopbounds.least_call import refuse_too_short
from loopbounds.places import refuse_bare_offsets
from pipeline.core import issue_width
from quoll.assumptions import RESTORES_MODE, VECTOR_MODE, Assumption, stated
from quoll.cfg.cfg import Program
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.listing.never_returns import never_returning
from quoll.preemption.masks import may_unmask
from quoll.preemption.segments import PendingSegment, undivided
from quoll.value_analysis.exception_returns import refuse_returns_to_code
from quoll.value_analysis.restored_modes import unproved_modes
from quoll.value_analysis.value_results import ValueResults
from wcet.analysis.entry_stages import (
    AnalysisTarget,
    BoundedLoops,
    ValuedCode,
    assumed_by_segments,
    bounded,
    divided,
    invariants_at,
    mode_at_start,
    programmed,
    with_values,
)
from wcet.analysis.preemptible_functions import preemptible_functions, tests_once
from wcet.analysis.prepared import InfeasibleEdge, Prepared, SummarisedFunction
from wcet.analysis.presupposed import needed_of_core, presupposed, without_f1
from wcet.analysis.raw_memory import starting
from wcet.analysis.refusals import refuse_unaligned, refuse_untimed
from wcet.analysis.schedule import costing, identified
from wcet.analysis.summaries import (
    BoundedGraph,
    FunctionSummary,
    Summaries,
    SwitchPaths,
    acknowledges,
    candidates_of,
    context_switches,
    passed,
    shared_functions,
)

__all__ = [
    "ValuedEntry",
    "assumed_by",
    "infeasible_edges",
    "prepare",
    "prepared",
    "valued",
]


@dataclass(frozen=True, slots=True)
class ValuedEntry(ValuedCode):
    """An entry with values: its graph without the edges that values exclude.

    The image of ``code`` is the run's image, without constants that the entry changes.
    """

    infeasible: tuple[InfeasibleEdge, ...]
    assumptions: tuple[Assumption, ...]
    unmasking: tuple[int, ...]  # instructions after which interrupts may be unmasked
    summaries: tuple[FunctionSummary, ...]
    never_returning: tuple[str, ...]  # functions, each with its evidence
    solved: bool  # this and the next as in ``Prepared``
    cut_off: bool

    @property
    def shared(self) -> tuple[SummarisedFunction, ...]:
        """The functions with a summary, callees first."""
        return tuple(found for one in self.summaries for found in one.functions)


def valued(
    code: AnalysisTarget, *, preemptible: bool = False, acknowledged: bool = False
) -> ValuedEntry:
    """The stages from the binary to values.

    They start again if stores change bytes that were assumed constant. ``preemptible``: functions
    with tests for interrupts may have a summary, too; it replaces the tests that are in them.
    ``acknowledged``: functions that switch contexts may be called behind an access that
    acknowledges an interrupt.
    """
    while True:
        code, as_loaded = _started(code)
        reached = programmed(code)
        refuse_bare_offsets(reached, code.run.image, code.run.facts)
        switches = context_switches(code, reached, prepare, _followed, acknowledged=acknowledged)
        shared = shared_functions(code, switches.program)
        tested = Summaries(shared.program, (), solved=False, cut_off=False)
        if preemptible and candidates_of(code, switches.program).too_large:
            tested = preemptible_functions(code, shared.program)
        program = tested.program
        found = with_values(code, program)
        image = found.read_again(code.run.image)
        if image is code.run.image:
            break
        code = replace(code, run=replace(code.run, image=image))
    run, graph, values = code.run, found.graph, found.values
    if not tests_once(values, run.platform.pending):
        return valued(code, acknowledged=acknowledged or not tested.found)
    refuse_returns_to_code(graph, run.image, values, run.facts, run.exits)
    if run.platform.hierarchy.aligned:
        refuse_unaligned(values, run.image)
    summaries = (*shared.found, *tested.found, *switches.found)
    _refuse_too_short(code, (graph, *(p.graph for one in summaries for p in one.paths)))
    unmasking = {*may_unmask(values), *(a for one in summaries for a in one.unmasking)}
    unmasking |= {code.address & ~1} & run.facts.regions.unmasked.keys()
    assumptions = (
        *run.platform.assumptions,
        *presupposed(
            values, run.image, run.platform, code.name, run.exits, tuple(sorted(unmasking))
        ),
        *needed_of_core(graph, run.image, run.platform),
        *without_f1(_unproved(program, values, run.image), found.plain),
        *(removed.fact for removed in graph.guidance.removed),
        *values.assumptions,
        *run.facts.regions.assumptions,
        *(stated(one.fact) for one in invariants_at(code)),
        *as_loaded,
        *_entered(code, program),
        *dict.fromkeys(assumption for one in summaries for assumption in one.assumptions),
    )
    return ValuedEntry(
        code,
        graph,
        values,
        infeasible_edges(found.plain, found.first),
        assumptions,
        tuple(sorted(unmasking)),
        summaries,
        never_returning(reached, run.image),
        switches.solved or shared.solved or tested.solved,
        switches.cut_off or shared.cut_off or tested.cut_off,
    )


def _entered(code: AnalysisTarget, program: Program) -> list[Assumption]:
    """The assumption by which the mode at the entry is known, if it matters."""
    entered, place = mode_at_start(code, program), code.run.image.place
    if entered is None:
        return []
    function, vector = place(code.address & ~1), place(entered.vector)
    return [VECTOR_MODE.of(function=function, vector=vector, mode=f"{entered.mode:#x}")]


def _unproved(program: Program, values: ValueResults, image: Image) -> list[Assumption]:
    """The assumptions of ``program`` that the values of its graph do not prove."""
    restoring = program.restoring - unproved_modes(values, program, image)
    proved = {RESTORES_MODE.of(function=image.place(function)) for function in restoring}
    return [assumption for assumption in program.assumptions if assumption not in proved]


def _started(code: AnalysisTarget) -> tuple[AnalysisTarget, tuple[Assumption, ...]]:
    """``code`` with memory as loaded at the start of its paths, and the assumptions about that."""
    run = code.run
    if not code.origin.starts:
        return code, ()
    image, assumed = starting(
        run.image,
        code.name,
        code.address,
        run.facts.regions,
        from_reset=run.options.loaded_memory.from_reset,
    )
    if image.as_loaded == run.image.as_loaded:
        return code, assumed
    return replace(code, run=replace(run, image=image)), assumed


def _refuse_too_short(code: AnalysisTarget, graphs: Iterable[Supergraph]) -> None:
    """Raise FactsError for a call that surely takes longer than the fact that replaces it says."""
    run = code.run
    called = {callee for graph in graphs for node in graph.nodes for callee in node.block.passes}
    if called:
        width = issue_width(run.platform.timing)
        refuse_too_short(called, run.image, run.facts, run.exits, width)


def _followed(code: AnalysisTarget) -> SwitchPaths:
    """The paths of a function that switches contexts, without cycles."""
    entry = valued(code)
    with code.stage("loop bounds"):
        found = bounded(entry, [undivided(entry.graph)])
    inside = BoundedGraph(entry.graph, found.bounds)
    of_loops = (assumption for bound in found.bounds for assumption in bound.assumed)
    cut_off = entry.cut_off or not all(map(code.run.store.is_final, found.bounds))
    return SwitchPaths(
        (inside,),
        (*entry.assumptions, *of_loops),
        entry.unmasking,
        cut_off,
        acknowledges=acknowledges(entry),
    )


def prepare(code: AnalysisTarget) -> Prepared:
    """All stages before the integer program."""
    return prepared(valued(code))


def prepared(entry: ValuedEntry) -> Prepared:
    """The stages after value analysis."""
    code = entry.code
    with identified(entry) as identity:
        with code.stage("values"):
            refuse_untimed(entry.graph, code.run.image, code.run.platform)
            parts = divided(entry)
        with costing(entry, parts) as costs:
            with code.stage("loop bounds"):
                loops = bounded(entry, parts, identity.result)
            paths = costs(loops)
    of_costs = (assumption for of in paths for assumption in of.costs.assumptions)
    assumptions = (*assumed_by(entry, parts, loops), *of_costs)
    return Prepared(
        tuple(paths),
        entry.infeasible,
        tuple(dict.fromkeys(assumptions)),
        entry.shared,
        entry.unmasking,
        entry.never_returning,
        entry.solved,
        entry.cut_off,
        assumes_pending=_assumes_pending(entry, parts),
        acknowledges=acknowledges(entry),
    )


def _assumes_pending(entry: ValuedEntry, parts: Sequence[PendingSegment]) -> bool:
    """Whether tests on the paths, or in functions that are passed, see a pending interrupt."""
    first = parts[0]
    by_tests = first.start is None and first.graph is not entry.graph
    return by_tests or any(one.tests or one.assumes_pending for one in passed(entry.graph))


def assumed_by(
    entry: ValuedEntry, parts: Sequence[PendingSegment], loops: BoundedLoops
) -> tuple[Assumption, ...]:
    """The assumptions of an entry's values, segments and loop bounds."""
    return (
        *entry.assumptions,
        *assumed_by_segments(entry.code.run, parts),
        *(assumption for bound in loops.bounds for assumption in bound.assumed),
    )


def infeasible_edges(graph: Supergraph, values: ValueResults) -> tuple[InfeasibleEdge, ...]:
    """The dead edges out of reached nodes, each with the value that decides."""
    return tuple(
        InfeasibleEdge(
            graph.nodes[edge.src].block.last.addr,
            graph.nodes[edge.dst].block.addr,
            graph.nodes[edge.src].context,
            values.explain(index),
        )
        for index in sorted(values.dead_edges)
        if values.reached((edge := graph.edges[index]).src)
    )
