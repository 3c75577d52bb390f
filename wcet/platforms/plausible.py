"""Finds implausible values of a platform file, and values that do not fit a binary.

A file that loads may still give sizes in KiB, an exclusive end, or memory without the code. Each
finding is a sentence that starts with its key; lines to write may follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from cache.geometry import CacheGeometry
from cache.initial import InitialContentsKind
from pipeline.core import load_core
from quoll.image.image import Image
from quoll.image.memory_map import Cacheability, MemoryRegion, RegionKind
from quoll.preemption.predicate import MOST_CASES
from quoll.printable import printable, shortened
from quoll.spelling import did_you_mean
from wcet.platforms.outside import outside_map
from wcet.platforms.platform_model import COPIED, INTERRUPT, Platform, cores

__all__ = ["copied_figures", "implausible", "unfit"]

PAGE = 1024  # bytes of the smallest page of any ARM core
CLOCKS = range(10**6, 10**10 + 1)  # Hz
SIZES = range(1 << 10, (64 << 20) + 1)  # bytes of a cache
LINES = range(16, 257)  # bytes
NO_SOURCE = ("", "...")


def copied_figures(platform: Platform) -> tuple[str, ...]:
    """Keys whose source states that they were copied from another board."""
    return tuple(key for key, text in platform.sources.items() if text.startswith(COPIED))


def implausible(platform: Platform) -> tuple[str, ...]:
    """Findings about implausible values."""
    return (
        *_figures(platform),
        *_caches(platform),
        *_memory(platform),
        *_addresses(platform),
        *_optimism(platform),
        *_rows(platform),
    )


def unfit(platform: Platform, image: Image) -> tuple[str, ...]:
    """The code and data of a binary outside the platform's map."""
    found: list[str] = []
    memory = platform.hierarchy.memory
    for outside in outside_map(image, memory):
        found.append(
            f"memory: {printable(', '.join(outside.sections))} of the binary is in no [[memory]], "
            "so every access there is charged as uncached. If it is cached RAM, write:\n"
            f'[[memory]]\nname = "RAM"\nvirtual = [{outside.low:#010x}, {outside.high:#010x}]\n'
            'kind = "cached"\nfixed = true'
        )
    there = [
        name
        for name, point in platform.entries.items()
        if any(image.only_symbol(symbol) is not None for symbol in point.symbols)
        or image.read(point.vector & ~1, 2) is not None
    ]
    if not there:
        found.append("entries: the binary has none of them")
    ends = (name.startswith(platform.exits) for name in image.symbols.names())
    if platform.exits and not any(ends):
        found.append("exits: no symbol of the binary begins with one of these")
    return tuple(found)


def _figures(platform: Platform) -> Iterator[str]:
    if platform.clock_hz not in CLOCKS:
        yield f"clock_hz: {platform.clock_hz:,} Hz: the unit is Hz, not MHz"
    for key, source in platform.sources.items():
        if source.strip() in NO_SOURCE:
            yield f"{key}: it has no source"
    off, on = platform.access_by_l2
    if platform.l2 is not None:
        if on < off:
            yield (
                f"latency.memory_l2_on: {on} cycles: a miss in the level-2 cache takes less than "
                f"memory without it, {off}"
            )
        if platform.l2_hit >= on:
            yield f"latency.l2_hit: {platform.l2_hit} cycles: no less than memory, {on}"


def _rows(platform: Platform) -> Iterator[str]:
    """Findings about impossible rows in a user's core."""
    timing = platform.timing
    if timing.own_rows is None:
        return
    known = {row for core in cores() for row in load_core(core, timing.profile).rows}
    for row in load_core(timing.core, timing.profile, timing.own_rows).rows:
        if row not in known:
            meant = did_you_mean(", ".join(row), map(", ".join, known))
            yield (
                f"core.name: the row {printable(shortened(', '.join(row)))} is in no core of the "
                f"project{meant and f': {meant}'}"
            )


def _caches(platform: Platform) -> Iterator[str]:
    known = platform.hierarchy
    caches: dict[str, CacheGeometry | None] = {
        "l1i": known.l1i,
        "l1d": known.l1d,
        "l2": platform.l2,
    }
    for name, cache in caches.items():
        if cache is None:
            continue
        if cache.size not in SIZES:
            yield f"caches.{name}.size: {cache.size:,} bytes: the unit is bytes, not KiB"
        if cache.line_bytes not in LINES:
            yield f"caches.{name}.line: {cache.line_bytes} bytes: lines have 16 to 256 bytes"
    if platform.l2 is not None:
        for name, cache in (("l1i", known.l1i), ("l1d", known.l1d)):
            if platform.l2.size < cache.size:
                yield f"caches.l2.size: {platform.l2.size:,} bytes, less than caches.{name}"
            if platform.l2.line_bytes < cache.line_bytes:
                yield f"caches.l2.line: {platform.l2.line_bytes} bytes, less than caches.{name}"


