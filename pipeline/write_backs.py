"""Write-backs of data lines: a potential over the whole path (rule 9).

A load that misses is charged the write-back of its victim, and an operation that cleans a line is
charged one at each execution, but a line is written back only if it is dirty. Let the potential of
a state be its number of dirty lines of L1. Each write-back, of a victim or by maintenance, lowers
the potential. Only stores raise it, each by one line. So on a path with x_n executions of node n,

    write-backs <= dirty lines at the start + sum(dirtied_n * x_n)

Charges of loads are at least as many as misses, and each miss has one victim. So the path takes
``cycles`` less for each charged write-back that this limit excludes.

Maintenance may clean lines of an L2, too. Where it is charged, a line of L1 counts for itself and
for the lines of the L2 that its write-back makes dirty: one, or several shorter ones.

A function that is not analysed may leave every line dirty: a path past it starts again. A store is
not counted if its own charge covers the write-back of the line that it makes dirty. Without
allocation a store that hits takes none of its charge, and a store that misses makes no line dirty,
except in an L2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cache.geometry import CacheGeometry, CacheHierarchy
from cache.reference import Reference, ReferenceKind
from pipeline.costs import WriteBackPool
from pipeline.timing_model import MemoryLatencies
from quoll.inlining.supergraph import Supergraph

__all__ = ["victim_cycles", "write_back_pool"]


def write_back_pool(
    graph: Supergraph,
    references: Sequence[Sequence[Reference]],
    hierarchy: CacheHierarchy,
    memory: MemoryLatencies,
    due: Callable[[Reference, MemoryLatencies], int],
) -> WriteBackPool | None:
    """The dirty lines on paths through ``graph``; None if no write-back is charged for them.

    ``references``: of each node; ``due``: the cycles charged for one where it stands.
    """
    lines = memory.line_words

    def victims(reference: Reference) -> int:
        return int(victim_cycles(reference, memory, due) > 0)

    maintained = _by_node(
        references,
        lambda r: r.words // lines if r.kind is ReferenceKind.WRITE_BACK else 0,
    )
    evicted = _by_node(references, victims)
    if not (maintained or evicted):
        return None
    below = hierarchy.l2 if maintained else None
    every = _level_1(hierarchy, below) + _level_2(below)
    clean = hierarchy.initial_d.clean
    of_line = _of_line(hierarchy, below)

    def dirtied(reference: Reference) -> int:
        stores = reference.kind is ReferenceKind.STORE and reference.cacheable
        return of_line if stores and not _covered(reference, below, memory, due) else 0

    return WriteBackPool(
        cycles=memory.write_back,
        start=_level_2(below) if clean else every,
        every=every,
        maintained=maintained,
        evicted=evicted,
        dirtied=_by_node(references, dirtied),
        restarts=frozenset(e for e in range(len(graph.edges)) if graph.passed(e)),
    )


def victim_cycles(
    reference: Reference,
    memory: MemoryLatencies,
    due: Callable[[Reference, MemoryLatencies], int],
) -> int:
    """The cycles of the victim in the charge of a load; 0 if it is no write-back of its own."""
    if reference.kind is not ReferenceKind.LOAD:
        return 0
    without = replace(memory, dirty_l1_victims=False)
    of_victim = due(reference, memory) - due(reference, without)
    # less where an uncached access takes longer
    return of_victim if of_victim == memory.write_back else 0


def _level_1(hierarchy: CacheHierarchy, below: CacheGeometry | None) -> int:
    """The potential if every line of L1 is dirty; ``below``: the L2, if its lines count."""
    l1d = hierarchy.l1d
    lines = 0 if l1d.write_through else l1d.sets * l1d.ways
    return lines * _of_line(hierarchy, below)


def _of_line(hierarchy: CacheHierarchy, below: CacheGeometry | None) -> int:
    """The potential of a dirty line of L1: itself, and the lines that it makes dirty in L2."""
    return 1 if below is None else 1 + max(1, hierarchy.l1d.line_bytes // below.line_bytes)


def _level_2(below: CacheGeometry | None) -> int:
    """The potential if every line of L2 is dirty."""
    return 0 if below is None else below.sets * below.ways


def _covered(
    reference: Reference,
    below: CacheGeometry | None,
    memory: MemoryLatencies,
    due: Callable[[Reference, MemoryLatencies], int],
) -> bool:
    """Whether a store makes no line dirty, or is charged the write-back of the line, too."""
    if below is not None:
        return False
    if memory.write_through or memory.made_dirty:
        return True
    return not memory.write_allocate and due(reference, memory) >= memory.write_back


def _by_node(
    references: Iterable[Sequence[Reference]], amount: Callable[[Reference], int]
) -> dict[int, int]:
    """The sum of amounts in each node, without zeros."""
    sums = ((node, sum(map(amount, of_node))) for node, of_node in enumerate(references) if of_node)
    return {node: total for node, total in sums if total}
