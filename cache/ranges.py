"""Accesses to one of several lines that each miss at most once while a loop runs.

A table is indexed by data: the access may be to any of its lines. If all of them are persistent in
a loop (``cache.persistence``), then whichever lines the accesses take, each line misses at most
once until the loop is left, and the loop's entry can be charged for all of them. All accesses to
a line share its charge, those to the line alone too.

    Claim: the misses of a persistent line by accesses that are not charged, from one entry of the
    loop to the next, are at most the charges of the line at this entry.

An enclosing loop that charges a line covers its misses in the loops inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cache.geometry import CacheHierarchy
from cache.persistence import LoopScopes
from cache.reference import AccessStream, HitClass, PersistentRange, RangeUse, Reference
from quoll.inlining.supergraph import Supergraph

__all__ = ["RangeCollector", "range_scope"]


def range_scope(
    lines: tuple[int, ...], loops: tuple[int, ...], persistent: Sequence[frozenset[int]]
) -> int | None:
    """The outermost of ``loops`` in which all ``lines`` are persistent."""
    return next((loop for loop in loops if persistent[loop].issuperset(lines)), None)


@dataclass(slots=True)
class _Range:
    """A range while its accesses are collected; ``access``: the first one."""

    index: int
    access: Reference
    uses: list[RangeUse] = field(default_factory=list)


class RangeCollector:
    """The ranges of a graph, from their accesses."""

    def __init__(self, graph: Supergraph, scopes: LoopScopes, hierarchy: CacheHierarchy) -> None:
        self._graph, self._scopes, self._hierarchy = graph, scopes, hierarchy
        self._found: dict[tuple[int, tuple[int, ...]], _Range] = {}
        self._around: dict[tuple[int, int], tuple[int, ...]] = {}

    def use(self, node: int, loop: int, lines: tuple[int, ...], access: Reference) -> Reference:
        """``access`` of a node as one to ``lines``, which are persistent in ``loop``.

        A stream that runs on while the loop is entered again stays alone.
        """
        stream, around = access.stream, self._loops(node, loop)
        if stream is not None and not self._inside(stream, loop):
            return access
        found = self._found.setdefault((loop, lines), _Range(len(self._found), access))
        found.uses.append(RangeUse(around, stream))
        return access._replace(range=found.index)

    def _inside(self, stream: AccessStream, loop: int) -> bool:
        executed = self._scopes.executed
        return executed[stream.loop] < executed[loop]

    def _loops(self, node: int, loop: int) -> tuple[int, ...]:
        known = self._around.get((node, loop))
        if known is None:
            inside = self._scopes.executed[loop]
            known = self._around[node, loop] = tuple(
                one.index for one in self._graph.loops if node in one.nodes and one.nodes <= inside
            )
        return known

    def build(
        self, charged: Mapping[int, Mapping[object, Reference]]
    ) -> tuple[PersistentRange, ...]:
        """The ranges; ``charged``: by loop, the lines that its entry is charged anyway."""
        return tuple(
            self._range(loop, lines, found, charged) for (loop, lines), found in self._found.items()
        )

    def _range(
        self,
        loop: int,
        lines: tuple[int, ...],
        found: _Range,
        charged: Mapping[int, Mapping[object, Reference]],
    ) -> PersistentRange:
        scope, executed = self._scopes.loops[loop], self._scopes.executed
        covered = {
            line
            for outer, of_loop in charged.items()
            if executed[loop] <= executed[outer]
            for line in of_loop
        }
        return PersistentRange(
            loop,
            scope.entries,
            scope.header == self._graph.entry,
            tuple(self._charge(found.access, loop, n) for n in lines if n not in covered),
            tuple(found.uses),
        )

    def _charge(self, access: Reference, loop: int, line: int) -> Reference:
        """The first miss of one line."""
        size = self._hierarchy.l1d.line_bytes
        low, high = line * size, line * size + size - 1
        return access._replace(
            low=low,
            high=low,
            l1=HitClass.FM,
            l2=self._hierarchy.beyond_l1(low, high),
            scope=loop,
            stream=None,
            range=None,
            credited=False,
            symbolic=False,
        )
