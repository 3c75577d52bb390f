"""The pipeline behind ``wcet analyse``, one stage a line: the index of the project.

ELF -> Image -> Program -> Supergraph -> Values -> Classification -> Costs
    -> LoopBounds -> Solution -> WorstPath -> Result
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cache.classify import classify
from ilp.constraint import Constraint, locate_in, resolve_constraints, unused_constraints
from ilp.entry import bound_entry
from ilp.parameters import loop_parameters, refuse_unknown
from ilp.parametric import largest
from ilp.solve import solver_named
from loopbounds.bound import LoopBound
from loopbounds.bounds import BoundOptions, bound_loops
from pipeline.charge import charge
from quoll.cfg import Program
from quoll.errors import UnboundedLoop, UsageError
from quoll.expand import expand, without_edges
from quoll.extract import extract
from quoll.facts import Facts, PathStart, load
from quoll.guidance import CALLEE_SAVED, Replacement
from quoll.image import Image
from quoll.pending import find_pending_tests
from quoll.prune import guided_in_contexts, unused_guidance
from quoll.regions import Regions
from quoll.segments import Segment, SegmentValues, from_place, segments, undivided
from quoll.sharing import Modules, Sharing
from quoll.supergraph import Supergraph
from quoll.values import Values
from quoll.values import analyse as analyse_values
from wcet import platform as platforms
from wcet.entries import find_entries, path_ends
from wcet.memory import NOTHING, Extra
from wcet.platform import Platform
from wcet.prepared import InfeasibleEdge, Prepared, PreparedPaths, PreparedStore
from wcet.result import EntryResult, InterruptLatency, Result, Start
from wcet.stages import Stages
from wcet.survival import Survival, labels, proved_loops

__all__ = ["Options", "Run", "Valued", "analyse"]

INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for; see ``wcet analyse --help``."""

    entries: tuple[str, ...]
    platform: str | None
    l2: bool | None
    facts: tuple[Path, ...]
    neighbouring_facts: bool
    ends: tuple[str, ...]
    solver: str
    time_limit: float
    bounds: BoundOptions
    parameters: Mapping[str, int] = field(default_factory=dict)  # values of loop parameters
    store: Path | None = None  # folder of what earlier runs found out
    tlb: str | None = None  # how translations are charged, if not as the platform says
    call_string: int | None = None  # longest call string that tells contexts apart
    extra: Extra = NOTHING  # what is loaded beside the ELF
    sharing: Sharing = field(default_factory=Sharing)


def analyse(kernel: Path, options: Options, stages: Stages) -> Result:
    """Bound every entry that ``options`` asks for.

    Raises a WcetError of the class that says what is missing; nothing is then written. A loop
    without a bound leaves out only the entries that reach it, unless these are all.
    """
    run = Run.begin(kernel, options, stages)
    results: dict[str, EntryResult] = {}
    unbounded: dict[str, UnboundedLoop] = {}
    constraints: list[tuple[Constraint, ...]] = []
    prepared: list[Prepared] = []
    for name, address in run.entries.items():
        prepared.append(run.prepared(name, address))
        try:
            results[name] = run.entry(name, address, prepared[-1], constraints)
        except UnboundedLoop as error:
            unbounded[name] = error
    if not results:
        raise all_unbounded(unbounded)
    used = [text for entry in results.values() for text in entry.assumptions]
    for fact in unused_constraints(run.facts, constraints, used):
        stages.warn(f"{fact.source}: no analysed entry is constrained by '{fact.source.text}'")
    for unused in unused_guidance(run.facts, used):
        stages.warn(f"{unused.source}: no analysed entry is changed by '{unused.source.text}'")
    bounds = [(paths.graph, paths.bounds) for found in prepared for paths in found.paths]
    proved = proved_loops(run.image, run.facts, bounds)
    known = labels(run.facts, Survival(options.store, run.image), proved)
    for label in known:
        if label.violated:
            stages.warn(f"{label.source}: '{label.text}' is {label.label}")
    return Result(
        kernel=kernel,
        image=run.image,
        platform=run.platform,
        platform_reason=run.reason,
        facts_files=tuple(str(f) for f in run.files),
        entries=results,
        latency=interrupt_latency(run.platform, results),
        stages=stages.done(),
        unbounded=unbounded,
        facts=known,
    )