def _memory(platform: Platform) -> Iterator[str]:
    regions = platform.hierarchy.memory.regions
    if not any(region.kind is RegionKind.CACHED for region in regions):
        yield "memory: no entry is cached, so every access is charged as uncached"
    for region in regions:
        if region.low % PAGE or (region.high + 1) % PAGE:
            yield (
                f"memory: {region.name!r} is {region.low:#010x} to {region.high:#010x}, not whole "
                "pages: the last address is included, as in [0xF0000000, 0xF7FFFFFF]"
            )
        if region.physical is not None and region.physical + _size(region) > 1 << 32:
            yield f"memory: {region.name!r} ends behind the last physical address"
    for a, b in combinations(regions, 2):
        if a.kind is not b.kind and _meet(a, b):
            yield (
                f"memory: {a.name!r} and {b.name!r} name the same physical memory, as "
                f"{a.kind.value} and as {b.kind.value}"
            )
    mirrors = sorted(platform.hierarchy.memory.mirrors, key=lambda mirror: mirror.low)
    for first, second in pairwise(mirrors):
        if second.low <= first.high:
            yield f"mirror: {second.low:#010x} is in two of them"
    for mirror in mirrors:
        end = mirror.of + mirror.high - mirror.low
        if mirror.of <= mirror.high and mirror.low <= end:
            yield (
                f"mirror: {mirror.low:#010x} to {mirror.high:#010x} lies inside the memory that "
                "it mirrors"
            )
        if not any(_holds_physical(region, mirror.of) for region in regions):
            yield f"mirror: of = {mirror.of:#010x} is the physical address of no [[memory]]"


def _addresses(platform: Platform) -> Iterator[str]:
    memory = platform.hierarchy.memory
    for name, point in platform.entries.items():
        if memory.region(point.vector) is None:
            yield f"entries.{name}.vector: {point.vector:#010x} is in no [[memory]]"
    if INTERRUPT not in platform.entries:
        yield f"entries: none is called {INTERRUPT}, so no interrupt latency is given"
    yield from _controller(platform)
    for low, high, size in platform.tlb.large if platform.tlb is not None else ():
        if low % size or (high + 1) % size:
            yield f"tlb.large: {low:#010x} to {high:#010x} is not whole pages of {size:,} bytes"


def _controller(platform: Platform) -> Iterator[str]:
    """Registers that are no words of devices, and lines that are too many to analyse."""
    memory, known = platform.hierarchy.memory, platform.pending
    words = [(one.key, register) for one in known.fields for register in sorted(one.registers)]
    words += [("controller.stores", register) for register in sorted(known.stores)]
    words += [("controller.disables", register) for register in sorted(known.disables)]
    words += [("controller.loads", register) for register in sorted(known.loads)]
    for key, register in words:
        if memory.cacheability(register, register + 3) is not Cacheability.NEVER:
            yield f"{key}: {register:#010x} is in no [[memory]] of kind device"
        if register % 4:
            yield f"{key}: {register:#010x} is no address of a word"
    for one in known.fields:
        if len(one.cases) > MOST_CASES:
            yield (
                f"{one.key}: {len(one.cases):,} lines, each of which is an analysis of values: "
                "name those that are used"
            )


def _optimism(platform: Platform) -> Iterator[str]:
    """Findings about figures that may be too small for any board of this kind."""
    known, timing = platform.hierarchy, platform.timing
    if not known.fetch_ahead:
        yield "core.fetch_ahead: 0 bytes: every pipelined core prefetches"
    state = timing.entry
    if not (state.load_misses or state.store_words or state.fetch_misses):
        yield "entry_state: nothing is under way when an exception is taken"
    clean = known.l1d.write_through or known.initial_d.contents is not InitialContentsKind.UNKNOWN
    if not (timing.memory.dirty_l1_victims or clean):
        yield "dirty_victims.l1: false, though a write-back cache may hold dirty lines at an entry"


def _size(region: MemoryRegion) -> int:
    return region.high - region.low + 1


def _holds_physical(region: MemoryRegion, addr: int) -> bool:
    return region.physical is not None and 0 <= addr - region.physical < _size(region)


def _meet(a: MemoryRegion, b: MemoryRegion) -> bool:
    return (
        a.physical is not None
        and b.physical is not None
        and a.physical < b.physical + _size(b)
        and b.physical < a.physical + _size(a)
    )
