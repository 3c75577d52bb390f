"""The stretches of an entry that unmasks interrupts: its masked regions.

A region starts at the entry, or where interrupts may be masked, and ends where they are surely
unmasked, or with the path (``quoll.preemption.mask_states``). Each of its contexts is bounded as
the paths from its start. A region is only a part of an execution, so minimum counts do not apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ilp.parametric import largest
from quoll.assumptions import Assumption
from quoll.preemption.mask_states import MASKED, RegionStart, mask_at, possible_exits, regions
from quoll.preemption.segments import PendingSegment, masked_region
from wcet.analysis.entry_stages import AnalysisTarget, BoundedLoops, bounded
from wcet.analysis.integer_programs import paths_result
from wcet.analysis.preparation import ValuedEntry
from wcet.analysis.prepared import PreparedPaths
from wcet.analysis.result import EntryResult
from wcet.analysis.schedule import costing
from wcet.masked.handler_stores import InterruptHandler
from wcet.masked.masked_region import left_masked, listed

__all__ = ["masked_stretches"]

Region = tuple[RegionStart, PendingSegment]


def masked_stretches(handler: InterruptHandler, name: str, address: int) -> EntryResult:
    """An entry with the bounds of its masked regions instead of its paths, the worst one first.

    The run of ``handler`` must inline every function: a function summary hides masks. Raises
    ControlFlowError for a region that never ends, UnboundedLoop for one without a bound.
    """
    run = handler.run
    entry = handler.valued(AnalysisTarget(run, name, address))
    with entry.code.stage("values"):
        begins = bool(mask_at(entry.values, entry.graph.entry) & MASKED)
        starts, ends = regions(entry.values, at_entry=begins)
    graph = replace(entry.graph, exits=possible_exits(entry.values))
    image = entry.code.run.image
    found = [(start, masked_region(graph, start, ends, image)) for start in starts]
    loops, paths = _costed(entry, [segment for _, segment in found])
    bounds = [paths_result(run, name, address, one, whole=False) for one in paths]
    bounds.sort(key=lambda bound: -bound.cycles)
    of_bounds = (assumption for bound in bounds for assumption in bound.assumptions)
    disturbing = handler.disturbing(entry)
    assumptions = (*_assumed(entry, found, ends, loops, paths), *disturbing, *of_bounds)
    return replace(
        bounds[0],
        assumptions=tuple(dict.fromkeys(assumptions)),
        starts=tuple(start for bound in bounds for start in bound.starts),
        paths=tuple(paths),
        parametric=largest([(bound.parametric, bound.cycles) for bound in bounds]),
        by_start=tuple(bounds),
    )


def _costed(
    entry: ValuedEntry, segments: list[PendingSegment]
) -> tuple[BoundedLoops, list[PreparedPaths]]:
    """The bounds of all loops in regions, and the regions with their costs."""
    with costing(entry, segments) as costs:
        with entry.code.stage("loop bounds"):
            loops = bounded(entry, segments)
        return loops, costs(loops)


def _assumed(
    entry: ValuedEntry,
    found: list[Region],
    ends: frozenset[int],
    loops: BoundedLoops,
    paths: list[PreparedPaths],
) -> Iterator[Assumption]:
    """The assumptions of values, regions, loops and costs.

    Not that interrupts stay masked: the regions follow their masks.
    """
    yield from listed(entry)
    yield from left_masked(entry, found, ends)
    yield from (one for bound in loops.bounds for one in bound.assumed)
    yield from (one for path in paths for one in path.costs.assumptions)
