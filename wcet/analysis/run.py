"""What the stages of all entries share: the inputs as they were read, and the integer program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ilp.constraints.constraint import Constraint, locate_in, resolve_constraints
from ilp.constraints.parameters import loop_parameters, refuse_unknown
from ilp.entry import EntryBound, bound_entry
from ilp.parametric import largest
from ilp.solvers.solve import solver_named
from ilp.worst_case import WorstCase
from quoll.assumptions import stated
from quoll.facts import Facts, load
from quoll.facts.annotations import Annotations, read_annotations
from quoll.facts.read import uncontradicted
from quoll.facts.regions import Regions
from quoll.image.image import Image
from wcet.analysis.entries import asked_ends, find_entries, path_ends
from wcet.analysis.options import Options
from wcet.analysis.prepared import Prepared, PreparedPaths, PreparedStore
from wcet.analysis.raw_memory import refuse_several
from wcet.analysis.result import EntryResult, Start
from wcet.analysis.solved import Asked, SolvedStore
from wcet.analysis.stages import Stages
from wcet.platforms import platform as platforms
from wcet.platforms.platform import Platform
from wcet.platforms.processor import check_processor, check_profile

__all__ = ["Run"]


@dataclass(frozen=True, slots=True)
class Run:
    """What the stages of all entries share."""

    image: Image
    platform: Platform
    reason: str  # why this platform
    files: tuple[Path, ...]  # of facts
    facts: Facts
    regions: Regions
    entries: Mapping[str, int]  # addresses, bit 0 set for Thumb code
    ends: frozenset[int]
    options: Options
    stages: Stages
    store: PreparedStore

    @staticmethod
    def begin(kernel: Path, options: Options, stages: Stages, image: Image | None = None) -> Run:
        """Read the inputs. Raises InputError, FactsError or UsageError for what is wrong.

        ``image``: what is loaded of the kernel with these options, if it was read before.
        """
        with stages.stage("read"):
            image = image or options.extra.image(kernel)
            platform, reason = choose_platform(image, options)
            files = facts_files(kernel, options)
            written = written_facts(image, kernel, options)
            loaded = load(files)
            for text in (*loaded.remarks, *written.warnings):
                stages.warn(text)
            stated = uncontradicted((*loaded.facts, *written.facts))
            facts = Facts((*stated.facts, *asked_ends(options.ends)))
            refuse_unknown(facts, options.parameters)
            regions = Regions.of(facts, image)
            platform = platform.with_regions(regions)
            image = image.mapped(platform.hierarchy.memory, platform.processor.version)
            entries = find_entries(image, platform, options.entries)
            if options.extra.from_reset:
                refuse_several(entries)
            ends = path_ends(image, platform)
            store = PreparedStore(options, image, platform, facts, ends)
        return Run(
            image, platform, reason, files, facts, regions, entries, ends, options, stages, store
        )

    def entry(
        self, name: str, address: int, prepared: Prepared, effective: list[tuple[Constraint, ...]]
    ) -> EntryResult:
        """The bound of one entry; the constraints that it has are added to ``effective``."""
        whole = len(prepared.paths) == 1 and prepared.paths[0].start is None
        with self.stages.stage("ilp", name):
            asked = [self.asked(paths, effective, whole=whole) for paths in prepared.paths]
            answers = self.answers(name, address, prepared, asked)
        results = [
            self.result(name, address, paths, one, answer)
            for paths, one, answer in zip(prepared.paths, asked, answers, strict=True)
        ]
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
            unmasking=tuple(map(self.image.place, prepared.unmasking)),
            never_returning=prepared.never_returning,
            shared=prepared.shared,
        )

    def answers(
        self, name: str, address: int, prepared: Prepared, asked: Sequence[Asked]
    ) -> list[EntryBound]:
        """The integer programs from all starts, or what an earlier run found out about them."""
        entry = "" if self.options.programs else self.store.kept_under(name, address, prepared)
        options = self.options
        store = SolvedStore(options.store, entry, prepared.paths, asked, options.parameters)
        found = [
            self.answer(paths, one, store.recalled(number, paths))
            for number, (paths, one) in enumerate(zip(prepared.paths, asked, strict=True))
        ]
        store.keep([None if answer.parametric else answer.worst for answer in found])
        return found

    def asked(
        self, paths: PreparedPaths, effective: list[tuple[Constraint, ...]], *, whole: bool
    ) -> Asked:
        """What the facts say to the integer program of the paths from one start.

        Unless they are ``whole``, what must happen somewhere may happen before or after them.
        """
        found = resolve_constraints(paths.graph, self.facts, locate_in(self.image))
        effective.append(found)
        return Asked(
            tuple(c for c in found if whole or c.holds_in_parts),
            loop_parameters(paths.graph, self.image, self.facts),
        )

    def solve(
        self,
        name: str,
        address: int,
        paths: PreparedPaths,
        effective: list[tuple[Constraint, ...]],
        *,
        whole: bool,
    ) -> EntryResult:
        """The integer program of the paths from one start; ``whole``: see ``asked``."""
        with self.stages.stage("ilp", name):
            asked = self.asked(paths, effective, whole=whole)
            answer = self.answer(paths, asked)
        return self.result(name, address, paths, asked, answer)

    def answer(
        self, paths: PreparedPaths, asked: Asked, known: WorstCase | None = None
    ) -> EntryBound:
        """The bound; ``known``: what an earlier run found."""
        return bound_entry(
            paths.graph,
            paths.costs,
            paths.bounds,
            asked.constraints,
            asked.parameters,
            self.options.parameters,
            paths.execution,
            solver=solver_named(self.options.solver),
            seconds=self.options.time_limit,
            place=self.image.place,
            known=known,
        )

    def result(
        self, name: str, address: int, paths: PreparedPaths, asked: Asked, answer: EntryBound
    ) -> EntryResult:
        """The same with what it rests on."""
        assumptions = (
            *(a for b in answer.bounds for a in b.assumptions),
            *(limit.assumption for limit in answer.limits),
            *(stated(c.fact) for c in asked.constraints),
        )
        context = paths.graph.nodes[paths.graph.entry].context
        return EntryResult(
            name=name,
            symbol=self.image.place(address & ~1),
            address=address & ~1,
            graph=paths.graph,
            costs=paths.costs,
            bounds=answer.bounds,
            solution=answer.worst.solution,
            path=answer.worst.path,
            infeasible=(),
            assumptions=assumptions,
            parametric=answer.parametric,
            example=answer.example,
            constraints=asked.constraints,
            model=answer.worst.model,
            numbers=answer.numbers,
            starts=(Start(paths.start, context, answer.worst.solution.cycles),),
        )


def choose_platform(image: Image, options: Options) -> tuple[Platform, str]:
    """The platform asked for, or the one that the ELF's build attributes name.

    Raises InputError if the ELF is built for another processor.
    """
    if options.platform is not None:
        chosen, reason = platforms.load(options.platform), "asked for"
    else:
        check_profile(image.attributes)
        chosen, reason = platforms.for_image(image.cpu, image.attributes.arch)
    if options.l2 is not None:
        chosen = chosen.with_l2(options.l2)
    if options.tlb is not None:
        chosen = chosen.with_tlb(options.tlb)
    if options.data_index is not None:
        chosen = chosen.with_virtual_index()
    listed = check_processor(
        image.attributes, chosen.name, chosen.processor, force=options.force_core
    )
    chosen = replace(chosen, assumptions=(*chosen.assumptions, *listed))
    return chosen.locking(image), reason


def written_facts(image: Image, kernel: Path, options: Options) -> Annotations:
    """The facts in comments of the sources, unless only files that are named count."""
    if not options.neighbouring_facts:
        return Annotations()
    return read_annotations(image, kernel, options.sources)


def facts_files(kernel: Path, options: Options) -> tuple[Path, ...]:
    """The facts file beside the ELF, if there is one, then those asked for."""
    beside = kernel.with_suffix(".facts")
    automatic = options.neighbouring_facts and beside.is_file() and beside not in options.facts
    return ((beside,) if automatic else ()) + options.facts
