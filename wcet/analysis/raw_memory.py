"""The loaded memory: an ELF file, memory dumps of a running system over it, and more symbols."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from quoll.assumptions import AS_LOADED, Assumption, stated
from quoll.errors import UsageError
from quoll.facts.regions import MemoryRegions
from quoll.image.image import Image, RawMemory
from quoll.image.symbols import read_names

__all__ = ["NOTHING", "LoadedMemory", "add_memory", "loaded_memory", "refuse_several", "starting"]

RAW = re.compile(r"(?P<file>.+)@(?P<addr>0[xX][0-9a-fA-F]{1,8})(?P<constant>:r)?")


@dataclass(frozen=True, slots=True)
class LoadedMemory:
    """Memory loaded beside the ELF."""

    raw: tuple[RawMemory, ...] = ()
    names: tuple[Path, ...] = ()
    from_reset: bool = False  # paths start with memory as loaded

    def image(self, elf: Path) -> Image:
        """The image of the ELF with this memory. Raises InputError naming the wrong file."""
        symbols = tuple(symbol for path in self.names for symbol in read_names(path))
        return Image.load(elf, self.raw, symbols)


NOTHING = LoadedMemory()


def add_memory(p: argparse.ArgumentParser) -> None:
    """Add the options; ``loaded_memory`` reads them."""
    p.add_argument(
        "--raw",
        action="append",
        default=[],
        metavar="FILE@ADDRESS[:r]",
        help="bytes dumped from a running system, loaded at ADDRESS over the bytes of the ELF; "
        "':r': nothing writes to them, so loads from them are constants; repeatable",
    )
    p.add_argument(
        "--symbols",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="more symbols, one 'ADDRESS TYPE NAME' a line: the output of nm, System.map, "
        "/proc/kallsyms; repeatable",
    )
    p.add_argument(
        "--from-reset",
        action="store_true",
        help="when paths start, data are as in the ELF and .bss is zero: nothing has stored "
        "there before; for one entry (for others state: region NAME holds its initial contents at "
        "ENTRY)",
    )


def loaded_memory(options: argparse.Namespace) -> LoadedMemory:
    """The memory that a command line loads. Raises UsageError for text other than FILE@ADDRESS."""
    return LoadedMemory(tuple(dumps(options.raw)), tuple(options.symbols), options.from_reset)


def starting(
    image: Image, name: str, entry: int, regions: MemoryRegions, *, from_reset: bool
) -> tuple[Image, tuple[Assumption, ...]]:
    """``image`` on paths from the entry ``name``, and the assumptions about its memory.

    Raises UsageError if ``from_reset`` and no memory is as loaded.
    """
    spans = regions.contents_at(image, entry)
    if from_reset:
        in_place = image.loaded_in_place()
        if not in_place:
            raise UsageError(
                "--from-reset: no segment with data is loaded where the code finds it",
                hint="start-up code copies the data, or the platform maps them elsewhere: analyse "
                "from that code on, or state: region NAME holds its initial contents at ENTRY",
            )
        spans = (*spans, *in_place)
    if not spans:
        return image, ()
    text = ", ".join(f"{low:#x} to {high:#x}" for low, high in spans)
    facts = (stated(fact) for fact in regions.initial.get(entry & ~1, ()))
    listed = AS_LOADED.of(entry=name, spans=text)
    return image.starting_with(spans), (*facts, listed)


def refuse_several(entries: Collection[str]) -> None:
    """Raise UsageError for ``--from-reset`` with several entries: only one starts at reset."""
    if len(entries) > 1:
        raise UsageError(
            f"--from-reset is about paths from one entry, not from {len(entries)}",
            hint="--entry NAME, or for others the fact: region NAME holds its initial contents at "
            "ENTRY",
        )


def dumps(texts: Sequence[str]) -> list[RawMemory]:
    """The dumps in ``FILE@ADDRESS[:r]``."""
    found = []
    for text in texts:
        match = RAW.fullmatch(text)
        if match is None:
            raise UsageError(
                f"--raw {text} is not FILE@ADDRESS",
                hint="for example --raw vectors.bin@0xffff0000:r",
            )
        addr = int(match["addr"], 16)
        found.append(RawMemory(addr, match["file"], writable=match["constant"] is None))
    return found
