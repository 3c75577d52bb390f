"""The inputs of a run as they were read: all that the stages of its entries share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ilp.constraints.parameters import refuse_unknown
from quoll.facts import Facts, load
from quoll.facts.annotations import Annotations, read_annotations
from quoll.facts.read import uncontradicted
from quoll.facts.regions import Regions
from quoll.image.image import Image
from wcet.analysis.entries import asked_ends, find_entries, path_ends
from wcet.analysis.options import Options
from wcet.analysis.prepared import PreparedStore
from wcet.analysis.raw_memory import refuse_several
from wcet.analysis.stages import Stages
from wcet.platforms import platform as platforms
from wcet.platforms.platform import Platform
from wcet.platforms.processor import check_processor, check_profile

__all__ = ["Run"]


@dataclass(frozen=True, slots=True)
class Run:
    """The inputs of a run."""

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
