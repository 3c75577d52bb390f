"""The stages of one entry before its integer program, in their order, each a plain function.

    programmed    entry                -> Program               functions, depths of recursion
    with_values   Program              -> Supergraph, Values    each call in its context
    divided       Supergraph, Values   -> Segments              paths from each start
    bounded       Segments             -> LoopBounds            of all loops
    classified    Segment              -> Classification        hits and misses
    timed         Segment              -> TimedSegment          times of blocks, too
    charged       TimedSegment, LoopBounds -> Charges           cycles of nodes and edges

``wcet.analysis.preparation`` runs them for an entry, ``wcet.analysis.summaries`` for a function's
summary. Their input about the entry is ``AnalysisTarget``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, partial

from cache.classify import ClassifiedFetches
from cache.data_cache import DataAddresses
from cache.executed.access_trace import TracedCode
from cache.executed.counted_misses import with_misses
from cache.geometry import CacheHierarchy
from cache.locked import NOT_LOCKED
from cache.reference import CacheClassification
from cache.unlocked import UnlockedNodes
from cache.wrong_paths import constant_code
from loopbounds.bounds import bound_loops, bounds_by_counting
from loopbounds.counted_loops import by_counters, counter_limits
from loopbounds.execution.concrete import common_prefix, concrete_execution
from loopbounds.execution.counts import ExecutionCounts, ExecutionPrefix
from loopbounds.execution.loop_replay import NoReplay
from loopbounds.execution.together import executed_together
from loopbounds.followed_bounds import LoopProver, followed_bounds
from loopbounds.proof.bound import LoopBound
from loopbounds.recursion import find_depths, with_depths
from loopbounds.slicing.stacks import NO_STACKS, StackSpans
from pipeline.block_times import BlockTimer
from pipeline.charge import ChargedCosts, UndelayedTimes, charge, undelayed
from quoll.arm.exception_table import EnteredMode, entered_mode
from quoll.arm.status import names_a_stack
from quoll.assumptions import Assumption, stated
from quoll.cfg.call_graph import call_graph
from quoll.cfg.cfg import Program
from quoll.errors import FactsError, UsageError
from quoll.extraction.extract import extract
from quoll.facts.count_facts import LoopFact, LoopParameter
from quoll.facts.entry_invariants import InvariantFact, LocatedInvariant
from quoll.facts.guidance import PathStartFact
from quoll.facts.invariants import ListAtMostFact
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.inlining.context_cuts import guided_in_contexts
from quoll.inlining.expand import expand
from quoll.inlining.sharing import expansion
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet, meet
from quoll.preemption.pending import PendingTests, find_pending_tests
from quoll.preemption.segments import (
    PendingSegment,
    SegmentValues,
    from_calls,
    from_place,
    segments,
    undivided,
)
from quoll.value_analysis.bounded_addresses import BoundedAddresses
from quoll.value_analysis.inlined import InlinedValues, inlined
from quoll.value_analysis.narrowed_addresses import NarrowedAddresses
from quoll.value_analysis.status_words import check_status_words
from quoll.value_analysis.value_results import ValueResults
from wcet.analysis.entries import platform_entry
from wcet.analysis.interrupts import LATER, not_by_tests, serves_interrupts
from wcet.analysis.refusals import refuse_unmodelled
from wcet.analysis.run import AnalysisRun

__all__ = [
    "ENTRY",
    "LARGE",
    "AnalysisTarget",
    "Arrival",
    "BoundedLoops",
    "PathOrigin",
    "TimedSegment",
    "ValuedCode",
    "assumed_by_segments",
    "block_timer",
    "bounded",
    "charged",
    "classified",
    "contexts",
    "divided",
    "hierarchy_of",
    "invariants_at",
    "iterations",
    "mode_at_start",
    "of_segment",
    "programmed",
    "timed",
    "whole_graph",
    "with_bounds",
    "with_values",
]

LARGE = 1000  # nodes of a graph from which on worker processes pay


class Arrival(Enum):
    """The way in which control gets to the analysed code."""

    ENTRY = "executions start there"
    START = "paths start there, in the middle of executions"
    FUNCTION = "others call it: a function by itself, which need not come to an end of paths"
    SUMMARY = "others call it, and its bound stands for each call"
    SWITCH = "others call it, and it switches contexts"
    HANDLER = "an exception enters it, and it switches contexts"


@dataclass(frozen=True, slots=True)
class PathOrigin:
    """The way in which control gets to the analysed code, with the surrounding code.

    ``switching``: the functions that switch contexts and are being bounded, the outermost first.
    ``stacks``: the stacks to which the surrounding code switches. ``masked``: whether interrupts
    are masked at the first instruction; None if the entry decides. ``acknowledged``: surrounding
    code may have acknowledged the interrupt, so that tests may show none.
    """

    arrival: Arrival = Arrival.ENTRY
    switching: tuple[int, ...] = ()
    stacks: StackSpans = NO_STACKS
    masked: bool | None = None
    acknowledged: bool = False

    @property
    def enters(self) -> bool:
        """Whether executions start at the code: only these may refute a fact."""
        return self.arrival is Arrival.ENTRY

    @property
    def starts(self) -> bool:
        """Whether paths start at the code; otherwise other code calls it."""
        return self.arrival in (Arrival.ENTRY, Arrival.START)

    @property
    def called(self) -> bool:
        """Whether callers choose the arguments."""
        return self.arrival in (Arrival.FUNCTION, Arrival.SUMMARY)


ENTRY = PathOrigin()


@dataclass(frozen=True, slots=True)
class AnalysisTarget:
    """The code at ``address``, bit 0 set for Thumb code, which messages call ``name``."""

    run: AnalysisRun
    name: str
    address: int
    origin: PathOrigin = ENTRY

    def stage(self, stage: str) -> AbstractContextManager[None]:
        """Time the body as part of a stage."""
        return self.run.stages.stage(stage, self.name)


@dataclass(frozen=True)
class ValuedCode:
    """Code with its graph, without edges that values exclude, and the graph's values."""

    code: AnalysisTarget
    graph: Supergraph
    values: ValueResults

    @cached_property
    def unlocked(self) -> UnlockedNodes:
        """The nodes before which locked lines of the caches may be dropped."""
        return UnlockedNodes.of(self.graph)


