"""The stages before the integer program: what ``wcet.analysis.analyse`` keeps of each entry.

Program -> Supergraph -> Values -> Segments -> Classification -> Costs, and LoopBounds
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from cache.classify import classify
from cache.geometry import Hierarchy
from cache.maintenance import invalidates_global, refused
from cache.reference import Classification
from loopbounds.bounds import bound_loops, bounds_by_counting
from loopbounds.execution.concrete import concrete_execution
from loopbounds.execution.counts import ExecutionCounts
from loopbounds.execution.replay import NoReplay
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.keys import graph_identity
from loopbounds.recursion import find_depths, with_depths
from loopbounds.slicing.stacks import NO_STACKS, StackSpans
from pipeline.block_times import BlockTimer
from pipeline.charge import Undelayed, charge, undelayed
from pipeline.core import load_core
from pipeline.costs import Costs
from pipeline.demand import demand
from quoll.arm.insn import SP, Access, Flow, Insn
from quoll.assumptions import (
    ABORTS,
    ENDS,
    F1,
    FAST_INTERRUPTS,
    MACHINE,
    NOT_MASKED,
    RETURNS_UNMASKED,
    S6,
    SHARED,
    TLB_REFILLED,
    UNMASKED,
    Assumption,
    stated,
)
from quoll.cfg.call_graph import call_graph
from quoll.cfg.cfg import Program
from quoll.errors import ControlFlowError, Missing, MissingKind, TimingError, UsageError
from quoll.extraction.extract import extract
from quoll.facts import PathStart
from quoll.facts.applied import CALLEE_SAVED, Replacement
from quoll.image.image import Image
from quoll.inlining.context_cuts import guided_in_contexts
from quoll.inlining.expand import expand, refuse_stops
from quoll.inlining.sharing import Modules, expansion
from quoll.inlining.supergraph import Supergraph
from quoll.listing.never_returns import never_returning
from quoll.preemption.masks import may_unmask
from quoll.preemption.pending import PendingTests, find_pending_tests
from quoll.preemption.segments import Segment, SegmentValues, from_place, segments, undivided
from quoll.processes.futures import Future, submit
from quoll.processes.parallel_map import two_step_map
from quoll.values.exception_returns import refuse_returns_to_code
from quoll.values.inlined import Inlined, inlined
from quoll.values.status_words import check_status_words
from quoll.values.values import Values
from wcet.analysis.executable import needed_of_core, refuse_lacking
from wcet.analysis.interrupts import not_by_tests, serves_interrupts
from wcet.analysis.prepared import InfeasibleEdge, Prepared, PreparedPaths, SharedFunction
from wcet.analysis.raw_memory import starting
from wcet.analysis.run import Run
from wcet.platforms.platform import Platform
from wcet.platforms.processor import Processor

__all__ = ["Preparation", "Valued", "refuse_unmodelled"]

WORD = 4  # bytes
ADDRESS = 0xFFFFFFFF
NAMED = 4  # instructions in an error, beside the first
REPLACED = "function PLACE takes at most {} cycles"
SPREAD = 1000  # nodes of all starts of paths, from which on they are worth another process


@dataclass(frozen=True, slots=True)
class Valued:
    """An entry with values: its graph without the edges that they exclude.

    ``image`` is that of the run, less constants that the entry changes.
    """

    image: Image
    graph: Supergraph
    values: Values
    infeasible: tuple[InfeasibleEdge, ...]
    assumptions: tuple[Assumption, ...]
    unmasking: tuple[int, ...]  # instructions after which interrupts may be unmasked
    shared: tuple[SharedFunction, ...]
    never_returning: tuple[str, ...]  # functions, each with what says so


@dataclass(frozen=True, slots=True)
class Once:
    """What one call of a function takes at most, whoever calls it, and what that assumes."""

    replacement: Replacement
    assumptions: tuple[Assumption, ...]
    function: SharedFunction


@dataclass(frozen=True, slots=True)
class Switch:
    """What a function that switches contexts assumes, and where it may unmask interrupts."""

    assumptions: tuple[Assumption, ...]
    unmasking: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Uncounted:
    """What is known of the paths from one start before it is known how often loops are repeated."""

    classes: Classification
    times: Undelayed
    seconds: tuple[float, float]  # of the cache and the pipeline stage


@dataclass(frozen=True, slots=True)
class Costed:
    """Costs of the paths from one start, what they assume, and how long that took."""

    costs: Costs
    assumptions: tuple[Assumption, ...]
    seconds: tuple[float, float]  # of the cache and the pipeline stage


Costing = Callable[[Sequence[Mapping[int, int]]], list[Costed]]  # of the rounds of loops, by start


@dataclass(frozen=True, slots=True)
class Preparation:
    """The stages of one run, for any of its entries.

    ``switching``: the functions that switch contexts and are being bounded, the outermost first,
    handlers of supervisor calls among them. ``taken``: the last of them is one. ``stacks``: those
    that the code around what is prepared switches to. ``entered``: paths do start at what is asked
    for, so that an execution from there may refute a fact.
    """

    run: Run
    switching: tuple[int, ...] = ()
    taken: bool = False
    stacks: StackSpans = NO_STACKS
    entered: bool = True

    @property
    def starts(self) -> bool:
        """Whether paths start at what is prepared; else it is a function that is called."""
        return not self.switching

    @property
    def enters(self) -> bool:
        """Whether executions start at what is prepared: only these may refute a fact."""
        return self.entered and self.starts

    def whole_graph(self, address: int) -> Supergraph:
        """Every path from an entry that facts do not exclude, whatever values decide."""
        program = extract(self.run.image, [address], self.run.facts, self.run.ends)
        return guided_in_contexts(
            expand(
                self.with_depths(program, address), address, self.run.image, self.run.options.vivu
            ),
            self.run.image,
            self.run.facts,
        )

    def contexts(self, address: int) -> int:
        """Contexts of the full inlining of an entry, recursion not followed."""
        program = extract(self.run.image, [address], self.run.facts, self.run.ends)
        return expansion(call_graph(program), address).total()

    def with_depths(self, program: Program, address: int) -> Program:
        """``program`` with how deep its recursion goes, if it has any."""
        run = self.run
        depths = find_depths(
            program, address, run.image, run.facts, run.options.bounds, called=not self.enters
        )
        return with_depths(program, address, run.image, depths)

    def valued(self, name: str, address: int) -> Valued:
        """The stages from the binary to values, for one entry.

        Once more from the start where stores change what was taken for constant.
        """
        started, as_loaded = self.starting(name, address)
        if started is not self:
            return started.valued(name, address)
        stage = self.run.stages.stage
        with stage("extract", name):
            program = extract(self.run.image, [address], self.run.facts, self.run.ends)
        never = never_returning(program, self.run.image)
        with stage("loop bounds", name):
            program = self.with_depths(program, address)
        program, switched = self.with_switches(name, program)
        program, shared = self.shared(name, program, address)
        of_shared = dict.fromkeys(text for once in shared for text in once.assumptions)
        of_shared |= dict.fromkeys(text for one in switched for text in one.assumptions)
        found = self.inlined(program, address, lambda what: stage(what, name), starts=self.starts)
        changed = found.read_again(self.run.image)
        if changed is not self.run.image:
            return replace(self, run=replace(self.run, image=changed)).valued(name, address)
        graph, values = found.graph, found.values
        run = self.run
        refuse_returns_to_code(graph, run.image, values, run.facts, run.ends)
        if run.platform.hierarchy.aligned:
            refuse_unaligned(values, run.image)
        infeasible = infeasible_edges(found.plain, found.first)
        unmasking = tuple(
            sorted({*may_unmask(values), *(a for s in switched for a in s.unmasking)})
        )
        assumptions = (
            *run.platform.assumptions,
            *presupposed(graph, run.image, run.platform, name, run.ends, unmasking),
            *needed_of_core(
                (insn for _, insn in sorted(instructions(graph).items())),
                run.image,
                run.platform.name,
                run.platform.processor,
            ),
            *without_f1(program.assumptions, found.plain),
            *(removed.fact for removed in graph.guidance.removed),
            *values.assumptions,
            *self.run.regions.assumptions,
            *as_loaded,
            *of_shared,
        )
        functions = tuple(once.function for once in shared)
        return Valued(
            self.run.image, graph, values, infeasible, assumptions, unmasking, functions, never
        )

    def starting(self, name: str, address: int) -> tuple[Preparation, tuple[Assumption, ...]]:
        """The same where memory is as loaded when paths of an entry start, and what that assumes.

        Itself if that is said of no memory, or known to it.
        """
        run = self.run
        if not self.starts:
            return self, ()
        image, assumed = starting(
            run.image, name, address, run.regions, from_reset=run.options.extra.from_reset
        )
        known = image.as_loaded == run.image.as_loaded
        return self if known else replace(self, run=replace(run, image=image)), assumed

    def with_switches(self, name: str, program: Program) -> tuple[Program, list[Switch]]:
        """``program`` with the cycles of the functions in it that switch contexts.

        Such a function is an entry of its own, at whose last transfer the path ends. To its callers
        it is replaced by its bound (rule 2): a path may end in it, or it comes back when the thread
        runs again, with unknown memory, caches and pipeline. So the bound of a caller covers both
        the path up to the switch and the one from behind its call. The same holds of the handler
        that an svc enters: it may leave to a user, or come back.
        """
        replaced = dict(program.guidance.replaced)
        blocks = [block for cfg in program.functions.values() for block in cfg.blocks]
        switches: list[Switch] = []
        image = self.run.image.starting_with(())  # callers have stored into memory before
        for called in sorted({f for b in blocks for f in b.passes if replaced[f].cycles is None}):
            handler = replaced[called].handler
            function = called if handler is None else handler
            place = self.run.image.place(function)
            self._refuse_in_itself(function, handler, program.entries)
            run = replace(self.run, image=image)
            inside = Preparation(
                run,
                (*self.switching, function),
                taken=handler is not None,
                stacks=self.stacks_of(program),
            )
            valued, prepared = inside.valued(place, function), inside.prepare(place, function)
            found = [self.run.solve(place, function, p, [], whole=False) for p in prepared.paths]
            if any(one.parametric is not None for one in found):
                raise UsageError(
                    f"the bound of {place}, which stands in for its calls, depends on a parameter",
                    hint="give the parameter a number: --set NAME=N",
                )
            nodes = [(p.graph, n) for p in prepared.paths for n in p.graph.exits]
            replaced[called] = replace(
                replaced[called],
                cycles=max(one.cycles for one in found),
                ends=tuple({graph.nodes[n].block.last: None for graph, n in nodes}),
            )
            texts = (*prepared.assumptions, *(text for one in found for text in one.assumptions))
            switches.append(Switch(texts, valued.unmasking))
        guidance = replace(program.guidance, replaced=replaced)
        return (replace(program, guidance=guidance) if switches else program), switches

    def _refuse_in_itself(self, function: int, handler: int | None, entries: Sequence[int]) -> None:
        """Raise ControlFlowError for a bound that would be made of itself."""
        if handler is not None and function in (*self.switching, *entries):
            raise ControlFlowError(
                "an svc enters the handler that it is in",
                where=self.run.image.place(function),
                hint="state a number: every supervisor call takes at most N cycles; or that what "
                "follows is another path: path must end at every supervisor call",
            )
        if function in self.switching:
            raise ControlFlowError(
                "functions that switch contexts call each other",
                where=self.run.image.place(function),
                hint="state it of the one that loads the stack pointer only",
            )

    def inlined(
        self,
        program: Program,
        address: int,
        stage: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
        *,
        starts: bool = False,
    ) -> Inlined:
        """``program`` from ``address`` on, in calling contexts, with values.

        ``starts``: the paths of an entry start there, not calls of a function.

        Raises ControlFlowError where control may get to what is on no path (rule 33), and
        TimingError for code that changes what is presupposed of the machine (rule 37).
        """
        run = self.run
        found = inlined(
            program,
            address,
            run.image,
            run.facts,
            run.regions,
            vivu=run.options.vivu,
            accept=partial(
                refuse_unmodelled,
                image=run.image,
                processor=run.platform.processor,
                force=run.options.force_core,
            ),
            stage=stage,
            starts=starts,
        )
        if not found.changed:
            found.values.environment.used.update(check_status_words(found.values, run.image))
        return found

    def shared(self, name: str, program: Program, address: int) -> tuple[Program, tuple[Once, ...]]:
        """``program`` with bounds in place of functions where inlining grows too large."""
        modules = Modules(
            program, address & ~1, self.run.image, self.run.facts, self.run.options.sharing
        )
        done: list[Once] = []
        inside = self
        for function, part in modules.candidates():
            with self.run.stages.stage("shared functions", name):
                if inside is self:
                    inside = replace(self, stacks=self.stacks_of(program))
                found = inside.once(name, part, function)
            if found is not None:
                modules.replace_by(function, found.replacement)
                done.append(found)
        return modules.program, tuple(done)

    def once(self, name: str, program: Program, function: int) -> Once | None:
        """The bound of one call of a function, whoever calls it; None if its callers decide.

        Also where it stores into a stack that only they know the place of: S4 is not assumed there.
        """
        found = self.inlined(program, function)
        if found.changed or (found.first.retranslates and not self.fixes_callers()):
            return None
        graph, values = found.graph, found.values
        given_back = values.given_back()
        if not given_back >= CALLEE_SAVED or len(self.segments(graph, values)) > 1:
            return None
        names = (name for span in values.stored for name in self.run.image.memory.images(*span))
        if may_unmask(values) or any(self.stacks.surely_reach(*span) for span in names):
            return None
        bounds = self.loop_bounds(graph, values, called=True)
        if any(b.bound is None for b in bounds):
            return None
        platform, run = self.run.platform, self.run
        hierarchy = platform.hierarchy.from_anywhere
        classes = classify(graph, values, hierarchy).counted(rounds_of(bounds))
        charges = charge(graph, classes, values, hierarchy, platform.timing, called=True)
        paths = PreparedPaths(None, graph, charges.costs, bounds)
        result = self.run.solve(name, function, paths, [], whole=False)
        if result.parametric is not None:
            return None
        place = self.run.image.place(function)
        assumed = SHARED.of(function=place, cycles=result.cycles)
        assumptions = (
            assumed,
            *presupposed(graph, run.image, platform, name, run.ends, ()),
            *(removed.fact for removed in graph.guidance.removed),
            *values.assumptions,
            *(rest for bound in bounds for rest in bound.rests),
            *classes.assumptions,
            *result.assumptions,
        )
        blocks = (graph.nodes[n].block for n in graph.exits)
        ends = {block.last: None for block in blocks if block.exits}
        for edge in range(len(graph.edges)):
            ends |= {end: None for replaced in graph.passed(edge) for end in replaced.ends}
        replacement = Replacement(
            result.cycles, False, assumed, given_back, settled=True, ends=tuple(ends)
        )
        return Once(replacement, assumptions, SharedFunction(function, paths, result.solution))

    def fixes_callers(self) -> bool:
        """Whether a change of translations leaves code, data and stacks of all callers (rule 44).

        The platform has to fix all that is loaded, and every stack whose place is known. A call
        forgets other memory, and S6 is listed of stacks whose place is not known.
        """
        image, memory = self.run.image, self.run.image.memory
        tops = {top for _, top in self.stacks.spans}
        for pointers in self.run.regions.pointers.values():
            exact = (p.known.exact for p in pointers if p.register == SP)
            tops.update(top for top in exact if top is not None)
        loaded = ((s.addr, s.addr + s.size - 1) for s in image.segments if s.size)
        return all(map(memory.fixes, loaded)) and all(memory.fixed(t - 1 & ADDRESS) for t in tops)

    def stacks_of(self, program: Program) -> StackSpans:
        """Those that a program, and the code around it, switch to."""
        return self.stacks.joined(StackSpans.of_program(program, self.run.image))

    def loop_bounds(
        self,
        graph: Supergraph,
        values: Values,
        only: frozenset[int] | None = None,
        *,
        called: bool = False,
        identity: Callable[[], str] | None = None,
    ) -> tuple[LoopBound, ...]:
        """The bounds of all loops, or of those asked for, with the options of this run."""
        run = self.run
        asked = run.options.bounds
        return bound_loops(
            graph,
            run.image,
            values,
            run.facts,
            asked,
            self.progress,
            only,
            called=called,
            stacks=self.stacks,
            identity=identity,
            replay=None if self.enters and not called else NoReplay(),
        )

    def prepare(self, name: str, address: int) -> Prepared:
        """The stages before the integer program, for one entry."""
        valued = self.valued(name, address)
        if valued.image is not self.run.image:
            changed = replace(self.run, image=valued.image)
            return replace(self, run=changed).prepare(name, address)
        graph, values = valued.graph, valued.values
        with self.identified(graph, values) as identity:
            with self.run.stages.stage("values", name):
                refuse_untimed(graph, self.run.image, self.run.platform)
                parts = self.segments(graph, values)
            with self.costing(parts, values, name) as costs:
                return self.bounded(name, valued, parts, costs, identity.result)

    def identified(self, graph: Supergraph, values: Values) -> Future[str]:
        """What loop bounds are kept under: in another process, where it pays. To be called once."""
        find = partial(graph_identity, graph, self.run.image, values)
        pays = self.run.options.bounds.store.keeps and len(graph.nodes) >= SPREAD
        return submit(find, worth=pays and not graph.merged)

    def bounded(
        self,
        name: str,
        valued: Valued,
        parts: Sequence[Segment],
        costs: Costing,
        identity: Callable[[], str],
    ) -> Prepared:
        """The same from the values on."""
        graph, values = valued.graph, valued.values
        with self.run.stages.stage("loop bounds", name):
            moved = parts[0].start is not None  # by a fact
            turning = frozenset(loop for part in parts for loop in part.loops)
            only = None if parts[0].graph is graph else turning
            run, execution = self.run, None
            if only is None and self.starts:
                execution = concrete_execution(graph, run.image, values, run.facts)
            if execution is None:
                bounds = self.loop_bounds(graph, values, only, identity=identity)
            else:
                bounds = bounds_by_counting(graph, run.image, run.facts, execution)
            reads = values.reading(self.run.platform.pending)
            if len(parts) == 1 and reads and self.serves_interrupts(graph):
                bounds = not_by_tests(graph, reads, bounds)
        prepared = self.paths(name, parts, bounds, costs, execution)
        assumptions = (
            *valued.assumptions,
            *(self.run.platform.pending_assumption() if len(parts) > 1 and not moved else ()),
            *(stated(f) for f in self.run.facts.of(PathStart) if moved),
            *(text for bound in bounds for text in bound.rests),
            *(a for _, more in prepared for a in more),
        )
        paths = tuple(paths for paths, _ in prepared)
        unmasking = tuple(map(self.run.image.place, valued.unmasking))
        return Prepared(
            paths,
            valued.infeasible,
            tuple(dict.fromkeys(assumptions)),
            valued.shared,
            unmasking,
            valued.never_returning,
        )

    def segments(self, graph: Supergraph, values: Values) -> list[Segment]:
        """The parts of paths to be bounded: one, unless code tests for interrupts (rule 21)."""
        tests = self.pending_tests(graph, values)
        starts = from_place(graph, self.run.facts, self.run.image)
        if tests is None and not starts:
            return [undivided(graph)]
        if starts and (graph.merged or tests is not None):
            raise UsageError(
                "'path starts at' is for full call strings, and code without tests for interrupts",
                hint="leave out --call-string, or name the place with --entry",
            )
        if tests is None:
            return list(starts)
        if graph.merged:
            raise UsageError(
                "code tests for interrupts, which shared contexts do not tell apart",
                hint="leave out --call-string",
            )
        return list(segments(values, tests, self.run.image))

    def pending_tests(self, graph: Supergraph, values: Values) -> PendingTests | None:
        """The tests that an interrupt which is pending decides; none on its own path (rule 32)."""
        registers = self.run.platform.pending
        if not registers:
            return None
        serves = self.serves_interrupts(graph)
        tests = find_pending_tests(
            values, registers, parallel=not serves and len(graph.nodes) >= SPREAD
        )
        return None if serves else tests

    def serves_interrupts(self, graph: Supergraph) -> bool:
        """Whether the graph is of the interrupt path or a part of it."""
        run = self.run
        address = graph.nodes[graph.entry].block.addr
        return serves_interrupts(run.image, run.platform, run.facts, run.ends, address)

    def paths(
        self,
        name: str,
        parts: Sequence[Segment],
        bounds: Sequence[LoopBound],
        costs: Costing,
        execution: ExecutionCounts | None = None,
    ) -> list[tuple[PreparedPaths, tuple[Assumption, ...]]]:
        """The paths from each start, and what their costs assume."""
        known = [of_segment(part, bounds) for part in parts]
        self.run.stages.say(f"cache, pipeline: {name}")
        start = time.perf_counter()
        found = costs([rounds_of(of) for of in known])
        elapsed = time.perf_counter() - start
        spent = [sum(costed.seconds[stage] for costed in found) for stage in (0, 1)]
        for stage, seconds in zip(("cache", "pipeline"), spent, strict=True):
            self.run.stages.spent(stage, elapsed * seconds / (sum(spent) or 1))
        return [
            (PreparedPaths(part.start, part.graph, costed.costs, of, execution), costed.assumptions)
            for part, of, costed in zip(parts, known, found, strict=True)
        ]

    def costing(
        self, parts: Sequence[Segment], values: Values, name: str
    ) -> AbstractContextManager[Costing]:
        """The costs of the paths from each start.

        Other processes, where it pays, classify references and time blocks while loops are bounded
        here: only what loads that miss once per line are charged depends on how often loops are
        repeated.
        """
        seen = [SegmentValues(values, part) for part in parts]
        platform = self.run.platform
        timer = BlockTimer(platform.timing, aligned=platform.hierarchy.aligned)

        def uncounted(index: int) -> Uncounted:
            begun, graph = time.perf_counter(), parts[index].graph
            hierarchy = self.hierarchy_of(parts[index])
            classes = classify(graph, seen[index], hierarchy)
            classified = time.perf_counter()
            times = undelayed(graph, seen[index], hierarchy, platform.timing, timer)
            return Uncounted(classes, times, (classified - begun, time.perf_counter() - classified))

        def costed(index: int, known: Uncounted, rounds: Sequence[Mapping[int, int]]) -> Costed:
            begun, part, classes = time.perf_counter(), parts[index], known.classes
            of_caches, of_blocks = known.seconds
            charges = charge(
                part.graph,
                classes.counted(rounds[index]),
                seen[index],
                self.hierarchy_of(part),
                self.run.platform.timing,
                exception=part.start is None and (self.taken or name in self.run.platform.entries),
                known=known.times,
            )
            assumptions = (*classes.assumptions, *charges.costs.assumptions)
            seconds = of_caches, of_blocks + time.perf_counter() - begun
            return Costed(charges.costs, assumptions, seconds)

        return two_step_map(uncounted, costed, [len(part.graph.nodes) for part in parts], SPREAD)

    def hierarchy_of(self, part: Segment) -> Hierarchy:
        """The caches where a part of paths starts: given at an entry, unknown elsewhere."""
        known, at_entry = self.run.platform.hierarchy, self.starts and part.start is None
        return known if at_entry else known.from_anywhere

    def progress(self, answered: int, asked: int, place: str) -> None:
        """Show how far model checking has come."""
        self.run.stages.say(f"loop bounds: {answered} of {asked}: {place}")


def without_f1(assumptions: Sequence[Assumption], graph: Supergraph) -> tuple[Assumption, ...]:
    """``assumptions`` but F1, if values enter every function that is called in ``graph``.

    They follow each store, and list the returns and targets that they do not confirm. So they do
    with what a change of translations leaves of stacks (S6).
    """
    entered = not graph.merged and not any(r.settled for r in graph.guidance.replaced.values())
    shown = (F1.of(), S6.of()) if entered else ()
    return tuple(text for text in assumptions if text not in shown)


def infeasible_edges(graph: Supergraph, values: Values) -> tuple[InfeasibleEdge, ...]:
    """The dead edges out of nodes that are reached, with what decides; not what lies beyond."""
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


def rounds_of(bounds: Sequence[LoopBound]) -> dict[int, int]:
    """Most executions of a loop's header per entry, of the loops that are bounded."""
    rounds: dict[int, int] = {}
    for b in bounds:
        if b.bound is not None:
            rounds[b.loop] = min(b.bound, rounds.get(b.loop, b.bound))
    return rounds


