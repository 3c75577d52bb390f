"""The class of each memory reference: the input of the cost model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from math import prod
from typing import NamedTuple

from cache.dropped_lines import LineDrops
from quoll.assumptions import Assumption
from quoll.image.memory_map import Cacheability

__all__ = [
    "AT_HOME",
    "UNCACHED",
    "AccessStream",
    "CacheClassification",
    "HitClass",
    "LineEviction",
    "PersistentRange",
    "RangeUse",
    "Reference",
    "ReferenceKind",
]


class ReferenceKind(Enum):
    """The kind of a memory reference."""

    FETCH = "fetch"
    PREFETCH = "prefetch"  # a line that may be fetched past a transfer of control (rule 8)
    LOAD = "load"
    STORE = "store"
    WRITE_BACK = "write-back"  # dirty lines that a maintenance operation writes out

    __hash__ = object.__hash__  # in C: members are keys


class HitClass(Enum):
    """Classification at one level."""

    AH = "always hit"
    AM = "always miss"
    FM = "first miss"  # at most one miss per entry of the loop ``scope``
    CM = "counted misses"  # at most ``misses`` misses per entry of the loop ``scope``
    PL = "once per line"  # misses only where it enters another line than before (``AccessStream``)
    NC = "not classified"

    __hash__ = object.__hash__  # in C: members are keys


# The class of an access to memory that is never cached; AT_HOME needs no external access.
UNCACHED = {Cacheability.NEVER: HitClass.AM, Cacheability.ON_CHIP: HitClass.AH}
AT_HOME = (Cacheability.ALWAYS, Cacheability.ON_CHIP)


@dataclass(frozen=True, slots=True)
class AccessStream:
    """A load that advances ``stride`` bytes from one execution to the next, while ``loop`` runs.

    One line of ``line_bytes`` holds all of the ``width`` bytes that it may access. ``around``: the
    loops around it, from the innermost up to ``loop``. ``iterations``: most executions per entry of
    the loop, None if unknown.

    Of n executions, the first one misses, and so does each one that enters another line. A byte at
    most line_bytes - width within its line crosses at most (line_bytes - width + (n - 1) * stride)
    / line_bytes line ends in n - 1 steps, so the load misses at most

        n * stride / line_bytes + (2 * line_bytes - width - stride) / line_bytes

    times: ``share`` of a miss per execution, and ``first`` when the loop is entered.
    """

    loop: int
    line_bytes: int
    stride: int  # less than a line
    width: int
    around: tuple[int, ...]
    iterations: int | None = None

    def counted(self, iterations: Mapping[int, int]) -> AccessStream:
        """The stream with ``iterations`` from the most executions of each loop header per entry."""
        return replace(self, iterations=_product(self.around, iterations))

    def share(self, cycles: int) -> int:
        """Cycles per execution, from the ``cycles`` of a miss."""
        return -(-cycles * self.stride // self.line_bytes)

    def first(self, cycles: int) -> int:
        """Cycles at the loop entry, from the ``cycles`` of a miss."""
        if not self.stride:
            return cycles
        steps = 2 * self.line_bytes - self.stride - min(self.stride, self.width)
        return -(-cycles * steps // self.line_bytes)


class Reference(NamedTuple):
    """One cache line of one access, in one node (or, for PREFETCH, on one edge).

    FETCH references are one per cache line entered; LOAD and STORE one per cache line that the
    access may touch (an ldm of unknown alignment may touch one more than its size suggests).
    """

    insn: int  # index into the node's block
    kind: ReferenceKind
    low: int | None  # lowest and highest possible address of the first byte; None: unknown
    high: int | None
    words: int  # 32-bit words transferred to or from this line (stores are charged per word)
    cacheable: bool  # False: never cached
    l1: HitClass
    l2: HitClass | None  # None: no L2
    uncached: bool = False  # may be uncached memory or a device (True whenever not cacheable)
    scope: int | None = None  # index of the loop of first or counted misses (``LoopScopes``)
    stream: AccessStream | None = None  # of a reference that misses once per line
    drops: LineDrops | None = None  # of an operation that drops a line in few of its executions
    range: int | None = None  # the ``PersistentRange`` that it accesses, by its index
    credited: bool = False  # an earlier charged miss pays for this one
    symbolic: bool = False  # the address is followed relative to an unknown word (rule 13)
    vacates: bool = False  # its line may be dirty, and written back before it goes past L1
    misses: int = 1  # of counted misses; a store is charged for its ``words`` instead

    @property
    def due(self) -> bool:
        """Whether the reference is charged cycles beyond a hit where it stands.

        A hit that may be uncached is due as an uncached access; a stream is charged a share of a
        miss.
        """
        if self.l1 is HitClass.AH or self.credited:
            return self.uncached
        return self.l1 not in (HitClass.FM, HitClass.CM)


@dataclass(frozen=True, slots=True)
class RangeUse:
    """One access to a range. ``around``: the loops around it that lie in the loop of the range.

    ``stream``: it misses once per line that it passes, unless the range is charged at the entry.
    """

    around: tuple[int, ...]
    stream: AccessStream | None = None

    def misses(self, iterations: Mapping[int, int]) -> Fraction | None:
        """Misses charged per entry of the loop if the range is not; None if nothing limits them.

        The most executions of the loop headers per entry are ``iterations``.
        """
        runs = _product(self.around, iterations)
        if runs is None or self.stream is None:
            return None if runs is None else Fraction(runs)
        apart = tuple(loop for loop in self.around if loop not in self.stream.around)
        entries = _product(apart, iterations)
        assert entries is not None
        line = self.stream.line_bytes
        passed = runs * self.stream.share(line) + entries * self.stream.first(line)
        return min(Fraction(runs), Fraction(passed, line))


@dataclass(frozen=True, slots=True)
class LineEviction:
    """An access of ``node`` that may evict a line of a range, which then misses once more.

    ``charge``: for this miss, where the access stands. ``around``: as in ``RangeUse``.
    """

    node: int
    charge: Reference
    around: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PersistentRange:
    """Lines of which each misses at most once until a loop is left, and their accesses.

    ``charges``: a first miss for each line that no other charge at the loop's entry covers.
    ``entries``: the edges into the loop; ``starts``: whether the path starts at its header.
    ``evictions``: accesses that may make a line miss once more (``cache.contested``).
    """

    loop: int
    entries: tuple[int, ...]
    starts: bool
    charges: tuple[Reference, ...]
    uses: tuple[RangeUse, ...]
    evictions: tuple[LineEviction, ...] = ()

    def gains(self, iterations: Mapping[int, int]) -> bool:
        """Whether its accesses are charged more misses than it has lines and evictions."""
        of_uses = [use.misses(iterations) for use in self.uses]
        of_evictions = [_product(one.around, iterations) for one in self.evictions]
        evicted = sum(n for n in of_evictions if n is not None)
        if None in of_evictions:
            return False
        return None in of_uses or sum(n for n in of_uses if n is not None) > evicted + len(
            self.charges
        )


def _product(loops: tuple[int, ...], iterations: Mapping[int, int]) -> int | None:
    known = [iterations.get(loop) for loop in loops]
    return prod(n for n in known if n is not None) if None not in known else None


@dataclass(frozen=True, slots=True)
class CacheClassification:
    """References of a supergraph.

    ``references``: per node in program order. ``prefetches``: per edge. ``first_misses``: per edge,
    the charges when the edge enters loops: for each loop, the lines of its FM references that miss
    at most once until the loop is left, and its streams. ``start_misses``: the same charges for
    loops whose header starts the path. ``leaving``: per exit node, the lines that may be fetched
    past it before control has left; they delay the last accesses of the path. ``ranges``: more
    lines that can be charged where a loop is entered; until ``counted`` decides, each access to
    them is charged.
    """

    references: tuple[tuple[Reference, ...], ...]
    prefetches: tuple[tuple[Reference, ...], ...]
    first_misses: tuple[tuple[Reference, ...], ...]
    assumptions: tuple[Assumption, ...] = ()
    leaving: Mapping[int, tuple[Reference, ...]] = field(default_factory=dict)
    start_misses: tuple[Reference, ...] = ()
    ranges: tuple[PersistentRange, ...] = ()

    def counted(self, iterations: Mapping[int, int]) -> CacheClassification:
        """The classification with loop counts: most executions of each loop header per entry.

        The counts decide which loads gain by being charged once per line (``AccessStream``), which
        ranges by being charged when their loop is entered (``PersistentRange``), and the charges of
        invalidations (``LineDrops``).
        """
        gaining = {
            at: lines.loop for at, lines in enumerate(self.ranges) if lines.gains(iterations)
        }

        def of(references: tuple[Reference, ...]) -> tuple[Reference, ...]:
            if all(r.stream is None and r.range is None and r.drops is None for r in references):
                return references
            return tuple(
                r._replace(l1=HitClass.FM, scope=gaining[r.range], stream=None, range=None)
                if r.range in gaining
                else r._replace(
                    stream=r.stream and r.stream.counted(iterations),
                    range=None,
                    drops=r.drops and r.drops.counted(iterations),
                )
                for r in references
            )

        def once(references: tuple[Reference, ...]) -> tuple[Reference, ...]:
            """Charges at the entry of loops, without the streams in ranges charged there."""
            return of(tuple(r for r in references if r.range not in gaining))

        evicting = _by_node([self.ranges[at] for at in gaining])
        first = [once(references) for references in self.first_misses]
        start = once(self.start_misses)
        for edge, charges in _by_edge([self.ranges[at] for at in gaining]).items():
            if edge is None:
                start += charges
            else:
                first[edge] += charges
        return replace(
            self,
            references=tuple(
                _with_evictions(of(references), evicting.get(node, ()))
                for node, references in enumerate(self.references)
            ),
            first_misses=tuple(first),
            start_misses=start,
            ranges=(),
        )


def _by_node(ranges: Sequence[PersistentRange]) -> dict[int, tuple[Reference, ...]]:
    """The charges for evictions from ``ranges``, by node."""
    found: dict[int, tuple[Reference, ...]] = {}
    for lines in ranges:
        for one in lines.evictions:
            found[one.node] = (*found.get(one.node, ()), one.charge)
    return found


def _with_evictions(
    references: tuple[Reference, ...], evictions: tuple[Reference, ...]
) -> tuple[Reference, ...]:
    """The references of a node in the order of its instructions, evictions last."""
    if not evictions:
        return references
    return tuple(sorted((*references, *evictions), key=lambda r: r.insn))


def _by_edge(ranges: Sequence[PersistentRange]) -> dict[int | None, tuple[Reference, ...]]:
    """The charges of ``ranges``, one per line and loop, on each edge; None: where the path starts.

    Ranges of one loop may share lines.
    """
    found: dict[int | None, dict[tuple[int | None, int | None], Reference]] = {}
    for lines in ranges:
        for edge in (*lines.entries, *((None,) if lines.starts else ())):
            of_edge = found.setdefault(edge, {})
            for charge in lines.charges:
                of_edge.setdefault((charge.scope, charge.low), charge)
    return {edge: tuple(of_edge.values()) for edge, of_edge in found.items()}