@dataclass(frozen=True, slots=True)
class BoundedLoops:
    """The bound of each loop of a graph; ``execution``: counts of its executions, if known.

    ``prefix``: of all executions, if they start at the graph.
    """

    bounds: tuple[LoopBound, ...]
    execution: ExecutionCounts | None = None
    prefix: ExecutionPrefix | None = None


@dataclass(frozen=True, slots=True)
class TimedSegment:
    """The paths from one start, before loops are bounded; ``fetches``: a part of ``classes``.

    ``classes``: None if they are computed only with the bounds.
    """

    fetches: ClassifiedFetches
    classes: CacheClassification | None
    times: UndelayedTimes
    seconds: tuple[float, float]  # of the cache and the pipeline stage


def programmed(code: AnalysisTarget) -> Program:
    """The functions that the code reaches, as graphs, with their recursion depths."""
    programs = code.run.programs
    if programs is None:
        return _extracted(code)
    run = code.run
    read = tuple(fact for fact in run.facts.facts if fact.stage not in LATER)
    inputs = code.address, code.origin.enters, read, run.exits, run.image.identity
    for known, program in programs:
        if known == inputs:
            return program
    program = _extracted(code)
    programs.append((inputs, program))
    return program


def _extracted(code: AnalysisTarget) -> Program:
    run = code.run
    with code.stage("extract"):
        program = extract(run.image, [code.address], run.facts, run.exits)
    with code.stage("loop bounds"):
        depths = find_depths(
            program,
            code.address,
            run.image,
            run.facts,
            run.options.bounds,
            called=not code.origin.enters,
        )
        return with_depths(program, code.address, run.image, depths)


