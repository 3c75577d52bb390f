"""Lines that other accesses of a loop may evict: the access that may evict one is charged for it.

A table is persistent in a loop (``cache.ranges``) if no other line of its sets is touched there.
One access to a competing line, or of unknown address, need not make every access to the table a
miss: a fill evicts one line at most.

    Claim: let C be lines of different sets. From one entry of a loop to the next, the lines of C
    miss at most |C| times, and once more for each fill of their sets by another line.
    Potential of a line: its charges less its misses. It is at least one, or the line is in the
    cache: at the entry the line is charged once; an access to it misses only if it is absent, and
    then it is there; only a fill of its set by another line evicts it, which is charged for it.

The claim holds for every policy that evicts only to make room in the set of the filled line, and it
counts all accesses to C, also if another charge pays for them. When loops are bounded,
``CacheClassification.counted`` chooses these charges or one for each access to C.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cache.data_accesses import DataAccess
from cache.geometry import CacheGeometry
from cache.reference import UNCACHED, HitClass, Reference
from quoll.arm.insn import AccessKind

__all__ = ["ContestedLines", "LineFill", "contested_lines"]


@dataclass(frozen=True, slots=True)
class ContestedLines:
    """Lines C of different sets of a cache. ``sets``: bit n for set n."""

    lines: frozenset[int]
    sets: int
    geometry: CacheGeometry

    @staticmethod
    def of(lines: Iterable[int], geometry: CacheGeometry) -> ContestedLines:
        """These lines, which must be of different sets."""
        found = frozenset(lines)
        sets = sum(1 << geometry.index_set_of(line) for line in found)
        return ContestedLines(found, sets, geometry)

    def evicted_by(self, access: DataAccess) -> bool:
        """Whether ``access`` may fill a set of one of the lines with another line, or drop one."""
        fills = access.access is not AccessKind.STORE or self.geometry.write_allocate
        changes = fills or access.may_bypass
        if not changes or access.memory in UNCACHED or not access.sets & self.sets:
            return False
        if access.candidates is None:
            return True
        at = self.geometry.index_set_of
        others = (n for n in access.candidates if access.may_bypass or n not in self.lines)
        return any(self.sets >> at(n) & 1 for n in others)


@dataclass(frozen=True, slots=True)
class LineFill:
    """An access of a node that may fill a line, with its class."""

    access: DataAccess
    reference: Reference

    def evicts(self, lines: ContestedLines) -> bool:
        """Whether it may evict one of ``lines``."""
        return self.reference.l1 is not HitClass.AH and lines.evicted_by(self.access)


def contested_lines(
    accesses: Sequence[DataAccess],
    wanted: Iterable[tuple[int, ...]],
    geometry: CacheGeometry,
) -> frozenset[int]:
    """Lines C of a loop, none if they cannot gain.

    ``accesses``: all of the loop. ``wanted``: for each that may be charged with C, its lines.
    Executed equally often, those to C must be more than those that may evict a line of it.
    """
    often = Counter(wanted)
    found = ContestedLines.of(_apart(often, geometry.index_sets), geometry)
    inside = sum(count for lines, count in often.items() if found.lines.issuperset(lines))
    return found.lines if inside > sum(map(found.evicted_by, accesses)) else frozenset()


def _apart(often: Counter[tuple[int, ...]], sets: int) -> frozenset[int]:
    """Lines of different sets: of the most frequent ranges first, then of the longest ones."""
    chosen: dict[int, int] = {}
    for lines in sorted(often, key=lambda lines: (-often[lines], -len(lines), lines)):
        places = {line % sets: line for line in lines}
        if len(places) == len(lines) and all(chosen.get(s, n) == n for s, n in places.items()):
            chosen.update(places)
    return frozenset(chosen.values())
