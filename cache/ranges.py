"""Accesses to one of several lines that each miss at most once while a loop runs.

A table is indexed by data: the access may be to any of its lines. If all of them are persistent in
a loop (``cache.persistence``), then whichever lines the accesses take, each line misses at most
once until the loop is left, and the loop's entry can be charged for all of them. All accesses to
a line share its charge, those to the line alone too.

    Claim: the misses of a persistent line by accesses that are not charged, from one entry of the
    loop to the next, are at most the charges of the line at this entry.

An enclosing loop that charges a line covers its misses in the loops inside. The *contested* lines
of a loop (``cache.contested``) are one range, with the charges of the accesses that may evict them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cache.contested import ContestedLines, LineFill
from cache.geometry import CacheHierarchy
from cache.persistence import LoopScopes
from cache.reference import (
    AccessStream,
    HitClass,
    LineEviction,
    PersistentRange,
    RangeUse,
    Reference,
    ReferenceKind,
)
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
    lines: set[int]
    contested: bool
    uses: list[RangeUse] = field(default_factory=list)


class RangeCollector:
    """The ranges of a graph, from their accesses."""

    def __init__(self, graph: Supergraph, scopes: LoopScopes, hierarchy: CacheHierarchy) -> None:
        self._graph, self._scopes, self._hierarchy = graph, scopes, hierarchy
        self._found: dict[tuple[int, tuple[int, ...] | None], _Range] = {}
        self._around: dict[tuple[int, int], tuple[int, ...]] = {}

    def use(self, node: int, loop: int, lines: tuple[int, ...], access: Reference) -> Reference:
        """``access`` of a node as one to ``lines``, which are persistent in ``loop``.

        A stream that runs on while the loop is entered again stays alone.
        """
        stream, around = access.stream, self._loops(node, loop)
        if stream is not None and not self._inside(stream, loop):
            return access
        return self._use(loop, lines, access, RangeUse(around, stream), contested=False)

    def contest(self, node: int, loop: int, lines: tuple[int, ...], access: Reference) -> Reference:
        """``access`` of a node as one to ``lines``, which are contested in ``loop``."""
        return self._use(loop, lines, access, RangeUse(self._loops(node, loop)), contested=True)

    def _use(
        self,
        loop: int,
        lines: tuple[int, ...],
        access: Reference,
        use: RangeUse,
        *,
        contested: bool,
    ) -> Reference:
        new = _Range(len(self._found), access, set(), contested)
        found = self._found.setdefault((loop, None if contested else lines), new)
        found.lines.update(lines)
        found.uses.append(use)
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
        self,
        charged: Mapping[int, Mapping[object, Reference]],
        fills: Mapping[int, Sequence[LineFill]],
    ) -> tuple[PersistentRange, ...]:
        """The ranges. ``charged``: by loop, the lines that its entry is charged anyway.

        ``fills``: of each node in a loop with contested lines.
        """
        return tuple(
            self._range(loop, found, charged, self._evictions(loop, found, fills))
            for (loop, _), found in self._found.items()
        )

    def _evictions(
        self, loop: int, found: _Range, fills: Mapping[int, Sequence[LineFill]]
    ) -> tuple[LineEviction, ...]:
        """The accesses of a loop that may evict a contested line."""
        if not found.contested:
            return ()
        lines = ContestedLines.of(found.lines, self._hierarchy.l1d)
        return tuple(
            LineEviction(node, self._refilled(fill.reference.insn), self._loops(node, loop))
            for node in sorted(self._scopes.executed[loop])
            for fill in fills.get(node, ())
            if fill.evicts(lines)
        )

    def _refilled(self, insn: int) -> Reference:
        """The miss of a line that an access of instruction ``insn`` has evicted."""
        words, l2 = self._hierarchy.l1d.line_bytes // 4, self._hierarchy.beyond_l1(None, None)
        return Reference(
            insn, ReferenceKind.LOAD, None, None, words, cacheable=True, l1=HitClass.NC, l2=l2
        )

    def _range(
        self,
        loop: int,
        found: _Range,
        charged: Mapping[int, Mapping[object, Reference]],
        evictions: tuple[LineEviction, ...],
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
            tuple(
                self._charge(found.access, loop, n) for n in sorted(found.lines) if n not in covered
            ),
            tuple(found.uses),
            evictions,
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