def with_values(code: AnalysisTarget, program: Program) -> InlinedValues:
    """``program`` in calling contexts, with values.

    Raises ControlFlowError where control may get to code that is on no path (rule 33), and
    TimingError for code that changes the presupposed state of the machine (rule 37).
    """
    run, origin = code.run, code.origin
    silent = origin.arrival is Arrival.SUMMARY  # the whole summary is one stage
    entered = mode_at_start(code, program)
    found = inlined(
        program,
        code.address,
        run.image,
        run.facts,
        vivu=run.options.vivu,
        accept=partial(
            refuse_unmodelled,
            image=run.image,
            core=run.platform.processor,
            force=run.options.force_core,
            stops=origin.arrival is not Arrival.FUNCTION,
        ),
        stage=(lambda stage: nullcontext()) if silent else code.stage,
        starts=origin.starts,
        masked=_masked_at_start(code),
        mode=None if entered is None else entered.mode,
        words=_words_at_start(code),
    )
    if not found.changed:
        found.values.environment.used.update(check_status_words(found.values, run.image))
    return found


def _masked_at_start(code: AnalysisTarget) -> bool | None:
    """Whether interrupts are masked at the first instruction; None if it is not known.

    Taking an exception masks them (B1.8.3).
    """
    origin = code.origin
    taken = origin.arrival is Arrival.ENTRY and code.name in code.run.platform.entries
    return True if taken else origin.masked


def mode_at_start(code: AnalysisTarget, program: Program) -> EnteredMode | None:
    """The mode in which an exception enters the code; None if it is not known, or does not matter.

    It matters where code stores to the stack of a mode that it names: whether that is its own.
    """
    if code.origin.arrival is not Arrival.ENTRY or code.address & ~1 in program.modes:
        return None
    blocks = (block for cfg in program.functions.values() for block in cfg.blocks)
    if not any(names_a_stack(insn) for block in blocks for insn in block.insns):
        return None
    return entered_mode(code.run.image, code.address)


def invariants_at(code: AnalysisTarget) -> tuple[LocatedInvariant, ...]:
    """The invariants that hold at the first instruction: all, if an exception enters there."""
    entries, image = code.run.platform.entries, code.run.image
    if not code.origin.enters or not code.run.facts.of(InvariantFact):
        return ()
    entered = (platform_entry(image, point) for point in entries.values())
    return code.run.facts.invariants if code.address in entered else ()


def _words_at_start(code: AnalysisTarget) -> dict[tuple[int, int], ValueSet]:
    """The values that invariants allow for words at the first instruction.

    Raises FactsError for two that exclude each other, and for one that is not so as loaded.
    """
    found: dict[tuple[int, int], ValueSet] = {}
    for one in invariants_at(code):
        _refuse_not_so(one, code.run.image)
        for word, known in one.ranges().items():
            allowed = known and meet(known, found.get(word, known))
            if allowed is None:
                raise FactsError(
                    f"no word at {code.run.image.place(word[0])} satisfies the invariants",
                    where=str(one.fact.source),
                )
            found[word] = allowed
    return found


def _refuse_not_so(invariant: LocatedInvariant, image: Image) -> None:
    """Raise FactsError if words that are as loaded when a path starts contradict an invariant."""
    fact = invariant.fact
    words = {w: image.at_start(invariant.address(w), w.size) for w in fact.predicate.words}
    known = {word: value for word, value in words.items() if value is not None}
    if len(known) == len(words) and not fact.predicate.holds(known.__getitem__):
        said = " and ".join(f"{word.place} is {value:#x}" for word, value in known.items())
        raise FactsError.contradicted(
            f"'{fact}' is not so: {said} when a path starts",
            about=fact.key,
            hint="correct the fact or remove it",
        )