@dataclass(frozen=True, slots=True)
class Valued:
    """An entry with values: its graph without the edges that they exclude."""

    graph: Supergraph
    values: Values
    infeasible: tuple[InfeasibleEdge, ...]
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """What the stages of all entries share."""

    image: Image
    platform: Platform
    reason: str  # why this platform
    files: tuple[Path, ...]  # of facts
    facts: Facts
    regions: Regions
    entries: Mapping[str, int]  # addresses
    ends: frozenset[int]
    options: Options
    stages: Stages
    store: PreparedStore

    @staticmethod
    def begin(kernel: Path, options: Options, stages: Stages) -> Run:
        """Read the inputs. Raises InputError, FactsError or UsageError for what is wrong."""
        with stages.stage("read"):
            image = options.extra.image(kernel)
            platform, reason = choose_platform(image, options)
            files = facts_files(kernel, options)
            facts = load(files)
            refuse_unknown(facts, options.parameters)
            regions = Regions.of(facts, image)
            platform = platform.with_regions(regions)
            entries = find_entries(image, platform, options.entries)
            ends = path_ends(image, platform, options.ends)
            store = PreparedStore(
                options.store,
                image,
                platform,
                facts,
                ends,
                options.bounds,
                (options.call_string, options.sharing.contexts, options.sharing.least),
            )
        return Run(
            image, platform, reason, files, facts, regions, entries, ends, options, stages, store
        )

    def entry(
        self,
        name: str,
        address: int,
        prepared: Prepared,
        effective: list[tuple[Constraint, ...]],
    ) -> EntryResult:
        """The bound of one entry; the constraints that it has are added to ``effective``."""
        whole = len(prepared.paths) == 1 and prepared.paths[0].start is None
        results = [self.solve(name, address, paths, whole, effective) for paths in prepared.paths]
        results.sort(key=lambda result: -result.cycles)
        functions = [(result.parametric, result.cycles) for result in results]
        assumptions = (*prepared.assumptions, *(a for r in results for a in r.assumptions))
        return replace(
            results[0],
            infeasible=prepared.infeasible,
            assumptions=tuple(dict.fromkeys(assumptions)),
            starts=tuple(start for result in results for start in result.starts),
            paths=prepared.paths,
            parametric=largest(functions),
        )

    def solve(
        self,
        name: str,
        address: int,
        paths: PreparedPaths,
        whole: bool,
        effective: list[tuple[Constraint, ...]],
    ) -> EntryResult:
        """The integer program of the paths from one start.

        Unless they are ``whole``, what must happen somewhere may happen before or after them.
        """
        with self.stages.stage("ilp", name):
            found = resolve_constraints(paths.graph, self.facts, locate_in(self.image))
            constraints = tuple(c for c in found if whole or c.holds_in_parts)
            effective.append(found)
            answer = bound_entry(
                paths.graph,
                paths.costs,
                paths.bounds,
                constraints,
                loop_parameters(paths.graph, self.image, self.facts),
                self.options.parameters,
                solver=solver_named(self.options.solver),
                seconds=self.options.time_limit,
                place=self.image.place,
            )
        assumptions = (
            *(
                f"loop bound by fact: {b.evidence}"
                for b in answer.bounds
                if b.method in ("fact", "parameter")
            ),
            *(f"fact: {c}" for c in constraints),
        )
        context = paths.graph.nodes[paths.graph.entry].context
        return EntryResult(
            name=name,
            symbol=self.image.place(address),
            address=address,
            graph=paths.graph,
            costs=paths.costs,
            bounds=answer.bounds,
            solution=answer.worst.solution,
            path=answer.worst.path,
            infeasible=(),
            assumptions=assumptions,
            parametric=answer.parametric,
            example=answer.example,
            constraints=constraints,
            model=answer.worst.model,
            numbers=answer.numbers,
            starts=(Start(paths.start, context, answer.worst.solution.cycles),),
        )

    def whole_graph(self, address: int) -> Supergraph:
        """Every path from an entry that facts do not exclude, whatever values decide."""
        program = extract(self.image, [address], self.facts, self.ends)
        return guided_in_contexts(
            expand(program, address, self.image, self.options.call_string), self.image, self.facts
        )

    def prepared(self, name: str, address: int) -> Prepared:
        """What the stages before the integer program find, or found in an earlier run."""
        with self.stages.stage("recall", name):
            known = self.store.get(name, address)
        if known is not None:
            return known
        found = self.prepare(name, address)
        with self.stages.stage("keep", name):
            self.store.put(name, address, found)
        return found

    def valued(self, name: str, address: int) -> Valued:
        """The stages from the binary to values, for one entry."""
        stage = self.stages.stage
        with stage("extract", name):
            program = extract(self.image, [address], self.facts, self.ends)
        program, shared = self.shared(name, program, address)
        with stage("expand", name):
            whole = expand(program, address, self.image, self.options.call_string)
            plain = guided_in_contexts(whole, self.image, self.facts)
        with stage("values", name):
            first = analyse_values(plain, self.image, regions=self.regions)
            infeasible = infeasible_edges(plain, first)
            graph, values = self.without_dead_edges(plain, first)
        assumptions = (
            *self.platform.assumptions,
            *program.assumptions,
            *(removed.fact for removed in graph.guidance.removed),
            *values.assumptions,
            *self.regions.assumptions,
            *shared,
        )
        return Valued(graph, values, infeasible, assumptions)

    def without_dead_edges(self, graph: Supergraph, values: Values) -> tuple[Supergraph, Values]:
        """``graph`` without the edges that values exclude (rule 4), and its values."""
        if not values.dead_edges:
            return graph, values
        less = without_edges(graph, values.dead_edges, self.image)
        known = values.within(less)
        return less, known or analyse_values(less, self.image, regions=self.regions)

    def shared(self, name: str, program: Program, address: int) -> tuple[Program, tuple[str, ...]]:
        """``program`` with bounds in place of functions where inlining grows too large."""
        modules = Modules(program, address, self.image, self.facts, self.options.sharing)
        assumptions: dict[str, None] = {}
        for function in modules.candidates():
            with self.stages.stage("shared functions", name):
                found = self.once(name, modules.program, function)
            if found is not None:
                modules.replace_by(function, found[0])
                assumptions.update(dict.fromkeys(found[1]))
        return modules.program, tuple(assumptions)

    def once(
        self, name: str, program: Program, function: int
    ) -> tuple[Replacement, tuple[str, ...]] | None:
        """The bound of one call of a function, whoever calls it; None if its callers decide."""
        whole = expand(program, function, self.image, self.options.call_string)
        plain = guided_in_contexts(whole, self.image, self.facts)
        first = analyse_values(plain, self.image, regions=self.regions)
        graph, values = self.without_dead_edges(plain, first)
        given_back = values.given_back()
        if not given_back >= CALLEE_SAVED or len(self.segments(graph, values)) > 1:
            return None
        classes = classify(graph, values, self.platform.hierarchy)
        platform = self.platform
        charges = charge(graph, classes, values, platform.hierarchy, platform.timing, called=True)
        bounds = bound_loops(
            graph, self.image, values, self.facts, self.options.bounds, self.progress
        )
        if any(b.bound is None for b in bounds):
            return None
        paths = PreparedPaths(None, graph, charges.costs, bounds)
        result = self.solve(name, function, paths, False, [])
        if result.parametric is not None:
            return None
        place = self.image.place(function)
        text = f"{place} analysed once for all its calls: {result.cycles} cycles at most"
        assumptions = (
            f"shared: {text}",
            *(removed.fact for removed in graph.guidance.removed),
            *values.assumptions,
            *classes.assumptions,
            *result.assumptions,
        )
        return Replacement(result.cycles, False, text, given_back, settled=True), assumptions

    def prepare(self, name: str, address: int) -> Prepared:
        """The stages before the integer program, for one entry."""
        valued = self.valued(name, address)
        graph, values = valued.graph, valued.values
        with self.stages.stage("values", name):
            parts = self.segments(graph, values)
        with self.stages.stage("loop bounds", name):
            moved = parts[0].start is not None  # by a fact
            turning = frozenset(loop for part in parts for loop in part.loops)
            bounds = bound_loops(
                graph,
                self.image,
                values,
                self.facts,
                self.options.bounds,
                self.progress,
                None if parts[0].graph is graph else turning,
            )
        prepared = [self.paths(name, part, SegmentValues(values, part), bounds) for part in parts]
        assumptions = (
            *valued.assumptions,
            *(self.platform.pending_assumption() if len(parts) > 1 and not moved else ()),
            *(f"{f} ({f.source})" for f in self.facts.of(PathStart) if moved),
            *(a for _, more in prepared for a in more),
        )
        paths = tuple(paths for paths, _ in prepared)
        shared = any(r.settled for r in graph.guidance.replaced.values())
        return Prepared(paths, valued.infeasible, tuple(dict.fromkeys(assumptions)), shared)

    def segments(self, graph: Supergraph, values: Values) -> list[Segment]:
        """The parts of paths to be bounded: one, unless code tests for interrupts (rule 21)."""
        registers = self.platform.pending
        tests = find_pending_tests(values, registers) if registers else None
        starts = from_place(graph, self.facts, self.image)
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
        return list(segments(values, tests, self.image))

    def paths(
        self, name: str, part: Segment, values: SegmentValues, bounds: Sequence[LoopBound]
    ) -> tuple[PreparedPaths, tuple[str, ...]]:
        """Costs of the paths from one start, and what they assume."""
        with self.stages.stage("cache", name):
            classes = classify(part.graph, values, self.platform.hierarchy)
        with self.stages.stage("pipeline", name):
            charges = charge(
                part.graph,
                classes,
                values,
                self.platform.hierarchy,
                self.platform.timing,
                exception=part.start is None and name in self.platform.entries,
            )
        costs = charges.costs
        paths = PreparedPaths(part.start, part.graph, costs, of_segment(part, bounds))
        return paths, (*classes.assumptions, *costs.assumptions)

    def progress(self, answered: int, asked: int, place: str) -> None:
        """Show how far model checking has come."""
        self.stages.say(f"loop bounds: {answered} of {asked}: {place}")


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


