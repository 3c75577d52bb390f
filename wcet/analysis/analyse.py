"""The pipeline behind ``wcet analyse``, one stage a line: the index of the project.

ELF -> Image -> Program -> Supergraph -> Values -> Classification -> Costs
    -> LoopBounds -> Solution -> WorstPath -> Result
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ilp.constraints.constraint import (
    Constraint,
    locate_in,
    resolve_constraints,
    unused_constraints,
)
from ilp.constraints.parameters import loop_parameters, refuse_unknown
from ilp.entry import bound_entry
from ilp.parametric import largest
from ilp.solvers.solve import solver_named
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.assumptions import stated
from quoll.errors import UnansweredLoop, UnboundedLoop
from quoll.facts import Facts, load
from quoll.facts.applied import unused_guidance
from quoll.facts.regions import Regions
from quoll.image.image import Image
from quoll.inlining.sharing import Sharing
from quoll.inlining.supergraph import Supergraph
from quoll.inlining.vivu import FULL, Vivu
from quoll.kept.store import NOWHERE, Store
from wcet.analysis.entries import asked_ends, find_entries, path_ends
from wcet.analysis.latency import interrupt_latency
from wcet.analysis.prepared import Prepared, PreparedPaths, PreparedStore
from wcet.analysis.raw_memory import NOTHING, Extra
from wcet.analysis.result import EntryResult, Result, Start
from wcet.analysis.stages import Stages
from wcet.analysis.survival import Survival, labels, proved_counts, proved_depths, proved_loops
from wcet.platforms import platform as platforms
from wcet.platforms.platform import Platform
from wcet.platforms.processor import check_processor

if TYPE_CHECKING:
    from wcet.analysis.preparation import Preparation

__all__ = ["Options", "Run", "analyse"]


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
    store: Store = NOWHERE  # of what earlier runs found out
    tlb: str | None = None  # how translations are charged, if not as the platform says
    vivu: Vivu = FULL
    extra: Extra = NOTHING  # what is loaded beside the ELF
    sharing: Sharing = field(default_factory=Sharing)
    interrupts: int = 1  # how many may be pending at once, for the latency
    force_core: bool = False  # bound a binary that is built for another processor


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
    bounds = [(paths.graph, paths.bounds) for found in prepared for paths in found.paths]
    for text in unanswered(run.image, bounds):
        stages.warn(text)
    proved = proved_depths(run.image, run.facts, [graph for graph, _ in bounds])
    for unused in unused_guidance(run.facts, used):
        if str(unused.source) not in proved:
            stages.warn(f"{unused.source}: no analysed entry is changed by '{unused.source.text}'")
    proved |= proved_loops(run.image, run.facts, bounds)
    proved |= proved_counts(run.image, run.facts, prepared)
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
        latency=interrupt_latency(run.image, run.platform, results, options.interrupts),
        stages=stages.done(),
        unbounded=unbounded,
        facts=known,
    )


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
            facts = Facts((*load(files).facts, *asked_ends(options.ends)))
            refuse_unknown(facts, options.parameters)
            regions = Regions.of(facts, image)
            platform = platform.with_regions(regions)
            image = image.mapped(platform.hierarchy.memory)
            entries = find_entries(image, platform, options.entries)
            ends = path_ends(image, platform)
            store = PreparedStore(options, image, platform, facts, ends)
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
            unmasking=prepared.unmasking,
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
            *(a for b in answer.bounds for a in b.assumptions),
            *(limit.assumption for limit in answer.limits),
            *(stated(c.fact) for c in constraints),
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

    def preparation(self) -> Preparation:
        """The stages before the integer program.

        Imported here: an entry that is recalled needs none of them, and they are half of what
        a start imports.
        """
        from wcet.analysis.preparation import Preparation

        return Preparation(self)

    def prepared(self, name: str, address: int) -> Prepared:
        """What the stages before the integer program find, or found in an earlier run."""
        with self.stages.stage("recall", name):
            known = self.store.get(name, address)
        if known is not None:
            return known
        found = self.preparation().prepare(name, address)
        with self.stages.stage("keep", name):
            self.store.put(name, address, found)
        return found


def choose_platform(image: Image, options: Options) -> tuple[Platform, str]:
    """The platform asked for, or the one that the ELF's build attributes name.

    Raises InputError if the ELF is built for another processor.
    """
    if options.platform is not None:
        chosen, reason = platforms.load(options.platform), "asked for"
    else:
        chosen, reason = platforms.for_image(image.cpu, image.attributes.arch)
    if options.l2 is not None:
        chosen = chosen.with_l2(options.l2)
    if options.tlb is not None:
        chosen = chosen.with_tlb(options.tlb)
    core = chosen.timing.core
    listed = check_processor(image.attributes, chosen.name, core, force=options.force_core)
    chosen = replace(chosen, assumptions=(*chosen.assumptions, *listed))
    return chosen.locking(image), reason


def facts_files(kernel: Path, options: Options) -> tuple[Path, ...]:
    """The facts file beside the ELF, if there is one, then those asked for."""
    beside = kernel.with_suffix(".facts")
    automatic = options.neighbouring_facts and beside.is_file() and beside not in options.facts
    return ((beside,) if automatic else ()) + options.facts


def all_unbounded(entries: Mapping[str, UnboundedLoop]) -> UnboundedLoop:
    """One error for all entries, equal ones together."""
    names: dict[tuple[str, str | None], list[str]] = {}
    for name, error in entries.items():
        names.setdefault((error.message, error.hint), []).append(name)
    hint = next(iter(entries.values())).hint
    texts = [f"entry {', '.join(who)}: {message}" for (message, _), who in names.items()]
    unanswered = any(isinstance(error, UnansweredLoop) for error in entries.values())
    return (UnansweredLoop if unanswered else UnboundedLoop)("; ".join(texts), hint=hint)


def unanswered(
    image: Image, found: Sequence[tuple[Supergraph, Sequence[LoopBound]]]
) -> dict[str, None]:
    """What the solver failed at though there is a bound: once for each place and failure."""
    return {
        f"{image.place(graph.nodes[graph.loops[b.loop].header].block.addr)}: {b.unanswered}": None
        for graph, bounds in found
        for b in bounds
        if b.unanswered
    }