def divided(valued: ValuedCode) -> list[PendingSegment]:
    """The segments of paths to be bounded: one, unless code tests for interrupts (rule 21).

    If functions with a summary contain tests, only these count: paths start at their calls, too.
    One segment as well if another function outside of the graph may acknowledge the interrupt: all
    paths are bounded then.
    """
    run, graph, values = valued.code.run, valued.graph, valued.values
    outside = graph.guidance.replaced.values()
    acknowledged = any(one.acknowledges for one in outside)
    if valued.code.origin.arrival is Arrival.FUNCTION or acknowledged:
        return [undivided(graph)]
    if any(one.tests for one in outside):
        return list(from_calls(graph, run.image))
    tests = pending_tests(valued)
    starts = from_place(graph, run.facts, run.image)
    if tests is None and not starts:
        return [undivided(graph)]
    if starts and tests is not None:
        raise UsageError(
            "'path starts at' is for code without tests for interrupts",
            hint="name the place with --entry",
        )
    if tests is None:
        return list(starts)
    return list(segments(values, tests, run.image))


def assumed_by_segments(
    run: AnalysisRun, parts: Sequence[PendingSegment]
) -> tuple[Assumption, ...]:
    """The assumptions about tests for interrupts, and the starts of paths that facts state."""
    moved = parts[0].start is not None  # set by a fact
    return (
        *(run.platform.pending_assumption() if len(parts) > 1 and not moved else ()),
        *(stated(fact) for fact in run.facts.of(PathStartFact) if moved),
        *(assumption for part in parts for one in part.counters for assumption in one.assumed),
    )


def pending_tests(valued: ValuedCode) -> PendingTests | None:
    """The tests that a pending interrupt decides; none on the interrupt path (rule 32)."""
    predicate = valued.code.run.platform.pending
    if not predicate.fields or valued.code.origin.acknowledged:
        return None
    serves = on_interrupt_path(valued)
    tests = find_pending_tests(
        valued.values, predicate, parallel=not serves and len(valued.graph.nodes) >= LARGE
    )
    return None if serves else tests


def on_interrupt_path(valued: ValuedCode) -> bool:
    """Whether the code is on the interrupt path."""
    run, graph = valued.code.run, valued.graph
    address = graph.nodes[graph.entry].block.addr
    return serves_interrupts(
        run.image, run.platform, run.facts, run.exits, address, run.interrupt_code
    )


def bounded(
    valued: ValuedCode,
    cut_segments: Sequence[PendingSegment],
    identity: Callable[[], str] | None = None,
) -> BoundedLoops:
    """The bounds of the loops in segments; other loops are not tried.

    ``identity``: the hash of the graph and its values, if another process computes it.
    """
    code, graph, values = valued.code, valued.graph, valued.values
    run, origin = code.run, code.origin
    whole = any(segment.graph.edges is graph.edges for segment in cut_segments)
    cached = _traced(valued) if whole and origin.starts else None
    execution = (
        concrete_execution(graph, run.image, values, run.facts, cached) if origin.starts else None
    )
    if execution is not None:
        bounds = bounds_by_counting(graph, run.image, run.facts, execution)
        if not whole:
            return BoundedLoops(bounds)
        prefix = ExecutionPrefix(execution.instructions, execution.edges, execution.assumed)
        return BoundedLoops(bounds, execution, prefix)
    limits = counter_limits(cut_segments)
    only = None if whole else frozenset(n for segment in cut_segments for n in segment.loops)
    prove = _prover(valued, frozenset(limits), identity)
    if graph.loops and not limits and followed(valued, whole=whole):
        follow = partial(executed_together, graph, run.image, values, cached=cached)
        limited = bool(run.facts.of(ListAtMostFact) or invariants_at(code))
        bounds, execution = followed_bounds(graph, follow, prove, only, facts_limit=limited)
    else:
        bounds, execution = prove(only), None
    reads = values.reading(run.platform.pending.registers) if whole and not origin.called else ()
    if reads and on_interrupt_path(valued):
        bounds, execution = not_by_tests(graph, reads, bounds), None
    counted = tuple(by_counters(run.image, one, limits) for one in bounds)
    begins = whole and origin.enters
    common = common_prefix(graph, run.image, values) if begins else None
    return BoundedLoops(counted, execution if whole else None, common)


