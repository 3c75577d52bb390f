"""Sets of pinned lines, at most as many of one set as there are locked ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from cache.geometry import CacheGeometry, CacheHierarchy
from cache.locked import LockedLines

__all__ = [
    "NO_PINS",
    "PinnedCache",
    "PinnedLine",
    "Pins",
    "fitting",
    "geometry_of",
    "locked",
    "set_of",
]

PAGE = 4096  # bytes; translation preserves an address modulo this


class PinnedCache(Enum):
    """A first-level cache, by its table in the platform file."""

    INSTRUCTIONS = "l1i"
    DATA = "l1d"


@dataclass(frozen=True, slots=True, order=True)
class PinnedLine:
    """A line of a cache by its virtual number: its address divided by the bytes of a line."""

    cache: str  # value of a PinnedCache: members have no order
    number: int


Pins = frozenset[PinnedLine]
NO_PINS: Pins = frozenset()


def geometry_of(hierarchy: CacheHierarchy, cache: str) -> CacheGeometry:
    """The sizes of a cache."""
    return hierarchy.l1i if cache == PinnedCache.INSTRUCTIONS.value else hierarchy.l1d


def set_of(hierarchy: CacheHierarchy, line: PinnedLine) -> tuple[str, int]:
    """Lines of different sets here are in different sets of the cache, however pages are mapped."""
    geometry = geometry_of(hierarchy, line.cache)
    known = min(geometry.sets, max(1, PAGE // geometry.line_bytes))
    return line.cache, line.number % known


def fitting(hierarchy: CacheHierarchy, lines: Iterable[PinnedLine], ways: int) -> Pins:
    """The first ``ways`` lines of each set, in the given order."""
    taken: dict[tuple[str, int], list[PinnedLine]] = {}
    for line in dict.fromkeys(lines):
        own = taken.setdefault(set_of(hierarchy, line), [])
        if len(own) < ways:
            own.append(line)
    return frozenset(line for own in taken.values() for line in own)


def locked(hierarchy: CacheHierarchy, pins: Pins, ways: int) -> CacheHierarchy:
    """The caches with the lines in locked ways; a cache without pinned lines is unchanged."""
    spans = by_cache(hierarchy, pins)
    own_i, own_d = spans[PinnedCache.INSTRUCTIONS], spans[PinnedCache.DATA]
    if own_i:
        l1i = replace(hierarchy.l1i, locked_ways=ways)
        lines = LockedLines.of(own_i, l1i.line_bytes)
        hierarchy = replace(hierarchy, l1i=l1i, locked_i=lines)
    if own_d:
        l1d = replace(hierarchy.l1d, locked_ways=ways)
        lines = LockedLines.of(own_d, l1d.line_bytes)
        hierarchy = replace(hierarchy, l1d=l1d, locked_d=lines)
    return hierarchy


def by_cache(
    hierarchy: CacheHierarchy, pins: Pins
) -> Mapping[PinnedCache, tuple[tuple[int, int], ...]]:
    """By cache the ranges of addresses, first byte and byte after the last, ascending."""
    found: dict[PinnedCache, tuple[tuple[int, int], ...]] = {}
    for cache in PinnedCache:
        size = geometry_of(hierarchy, cache.value).line_bytes
        own = [(p.number * size, (p.number + 1) * size) for p in pins if p.cache == cache.value]
        spans = LockedLines.of(own, size).spans
        found[cache] = tuple((first * size, (last + 1) * size) for first, last in spans)
    return found