def of_segment(part: Segment, bounds: Sequence[LoopBound]) -> tuple[LoopBound, ...]:
    """The bounds of the loops that a segment has, under its own numbers."""
    number = {old: new for new, old in enumerate(part.loops)}
    return tuple(replace(b, loop=number[b.loop]) for b in bounds if b.loop in number)


def choose_platform(image: Image, options: Options) -> tuple[Platform, str]:
    """The platform asked for, or the one that the ELF's build attributes name."""
    if options.platform is not None:
        chosen, reason = platforms.load(options.platform), "asked for"
    else:
        chosen, reason = platforms.for_image(image.cpu, image.attributes.arch)
    if options.l2 is not None:
        chosen = chosen.with_l2(options.l2)
    if options.tlb is not None:
        chosen = chosen.with_tlb(options.tlb)
    return chosen.locking(image), reason


def facts_files(kernel: Path, options: Options) -> tuple[Path, ...]:
    """The facts file beside the ELF, if there is one, then those asked for."""
    beside = kernel.with_suffix(".facts")
    automatic = options.neighbouring_facts and beside.is_file() and beside not in options.facts
    return ((beside,) if automatic else ()) + options.facts


def interrupt_latency(
    platform: Platform, results: Mapping[str, EntryResult]
) -> InterruptLatency | None:
    """Rule 21: any masked path may be under way when the interrupt arrives.

    None unless all entries of the platform have a number, the interrupt among them.
    """
    if INTERRUPT not in platform.entries or not platform.entries.keys() <= results.keys():
        return None
    if any(result.parametric for result in results.values()):
        return None
    longest = max(results, key=lambda name: results[name].cycles)
    return InterruptLatency(longest, results[longest].cycles, INTERRUPT, results[INTERRUPT].cycles)


def all_unbounded(entries: Mapping[str, UnboundedLoop]) -> UnboundedLoop:
    """One error for all entries, equal ones together."""
    names: dict[tuple[str, str | None], list[str]] = {}
    for name, error in entries.items():
        names.setdefault((error.message, error.hint), []).append(name)
    hint = next(iter(entries.values())).hint
    texts = [f"entry {', '.join(who)}: {message}" for (message, _), who in names.items()]
    return UnboundedLoop("; ".join(texts), hint=hint)
