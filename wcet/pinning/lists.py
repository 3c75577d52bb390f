"""Pinned lines as a platform file for the analysis, and as a list of symbols for the kernel."""

from __future__ import annotations

from collections.abc import Iterator

from quoll.errors import InputError
from quoll.image.image import Image
from wcet.pinning.pins import PinnedCache, Pins, by_cache
from wcet.platforms.platform_model import Platform

__all__ = ["kernel_list", "with_pins"]

SECTIONS = {PinnedCache.INSTRUCTIONS: "instructions", PinnedCache.DATA: "data"}


def with_pins(platform: Platform, pins: Pins, ways: int) -> str:
    """The text of the platform's file with the lines as locked.

    Raises InputError if the file has no line with the head of a cache's table.
    """
    text = platform.path.read_text(encoding="utf-8")
    for cache, spans in by_cache(platform.hierarchy, pins).items():
        if not spans:
            continue
        head = f"[caches.{cache.value}]\n"
        if text.count(f"\n{head}") != 1:
            raise InputError(
                f"{platform.path}: no line is {head.strip()}, to which locked lines can be added"
            )
        ranges = ", ".join(f'"{first:#x}..{after:#x}"' for first, after in spans)
        text = text.replace(f"\n{head}", f"\n{head}locked = [{ranges}]\nlocked_ways = {ways}\n", 1)
    return text


def kernel_list(image: Image, platform: Platform, pins: Pins) -> str:
    """A section for each cache; a line of it: a symbol with an offset, or an address, and bytes."""
    return "".join(f"{line}\n" for line in _list(image, platform, pins))


def _list(image: Image, platform: Platform, pins: Pins) -> Iterator[str]:
    for cache, spans in by_cache(platform.hierarchy, pins).items():
        yield SECTIONS[cache]
        for first, after in spans:
            found = image.symbol_at(first)
            place = f"{first:#x}"
            if found is not None and image.only_symbol(found[0].name) is not None:
                place = f"{found[0].name}+{found[1]:#x}" if found[1] else found[0].name
            yield f"  {place} {after - first}"
