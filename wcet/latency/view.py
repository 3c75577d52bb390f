"""The latency of a kernel as stretches: the result of an analysis, seen by operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quoll.inlining.sharing import NEVER
from wcet.analysis.analysis import analyse, interrupt_latency
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog, StageLog
from wcet.latency.longest import RankedStretch, longest_stretches
from wcet.latency.masked_stretches import masked_stretches
from wcet.latency.starts import PathStarts
from wcet.masked.handler_stores import InterruptHandler
from wcet.platforms.platform_model import INTERRUPT

__all__ = ["LatencyView", "latency_view"]


@dataclass(frozen=True, slots=True)
class LatencyView:
    """The longest ``stretches`` of a ``result``.

    ``masked``: the entries that unmask interrupts; ``result`` has their masked regions for paths.
    """

    result: AnalysisResult
    stretches: tuple[RankedStretch, ...]
    masked: frozenset[str]


def latency_view(
    kernel: Path, options: AnalysisOptions, stages: StageLog, most: int
) -> LatencyView:
    """At most ``most`` stretches of the entries that ``options`` requests. Raises WcetError."""
    result = analyse(kernel, options, stages)
    regions = _regions(kernel, options, result)
    if regions:
        result = _with_regions(result, regions, options.interrupts)
    run = AnalysisRun.begin(kernel, options, SilentStageLog())
    stages.say("stretches")
    starts = PathStarts.of(run, result, frozenset(regions))
    found = longest_stretches(starts, most)
    stages.done()
    return LatencyView(result, found, frozenset(regions))


def _regions(
    kernel: Path, options: AnalysisOptions, result: AnalysisResult
) -> dict[str, EntryResult]:
    """The masked regions of each entry that unmasks interrupts, but the interrupt path."""
    names = [n for n, entry in result.entries.items() if entry.unmasking and n != INTERRUPT]
    if not names:
        return {}
    inlining = replace(options, entries=tuple(names), summary_settings=NEVER)
    run = AnalysisRun.begin(kernel, inlining, SilentStageLog())
    handler = InterruptHandler(run)
    return {name: masked_stretches(handler, name, at) for name, at in run.entries.items()}


def _with_regions(
    result: AnalysisResult, regions: Mapping[str, EntryResult], together: int
) -> AnalysisResult:
    """``result`` with regions for paths, and the latency that they give.

    A region ends where interrupts are unmasked: there the kernel hands nothing over.
    """
    entries = {**result.entries, **regions}
    ends = {name: replace(entry, paths=()) for name, entry in regions.items()}
    latency = interrupt_latency(result.image, result.platform, {**entries, **ends}, together)
    return replace(result, entries=entries, latency=latency)
