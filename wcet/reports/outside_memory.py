"""Warnings about code and data outside the platform's memory, with their cost and the cure."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.costs import CostCause
from quoll.printable import printable
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.platforms.outside import OutsideMap, outside_map

__all__ = ["outside_warnings"]


def outside_warnings(result: AnalysisResult) -> Iterator[str]:
    """A sentence for each range of pages, with the line to write if it is cached RAM."""
    memory = result.platform.hierarchy.memory
    for found in outside_map(result.image, memory):
        names = printable(", ".join(found.sections))
        yield (
            f"{names} at {found.low:#x} lies outside of the memory of platform "
            f"{result.platform.name}, so every access there is charged as uncached"
            f"{_share(result, found)}. If it is cached RAM whose translation never changes (the "
            "MMU is off, or all page tables map it alike), write into "
            f"{result.kernel.with_suffix('.facts').name}: {found.fact}"
        )


def _share(result: AnalysisResult, found: OutsideMap) -> str:
    """The cycles of instruction misses there, for the entry with most; "" if there are none."""
    shares = [(_fetches(entry, found), entry) for entry in result.entries.values()]
    cycles, entry = max(shares, key=lambda share: share[0], default=(0, None))
    if entry is None or not cycles:
        return ""
    return (
        f": {cycles:,} of the {entry.cycles:,} cycles of {entry.name} are instruction misses of "
        "code there"
    )


def _fetches(entry: EntryResult, found: OutsideMap) -> int:
    """Cycles of instruction misses on the worst path, for blocks in these pages.

    Misses of an edge belong to its source block.
    """
    counts, costs, graph = entry.solution, entry.costs, entry.graph
    inside = [found.holds(node.block.addr) for node in graph.nodes]
    nodes = zip(inside, counts.nodes, costs.nodes, strict=True)
    edges = zip(graph.edges, counts.edges, costs.edges, strict=True)
    return sum(count * cost[CostCause.FETCH_MISS] for here, count, cost in nodes if here) + sum(
        count * cost[CostCause.FETCH_MISS] for edge, count, cost in edges if inside[edge.src]
    )
