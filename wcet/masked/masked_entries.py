"""Bounds of the masked regions of every entry, and of the latency that follows.

A region starts where an exception is taken, or at an instruction that may mask interrupts where
they may be unmasked; it ends where they are surely unmasked, or with the path. Each region is
bounded like the paths from its start (rule 21): caches and pipeline are unknown there, values and
loop bounds come from the paths from the entry. An interrupt that arrives in a region waits for the
end of the region, and then for the interrupt path: from taking the exception to the end of the
path, or to a handler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quoll.assumptions import (
    OTHERS_FIRST,
    TAKEN_IMMEDIATELY,
    Assumption,
)
from quoll.errors import ControlFlowError, UsageError, WcetError
from quoll.image.image import Image
from quoll.inlining.sharing import NEVER
from quoll.preemption.mask_states import MASKED, RegionStart, mask_at, possible_exits, regions
from quoll.preemption.segments import PendingSegment, masked_region
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entries import ALL
from wcet.analysis.entry_stages import AnalysisTarget, assumed_by_segments, divided
from wcet.analysis.integer_programs import constraints_of, entry_result
from wcet.analysis.preparation import ValuedEntry, prepare
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.masked.handler_stores import InterruptHandler
from wcet.masked.masked_functions import SearchExtent, everywhere
from wcet.masked.masked_region import (
    PARAMETER,
    Found,
    MaskedRegion,
    UnboundedRegion,
    bounded_regions,
    left_masked,
    listed,
    place_of,
    without,
)
from wcet.platforms.platform_model import INTERRUPT, Platform

__all__ = ["MaskedRegions", "masked"]


@dataclass(frozen=True, slots=True)
class MaskedRegions:
    """``regions``, the longest first; ``interrupt``: cycles of the interrupt path, if bounded.

    ``handler``: the end of that path, if it is not the end of a whole path.
    """

    image: Image
    platform: Platform
    regions: tuple[MaskedRegion, ...]
    missing: tuple[UnboundedRegion, ...]
    interrupt: int | None
    handler: str | None
    assumptions: tuple[Assumption, ...]
    no_latency: str = ""  # the reason, where the interrupt path is not requested

    @property
    def status(self) -> int:
        """The exit status of the first region without a bound; 0 if there is none."""
        return next((one.status for one in self.missing), 0)

    @property
    def partial(self) -> bool:
        """Whether a region, or the interrupt path if it is requested, has no bound."""
        return bool(self.missing) or (self.interrupt is None and not self.no_latency)

    @property
    def latency(self) -> int | None:
        """The cycles of the longest bounded region, the interrupt path and the controller."""
        if self.interrupt is None or not self.regions:
            return None
        delay = self.platform.controller_delay or 0
        return self.regions[0].cycles + self.interrupt + delay


def masked(
    kernel: Path,
    options: AnalysisOptions,
    stages: StageLog,
    handler: str | None,
    extent: SearchExtent | None = None,
) -> MaskedRegions:
    """Bound every region of the entries that ``options`` requests.

    With an ``extent``, the regions of every function within its limits. Regions without a bound are
    listed; only wrong inputs raise WcetError. For entries that are named, the interrupt path serves
    the latency only, and need not have a bound.
    """
    if extent is not None:
        options = extent.distributed(options)
    hiding_nothing = replace(options, summary_settings=NEVER)  # a function summary hides masks
    nowhere: list[UnboundedRegion] = []
    try:
        run = AnalysisRun.begin(kernel, hiding_nothing, stages)
    except UsageError as error:
        if extent is None or options.entries != (ALL,):
            raise
        nowhere.append(without(ALL, "the entries of the platform", error))
        run = AnalysisRun.begin(kernel, replace(hiding_nothing, entries=()), stages)
    found, missing, assumed = _of_entries(run) if extent is None else everywhere(run, extent)
    missing = [*nowhere, *missing]
    assumptions = dict.fromkeys(assumed)
    interrupt, no_latency = None, ""
    try:
        if extent is not None and handler is None:
            raise UsageError("with --everywhere it is followed to a handler only", hint=HANDLER)
        interrupt, assumed = _interrupt_path(kernel, options, stages, handler)
        latency = (OTHERS_FIRST.of(others=0), TAKEN_IMMEDIATELY.of())
        delay = run.platform.delay_assumption()
        assumptions |= dict.fromkeys((*assumed, *latency, *delay))
    except WcetError as error:
        if handler is None and extent is None and not {ALL, INTERRUPT} & set(options.entries):
            no_latency = f"the interrupt path has no bound: {error}"
        else:
            missing.append(without(INTERRUPT, "the interrupt path", error))
    stages.done()
    return MaskedRegions(
        run.image,
        run.platform,
        tuple(sorted(found, key=lambda region: (-region.cycles, region.place))),
        tuple(missing),
        interrupt,
        handler,
        tuple(assumptions),
        no_latency,
    )


def _interrupt_path(
    kernel: Path, options: AnalysisOptions, stages: StageLog, handler: str | None
) -> tuple[int, tuple[Assumption, ...]]:
    """Cycles from taking the interrupt to the handler's first instruction, or to the path's end."""
    ends = (*options.exits, *([handler] if handler else []))
    run = AnalysisRun.begin(kernel, replace(options, entries=(INTERRUPT,), exits=ends), stages)
    (address,) = run.entries.values()
    prepared = prepare(AnalysisTarget(run, INTERRUPT, address))
    constraints = constraints_of(run, INTERRUPT, prepared)
    result = entry_result(run, INTERRUPT, address, prepared, constraints)
    if result.parametric is not None:
        raise UsageError("the bound of the interrupt path depends on a parameter", hint=PARAMETER)
    return result.cycles, result.assumptions


HANDLER = "name where it ends: --handler PLACE"


def _of_entries(run: AnalysisRun) -> Found:
    """The regions on the paths of the requested entries."""
    found: list[MaskedRegion] = []
    missing: list[UnboundedRegion] = []
    assumptions: dict[Assumption, None] = {}
    handler = InterruptHandler(run)
    for name, address in run.entries.items():
        try:
            regions_, not_bounded, assumed = _of_entry(handler, name, address)
        except WcetError as error:
            missing.append(without(name, run.image.place(address), error))
            continue
        found += regions_
        missing += not_bounded
        assumptions |= dict.fromkeys(assumed)
    return found, missing, tuple(assumptions)


def _of_entry(handler: InterruptHandler, name: str, address: int) -> Found:
    """The regions of one entry. Raises WcetError if its graph or values are unknown."""
    image = handler.run.image
    entry = handler.valued(AnalysisTarget(handler.run, name, address))
    with entry.code.stage("values"):
        begins = bool(mask_at(entry.values, entry.graph.entry) & MASKED)
        starts, ends = regions(entry.values, at_entry=begins)
        waits = divided(entry) if begins and not ends else []
    if len(waits) > 1:
        return _masked_throughout(handler, entry, waits)
    graph = replace(entry.graph, exits=possible_exits(entry.values))
    cut_segments: list[tuple[RegionStart, PendingSegment]] = []
    missing: list[UnboundedRegion] = []
    for start in starts:
        try:
            cut_segments.append((start, masked_region(graph, start, ends, image)))
        except ControlFlowError as error:
            missing.append(without(name, place_of(image, entry, start), error))
    worst, not_bounded, assumed = bounded_regions(entry, cut_segments)
    more = (*handler.disturbing(entry), *left_masked(entry, cut_segments, ends))
    return worst, [*missing, *not_bounded], (*listed(entry), *more, *assumed)


def _masked_throughout(
    handler: InterruptHandler, entry: ValuedEntry, parts: Sequence[PendingSegment]
) -> Found:
    """The regions of an entry that tests for interrupts and never unmasks: its segments.

    A region starts also behind each test that saw no interrupt. The time from the entry to the end
    of its paths may have no bound, and no interrupt waits for it (rule 21).
    """
    pairs = [(RegionStart(part.nodes[part.graph.entry], None, True), part) for part in parts]
    worst, missing, assumed = bounded_regions(entry, pairs)
    more = (
        *assumed_by_segments(entry.code.run, parts),
        *handler.disturbing(entry),
        *left_masked(entry, pairs, frozenset()),
    )
    return worst, missing, (*listed(entry), *more, *assumed)