def of_segment(part: Segment, bounds: Sequence[LoopBound]) -> tuple[LoopBound, ...]:
    """The bounds of the loops that a segment has, under its own numbers."""
    number = {old: new for new, old in enumerate(part.loops)}
    return tuple(replace(b, loop=number[b.loop]) for b in bounds if b.loop in number)


def presupposed(
    graph: Supergraph,
    image: Image,
    platform: Platform,
    name: str,
    ends: Set[int],
    unmasking: tuple[int, ...],
) -> Iterator[Assumption]:
    """The assumptions of the entry ``name`` about the state of the machine and its interrupts.

    ``unmasking`` are the instructions of ``graph`` that may unmask them; paths end at ``ends``.
    """
    yield MACHINE.of(platform=platform.name)
    yield ABORTS.of(platform=platform.name)
    yield FAST_INTERRUPTS.of(platform=platform.name)
    if name not in platform.entries:
        yield NOT_MASKED.of(entry=name)
    blocks = {id(node.block): node.block for node in graph.nodes}
    if platform.timing.tlb is None:
        found = {i.addr for b in blocks.values() for i in b.insns if invalidates_global(i)}
        for addr in sorted(found):
            yield TLB_REFILLED.of(platform=platform.name, place=image.place(addr))
    for addr in unmasking:
        yield UNMASKED.of(entry=name, place=image.place(addr))
    last = {graph.nodes[n].block.last.addr: graph.nodes[n].block.last for n in graph.exits}
    for addr, insn in sorted(last.items()):
        if addr in ends:
            yield ENDS.of(place=image.place(addr))
        elif insn.flow is Flow.EXCEPTION_RETURN:
            yield RETURNS_UNMASKED.of(entry=name, place=image.place(addr))


