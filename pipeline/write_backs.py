"""Write-backs by maintenance of the data cache: a potential over the whole path (rule 9).

An operation that cleans a line is charged a write-back at each execution, but a line is written
back only if it is dirty. Let the potential of a state be its number of dirty lines, where a line of
L1 counts for itself and for the lines of an L2 that its write-back makes dirty: one, or several
shorter ones. Each write-back, of a victim or by maintenance, lowers the potential. Only stores
raise it, each by one line of L1.
So on a path with x_n executions of node n,

    write-backs by maintenance <= dirty lines at the start + sum(dirtied_n * x_n)

A function that is not analysed may leave every line dirty: a path past it starts again. A store is
not counted if its own charge covers the write-back of the line that it makes dirty. Without L2 and
without allocation a store that hits takes none of its charge, and a store that misses makes no line
dirty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cache.geometry import CacheHierarchy
from cache.reference import Reference, ReferenceKind
from pipeline.costs import WriteBackPool
from pipeline.timing_model import MemoryLatencies
from quoll.inlining.supergraph import Supergraph

__all__ = ["write_back_pool"]


def write_back_pool(
    graph: Supergraph,
    references: Sequence[Sequence[Reference]],
    hierarchy: CacheHierarchy,
    memory: MemoryLatencies,
    due: Callable[[Reference], int],
) -> WriteBackPool | None:
    """The dirty lines on paths through ``graph``; None if no maintenance is charged for them.

    ``references``: of each node; ``due``: the cycles charged for one where it stands.
    """
    lines = memory.line_words
    charged = _by_node(
        references,
        lambda r: r.words // lines if r.kind is ReferenceKind.WRITE_BACK else 0,
    )
    if not charged:
        return None
    every = _level_1(hierarchy) + _level_2(hierarchy)
    clean = hierarchy.initial_d.clean
    of_line = _of_line(hierarchy)

    def dirtied(reference: Reference) -> int:
        stores = reference.kind is ReferenceKind.STORE and reference.cacheable
        return of_line if stores and not _covered(reference, hierarchy, memory, due) else 0

    return WriteBackPool(
        cycles=memory.write_back,
        start=_level_2(hierarchy) if clean else every,
        every=every,
        charged=charged,
        dirtied=_by_node(references, dirtied),
        restarts=frozenset(e for e in range(len(graph.edges)) if graph.passed(e)),
    )


def _level_1(hierarchy: CacheHierarchy) -> int:
    """The potential if every line of L1 is dirty."""
    l1d = hierarchy.l1d
    lines = 0 if l1d.write_through else l1d.sets * l1d.ways
    return lines * _of_line(hierarchy)


def _of_line(hierarchy: CacheHierarchy) -> int:
    """The potential of a dirty line of L1: itself, and the lines that it makes dirty in L2."""
    l1d, l2 = hierarchy.l1d, hierarchy.l2
    return 1 if l2 is None else 1 + max(1, l1d.line_bytes // l2.line_bytes)


def _level_2(hierarchy: CacheHierarchy) -> int:
    """The potential if every line of L2 is dirty."""
    return 0 if hierarchy.l2 is None else hierarchy.l2.sets * hierarchy.l2.ways


def _covered(
    reference: Reference,
    hierarchy: CacheHierarchy,
    memory: MemoryLatencies,
    due: Callable[[Reference], int],
) -> bool:
    """Whether a store makes no line dirty, or is charged the write-back of the line, too."""
    if hierarchy.l2 is not None:
        return False
    if memory.write_through or memory.made_dirty:
        return True
    return not memory.write_allocate and due(reference) >= memory.write_back


def _by_node(
    references: Iterable[Sequence[Reference]], amount: Callable[[Reference], int]
) -> dict[int, int]:
    """The sum of amounts in each node, without zeros."""
    sums = ((node, sum(map(amount, of_node))) for node, of_node in enumerate(references) if of_node)
    return {node: total for node, total in sums if total}