def followed(valued: ValuedCode, *, whole: bool) -> bool:
    """Whether all executions of an entry are followed together, for its paths or parts of them.

    Facts and tests for interrupts may start paths inside executions.
    """
    run, origin = valued.code.run, valued.code.origin
    if not (origin.starts and without_counts(run.facts)) or run.facts.of(PathStartFact):
        return False
    return whole or not valued.values.reading(run.platform.pending.registers)


def _prover(
    valued: ValuedCode, counted: frozenset[int], identity: Callable[[], str] | None
) -> LoopProver:
    """Proves loops; ``counted`` ones have bounds. The others as for ``bounded``."""
    code, run, origin = valued.code, valued.code.run, valued.code.origin
    options = run.options.bounds

    def prove(only: frozenset[int] | None, *, lower: bool = False) -> tuple[LoopBound, ...]:
        return bound_loops(
            valued.graph,
            run.image,
            valued.values,
            run.facts,
            replace(options, budget=options.budget.to_lower) if lower else options,
            lambda done, of, place: run.stages.say(f"loop bounds: {done} of {of}: {place}"),
            only,
            counted=counted,
            called=origin.called,
            stacks=origin.stacks,
            identity=identity,
            replay=None if origin.enters else NoReplay(),
            invariants=invariants_at(code),
        )

    return prove


def _traced(valued: ValuedCode) -> TracedCode | None:
    """The instructions that concern the data cache, where its lines can be followed."""
    code = TracedCode(valued.graph, valued.values, valued.code.run.platform.hierarchy)
    return code if code.modelled else None


def without_counts(facts: Facts) -> bool:
    """Whether no fact counts executions of a loop."""
    return not any(isinstance(fact, LoopFact | LoopParameter) for fact in facts.facts)


def classified(valued: ValuedCode, part: PendingSegment) -> CacheClassification:
    """The class of each reference, before loops are bounded."""
    return _fetches(valued, part).with_data(SegmentValues(valued.values, part))


def _fetches(valued: ValuedCode, part: PendingSegment) -> ClassifiedFetches:
    values, code = SegmentValues(valued.values, part), constant_code(valued.code.run.image)
    return ClassifiedFetches.of(part.graph, values, hierarchy_of(valued, part), code)


def with_bounds(
    valued: ValuedCode,
    part: PendingSegment,
    classes: CacheClassification | None,
    rounds: Mapping[int, int],
    execution: ExecutionCounts | None = None,
    fetches: ClassifiedFetches | None = None,
) -> CacheClassification:
    """The classes when loops are bounded; ``rounds``: most executions of the headers of loops.

    Data is classified if ``classes`` is None, or if bounds or executions limit addresses.
    ``execution``: the counts of the executions of the entry, if known. ``fetches``: the part of
    ``classes`` that is not computed again, if known.
    """
    values = SegmentValues(valued.values, part)
    narrower = BoundedAddresses(part.graph, values, rounds)
    addresses: DataAddresses | None = narrower if narrower.gain else None
    whole = part.start is None and len(part.graph.nodes) == len(valued.graph.nodes)
    misses = execution.misses if whole and execution is not None else None
    if misses is not None and misses.addresses:
        addresses = NarrowedAddresses(narrower, misses.addresses)
    if classes is None or addresses is not None:
        classes = (fetches or _fetches(valued, part)).with_data(
            values if addresses is None else addresses
        )
    if execution is not None and misses is not None:
        classes = with_misses(classes, part.graph, misses, execution.edges)
        assumed = (*classes.assumptions, *execution.assumed)
        classes = replace(classes, assumptions=tuple(dict.fromkeys(assumed)))
    return classes.counted(rounds)