def refuse_untimed(graph: Supergraph, image: Image, platform: Platform) -> None:
    """Raise TimingError for all instructions without a timing class, before anything is proved."""
    timing = platform.timing
    core = load_core(timing.core, timing.profile, timing.own_rows)
    insns = instructions(graph)
    found: dict[int, TimingError] = {}
    for addr, insn in sorted(insns.items()):
        try:
            demand(core, insn, aligned=True, aligned8=False)
        except TimingError as error:
            found[addr] = error
    if not found:
        return
    first, *others = found.items()
    more = "".join(f"; also {insns[a].text} at {image.place(a)}" for a, _ in others[:NAMED])
    left = len(others) - NAMED
    more += f"; and {left} more" if left > 0 else ""
    raise TimingError(
        f"{first[1].message}{more}",
        where=first[1].where,
        hint=first[1].hint,
        missing=bounds_instead(graph, {addr: error.message for addr, error in found.items()}),
    )


def instructions(graph: Supergraph) -> dict[int, Insn]:
    """The instructions of ``graph`` by address."""
    blocks = {id(node.block): node.block for node in graph.nodes}
    return {insn.addr: insn for block in blocks.values() for insn in block.insns}


def bounds_instead(graph: Supergraph, why: Mapping[int, str]) -> list[Missing]:
    """Bounds of the functions with the instructions that ``why`` is about; none of the entry."""
    start = graph.contexts[0].function
    found: dict[int, Missing] = {}
    for node in graph.nodes:
        function = graph.contexts[node.context].function
        for insn in node.block.insns:
            if insn.addr in why and function not in (start, *found):
                found[function] = Missing(
                    function,
                    MissingKind.FUNCTIONS,
                    f"{insn.addr:#x}: {why[insn.addr]}",
                    REPLACED.format("N"),
                    REPLACED.format(1),
                )
    return list(found.values())


