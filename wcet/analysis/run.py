"""The inputs of a run, which the stages of all its entries share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ilp.constraints.parameters import refuse_unknown
from quoll.facts.annotations import Annotations, read_annotations
from quoll.facts.entry_invariants import InvariantFact
from quoll.facts.fact import Fact
from quoll.facts.line_anchors import LineAnchors
from quoll.facts.located import LocatedFacts, locate
from quoll.facts.read import Facts, load, uncontradicted
from quoll.image.image import Image
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entries import exit_facts, find_entries, path_exits
from wcet.analysis.interrupts import InterruptCode
from wcet.analysis.prepared import PreparedStore
from wcet.analysis.raw_memory import refuse_several
from wcet.analysis.seen_executions import SeenExecutions
from wcet.analysis.stage_times import StageLog
from wcet.platforms import platform_model as platforms
from wcet.platforms.platform_model import Platform
from wcet.platforms.processor import check_processor, check_profile

if TYPE_CHECKING:
    from quoll.cfg.cfg import Program
    from wcet.analysis.provisional_bounds import LoopSurvey

__all__ = ["AnalysisRun"]


@dataclass(frozen=True, slots=True)
class AnalysisRun:
    """The inputs of a run.

    ``loops``: collects loops without a bound, which the stages then bound provisionally; None: they
    raise an error about such loops. ``programs``: extracted before, each with its
    inputs (``wcet.analysis.entry_stages.programmed``); None: nobody needs them again.
    """

    image: Image
    platform: Platform
    reason: str  # why this platform
    files: tuple[Path, ...]  # of facts
    facts: LocatedFacts
    entries: Mapping[str, int]  # addresses, bit 0 set for Thumb code
    exits: frozenset[int]
    options: AnalysisOptions
    stages: StageLog
    store: PreparedStore
    loops: LoopSurvey | None = None
    programs: list[tuple[object, Program]] | None = None
    interrupt_code: InterruptCode = field(default_factory=InterruptCode, compare=False)

    @staticmethod
    def begin(
        kernel: Path, options: AnalysisOptions, stages: StageLog, image: Image | None = None
    ) -> AnalysisRun:
        """The inputs, read from files. Raises InputError, FactsError or UsageError for a wrong one.

        ``image``: the kernel as loaded with these options, if it was read before.
        """
        with stages.stage("read"):
            image = image or options.loaded_memory.image(kernel)
            platform, reason = choose_platform(image, options)
            files = facts_files(kernel, options)
            written = written_facts(image, kernel, options)
            loaded = load(files, LineAnchors(image, kernel, options.sources))
            for text in (*loaded.remarks, *written.warnings):
                stages.warn(text)
            stated = uncontradicted((*loaded.facts, *written.facts))
            refuse_unknown(stated, options.parameters)
            facts = locate(Facts((*stated.facts, *exit_facts(options.exits))), image)
            platform = platform.with_regions(facts.regions)
            image = image.mapped(platform.hierarchy.memory, platform.processor.version)
            image = image.identifying(platform.cache_words)
            if facts.of(InvariantFact):  # stores of unknown address would make their words unknown
                from quoll.own_objects.own_objects import with_own_objects  # it loads a decoder

                image = with_own_objects(image)
            entries = find_entries(image, platform, options.entries)
            if options.loaded_memory.from_reset:
                refuse_several(entries)
            exits = path_exits(image, platform)
            store = PreparedStore(options, image, platform, facts, exits)
        return AnalysisRun(
            image, platform, reason, files, facts, entries, exits, options, stages, store
        )

    @property
    def seen(self) -> SeenExecutions:
        """The stored executions of the kernel."""
        options = self.options
        return SeenExecutions(options.store, self.image, self.platform, self.facts, options)

    def stating(self, chosen: Iterable[Fact]) -> AnalysisRun:
        """The same run with only ``chosen`` of its facts; the platform keeps all regions."""
        facts = locate(Facts(tuple(chosen)), self.image)
        store = PreparedStore(self.options, self.image, self.platform, facts, self.exits)
        return replace(self, facts=facts, store=store)

    def without_exits(self, addresses: Iterable[int]) -> AnalysisRun:
        """The same run, in which paths go on behind some exits of the platform."""
        exits = self.exits.difference(addresses)
        store = PreparedStore(self.options, self.image, self.platform, self.facts, exits)
        return replace(self, exits=exits, store=store)


def choose_platform(image: Image, options: AnalysisOptions) -> tuple[Platform, str]:
    """The requested platform, or the one that the ELF's build attributes name.

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


def written_facts(image: Image, kernel: Path, options: AnalysisOptions) -> Annotations:
    """The facts in comments of the sources, unless only named files count."""
    if not options.neighbouring_facts:
        return Annotations()
    return read_annotations(image, kernel, options.sources)


def facts_files(kernel: Path, options: AnalysisOptions) -> tuple[Path, ...]:
    """The facts file in the folder of the ELF, if any, then the requested ones."""
    neighbouring = kernel.with_suffix(".facts")
    automatic = (
        options.neighbouring_facts and neighbouring.is_file() and neighbouring not in options.facts
    )
    return ((neighbouring,) if automatic else ()) + options.facts