def timed(
    valued: ValuedCode, part: PendingSegment, timer: BlockTimer, *, data: bool = True
) -> TimedSegment:
    """The classes of references, and the times of blocks without references' cycles.

    Without ``data``, which pays where loops are bounded already, ``charged`` classifies data.
    """
    timing, hierarchy = valued.code.run.platform.timing, hierarchy_of(valued, part)
    start = time.perf_counter()
    values = SegmentValues(valued.values, part)
    fetches = _fetches(valued, part)
    classes = fetches.with_data(values) if data else None
    between = time.perf_counter()
    times = undelayed(part.graph, values, hierarchy, timing, timer, fetches.flow)
    return TimedSegment(fetches, classes, times, (between - start, time.perf_counter() - between))


def charged(
    valued: ValuedCode,
    part: PendingSegment,
    known: TimedSegment,
    rounds: Mapping[int, int],
    execution: ExecutionCounts | None = None,
) -> ChargedCosts:
    """The cycles of nodes and edges; ``rounds`` and ``execution`` as for ``with_bounds``."""
    code = valued.code
    arrival, entries = code.origin.arrival, code.run.platform.entries
    called = arrival is Arrival.SUMMARY and part.start is None
    return charge(
        part.graph,
        with_bounds(valued, part, known.classes, rounds, execution, known.fetches),
        SegmentValues(valued.values, part),
        hierarchy_of(valued, part),
        code.run.platform.timing,
        exception=part.start is None and (arrival is Arrival.HANDLER or code.name in entries),
        called=called,
        known=known.times,
    )


def block_timer(run: AnalysisRun) -> BlockTimer:
    """The times of blocks on the platform, each computed once for all segments."""
    return BlockTimer(run.platform.timing, aligned=run.platform.hierarchy.aligned)


def hierarchy_of(valued: ValuedCode, part: PendingSegment) -> CacheHierarchy:
    """The caches at the start of a segment: known at an entry, unknown elsewhere.

    Locked lines are still there elsewhere if no code before the start may drop them. Before the
    code of a summary, callers may.
    """
    code = valued.code
    known = code.run.platform.hierarchy
    if code.origin.starts and part.start is None:
        return known
    anywhere = known.from_anywhere
    if not (known.locked_i or known.locked_d):
        return anywhere
    if part.start is None or not code.origin.starts:
        return replace(anywhere, locked_i=NOT_LOCKED, locked_d=NOT_LOCKED)
    return valued.unlocked.before(anywhere, part.start)


def iterations(bounds: Sequence[LoopBound]) -> dict[int, int]:
    """By bounded loop, the most executions of its header per entry."""
    found: dict[int, int] = {}
    for b in bounds:
        if b.bound is not None:
            found[b.loop] = min(b.bound, found.get(b.loop, b.bound))
    return found


def of_segment(segment: PendingSegment, bounds: Sequence[LoopBound]) -> tuple[LoopBound, ...]:
    """The bounds of a segment's loops, under the segment's indices."""
    known = {b.loop: b for b in bounds}
    return tuple(
        replace(known[old], loop=new) for new, old in enumerate(segment.loops) if old in known
    )


def whole_graph(run: AnalysisRun, address: int) -> Supergraph:
    """The graph of every path from an entry that facts do not exclude, before value analysis."""
    program = programmed(AnalysisTarget(run, run.image.place(address & ~1), address))
    graph = expand(program, address, run.image, run.options.vivu)
    return guided_in_contexts(graph, run.image, run.facts)


def contexts(run: AnalysisRun, address: int) -> int:
    """The number of contexts of the full inlining of an entry, without recursion."""
    program = extract(run.image, [address], run.facts, run.exits)
    return expansion(call_graph(program), address).total()
