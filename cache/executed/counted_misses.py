"""Classes of data references by the misses that were counted along the executions of an entry.

All whole paths of the entry are among the executions that were followed, and none misses more often
at an instruction than was counted. So the instruction can be charged that many misses once, where
the outermost loop around it is entered: no path enters this loop twice.

Every claim about misses is charged by itself: an instruction by its count, a line by the entries of
its loop (FM), a stream by the lines that it passes (PL), a range by its lines. Only a credited miss
depends on charges of others, and is counted itself. Lines, streams and ranges share charges between
instructions. They stay as they are, or all of them are counted, whichever costs less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from cache.executed.data_misses import DataMisses
from cache.reference import CacheClassification, HitClass, Reference, ReferenceKind
from quoll.inlining.supergraph import Supergraph

__all__ = ["with_misses"]

DATA = (ReferenceKind.LOAD, ReferenceKind.STORE)
Key = tuple[int, int, ReferenceKind]  # node, position of the instruction, kind


def with_misses(
    classes: CacheClassification, graph: Supergraph, misses: DataMisses, edges: Sequence[int]
) -> CacheClassification:
    """``classes`` with counted misses, before loops are counted.

    ``edges``: the most traversals of each edge on a path. The ``classes`` where a credited miss
    cannot be counted.
    """
    return _Counted(classes, graph, misses, edges).classes()


@dataclass(frozen=True, slots=True)
class _Charge:
    """A reference charged where the outermost loop around its node is entered."""

    node: int
    reference: Reference


class _Counted:
    def __init__(
        self,
        classes: CacheClassification,
        graph: Supergraph,
        misses: DataMisses,
        edges: Sequence[int],
    ) -> None:
        self._before, self._graph, self._misses, self._edges = classes, graph, misses, edges
        self._executions = [0] * len(graph.nodes)
        self._executions[graph.entry] = 1
        for edge, count in zip(graph.edges, edges, strict=True):
            self._executions[edge.dst] += count
        self._outermost: dict[int, int] = {}  # node -> loop
        for loop in sorted(graph.loops, key=lambda loop: len(loop.nodes)):
            self._outermost.update(dict.fromkeys(loop.nodes, loop.index))
        self._references: dict[Key, list[Reference]] = {}
        for node, references in enumerate(classes.references):
            for reference in references:
                if reference.kind in DATA:
                    key = node, reference.insn, reference.kind
                    self._references.setdefault(key, []).append(reference)

    def classes(self) -> CacheClassification:
        """The classification with counted misses."""
        counted = {key for key in self._references if self._countable(key)}
        others = (r for key, found in self._references.items() if key not in counted for r in found)
        if any(r.credited for r in others):
            return self._before
        sharing = {key for key, found in self._references.items() if any(map(_shares, found))}
        every = sharing <= counted and self._counts_less(sharing)
        if not every:
            counted -= sharing
        rows = {key: self._counted(key) for key in counted}
        first = [self._others(of_edge, every=every) for of_edge in self._before.first_misses]
        start = self._others(self._before.start_misses, every=every)
        for charge in (charge for _, charges in rows.values() for charge in charges):
            entered, starts = self._ways_in(charge.node)
            for edge in entered:
                first[edge] += (charge.reference,)
            start += (charge.reference,) if starts else ()
        return replace(
            self._before,
            references=tuple(
                tuple(self._replaced(node, of_node, rows))
                for node, of_node in enumerate(self._before.references)
            ),
            first_misses=tuple(first),
            start_misses=start,
            ranges=() if every else self._before.ranges,
        )

    def _countable(self, key: Key) -> bool:
        """Whether all accesses of an instruction were to cached memory."""
        node, insn, _ = key
        found = self._references[key]
        return (node, insn) not in self._misses.elsewhere and all(r.cacheable for r in found)

    def _replaced(
        self,
        node: int,
        references: Sequence[Reference],
        rows: Mapping[Key, tuple[tuple[Reference, ...], tuple[_Charge, ...]]],
    ) -> Iterator[Reference]:
        """The references of a node with counted ones in their places."""
        known = {
            key: iter(rows[key][0]) for r in references if (key := (node, r.insn, r.kind)) in rows
        }
        for reference in references:
            key = node, reference.insn, reference.kind
            yield next(known[key]) if key in known else reference

    def _others(self, charges: tuple[Reference, ...], *, every: bool) -> tuple[Reference, ...]:
        """The charges at the entry of loops that stay there."""
        return tuple(r for r in charges if not every or r.kind not in DATA)

    def _count(self, key: Key) -> int:
        """The lines or words of a reference that were counted."""
        node, insn, kind = key
        of_kind = self._misses.words if kind is ReferenceKind.STORE else self._misses.lines
        return of_kind.get((node, insn), 0)

    def _counts_less(self, sharing: set[Key]) -> bool:
        """Whether these loads are charged less if they are counted; some do not gain."""
        return sum(map(self._count, sharing)) <= self._shared()

    def _shared(self) -> Fraction:
        """The misses that lines, streams and ranges are charged on a path."""
        at_entries = zip(self._before.first_misses, self._edges, strict=True)
        charges = [(r, count) for of_edge, count in at_entries for r in of_edge]
        charges += [(r, 1) for r in self._before.start_misses]
        total = Fraction(0)
        for reference, count in charges:
            if reference.kind in DATA:
                stream = reference.stream
                line = 1 if stream is None else stream.line_bytes
                each = 1 if stream is None else stream.first(line)
                total += Fraction(count * each, line)
        of_ranges: Counter[int] = Counter()
        for (node, _, _), found in self._references.items():
            for reference in found:
                stream, runs = reference.stream, self._executions[node]
                if reference.range is not None:
                    of_ranges[reference.range] += runs
                elif stream is not None:
                    total += Fraction(runs * stream.share(stream.line_bytes), stream.line_bytes)
        return total + sum(min(runs, self._of_range(at)) for at, runs in of_ranges.items())

    def _of_range(self, at: int) -> int:
        """The misses of a range that is charged where its loop is entered."""
        lines = self._before.ranges[at]
        entered = sum(self._edges[e] for e in lines.entries) + lines.starts
        evicted = sum(self._executions[one.node] for one in lines.evictions)
        return entered * len(lines.charges) + evicted

    def _counted(self, key: Key) -> tuple[tuple[Reference, ...], tuple[_Charge, ...]]:
        """The references of an instruction when they are counted, and their charge."""
        node, _, kind = key
        found, count = self._references[key], self._count(key)
        due = [r for r in found if r.l1 is not HitClass.AH]
        each = sum(r.words for r in due) if kind is ReferenceKind.STORE else len(due)
        if not count or not due:
            return tuple(_as(HitClass.AH, r) for r in found), ()
        if count >= self._executions[node] * each:
            return tuple(r if r.l1 is HitClass.AH else _as(HitClass.NC, r) for r in found), ()
        scope = self._outermost.get(node)
        few = [
            r if r.l1 is HitClass.AH else _as(HitClass.CM, r)._replace(scope=scope) for r in found
        ]
        low, high = [r.low for r in due], [r.high for r in due]
        exact = None not in low and None not in high
        charge = _as(HitClass.CM, due[0])._replace(
            scope=scope,
            low=min(n for n in low if n is not None) if exact else None,
            high=max(n for n in high if n is not None) if exact else None,
            l2=due[0].l2 if len({r.l2 for r in due}) == 1 else HitClass.NC,
            misses=1 if kind is ReferenceKind.STORE else count,
            words=count if kind is ReferenceKind.STORE else due[0].words,
        )
        return tuple(few), (_Charge(node, charge),)

    def _ways_in(self, node: int) -> tuple[list[int], bool]:
        """The edges into the outermost loop around a node; whether paths start in it."""
        loop, graph = self._outermost.get(node), self._graph
        if loop is None:
            return [], True
        inside = graph.loops[loop].nodes
        edges = (e for n in inside for e in graph.predecessors[n])
        entered = sorted({e for e in edges if graph.edges[e].src not in inside})
        return entered, graph.entry in inside


def _shares(reference: Reference) -> bool:
    """Whether a reference shares charges with others, or from one execution to the next."""
    return (
        reference.l1 in (HitClass.FM, HitClass.PL)
        or reference.range is not None
        or reference.stream is not None
    )


def _as(l1: HitClass, reference: Reference) -> Reference:
    """The reference to cached memory with a class of its own."""
    return reference._replace(
        l1=l1, scope=None, stream=None, range=None, credited=False, uncached=False
    )