def refuse_unaligned(values: Values, image: Image) -> None:
    """Raise TimingError for an access of which values know that it is not aligned to its size."""
    for index, node in enumerate(values.graph.nodes):
        for number, insn in enumerate(node.block.insns):
            memory = insn.memory
            if memory is None or memory.size == 1 or memory.access is Access.PRELOAD:
                continue
            where, size = values.access(index, number), min(memory.size, WORD)
            if where is None or where.stride % size or not where.low % size:
                continue
            raise TimingError(
                f"{insn.text} accesses {where}, which is not aligned to {size} bytes, though the "
                "platform assumes that every access is aligned to its size",
                where=image.place(insn.addr),
                hint="aligned = false under [caches] of the platform file charges such accesses",
            )


def refuse_unmodelled(
    graph: Supergraph,
    image: Image,
    processor: Processor | None,
    *,
    force: bool,
    stops: bool = True,
) -> None:
    """Raise a WcetError for what no command looks at: every command that follows paths calls this.

    ControlFlowError where control may get to what is on no path (rule 33), and TimingError for code
    that changes what is presupposed of the machine (rule 37), or that ``processor`` lacks (47).
    Without ``stops``, a graph is a function that others call, and need not come to an end of paths.
    """
    if stops:
        refuse_stops(graph, image)
    if processor is not None:
        insns = [insn for _, insn in sorted(instructions(graph).items())]
        refuse_lacking(insns, image, processor, partial(bounds_instead, graph), force=force)
    refuse_control_writes(graph, image)


def refuse_control_writes(graph: Supergraph, image: Image) -> None:
    """Raise TimingError for an instruction that may change what the caches or the MMU do."""
    found = {
        insn.addr: f"{insn.text} writes {what}: what follows is not modelled"
        for _, insn in sorted(instructions(graph).items())
        if (what := refused(insn)) is not None
    }
    if not found:
        return
    first, *others = found
    also = "".join(f"; also at {image.place(addr)}" for addr in others[:NAMED])
    raise TimingError(
        f"{found[first]}{also}{'; and more' if len(others) > NAMED else ''}",
        where=image.place(first),
        hint="if the path ends before it: path must end at PLACE; if control never gets here: "
        "ignore PLACE; or state what the function around it takes, which must leave caches and "
        "translation as they were: function NAME takes at most N cycles",
        missing=bounds_instead(graph, found),
    )
