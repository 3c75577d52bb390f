"""What is loaded: an ELF file, memory dumped from a running system over it, and more symbols."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quoll.errors import UsageError
from quoll.image.image import Image, RawMemory
from quoll.image.symbols import read_names

__all__ = ["NOTHING", "Extra", "add_memory", "extra"]

RAW = re.compile(r"(?P<file>.+)@(?P<addr>0[xX][0-9a-fA-F]{1,8})(?P<constant>:r)?")


@dataclass(frozen=True, slots=True)
class Extra:
    """What is loaded beside the ELF."""

    raw: tuple[RawMemory, ...] = ()
    names: tuple[Path, ...] = ()

    def image(self, elf: Path) -> Image:
        """All of it. Raises InputError naming the file that is not what it should be."""
        symbols = tuple(symbol for path in self.names for symbol in read_names(path))
        return Image.load(elf, self.raw, symbols)


NOTHING = Extra()


def add_memory(p: argparse.ArgumentParser) -> None:
    """Add the options; ``extra`` reads them."""
    p.add_argument(
        "--raw",
        action="append",
        default=[],
        metavar="FILE@ADDRESS[:r]",
        help="bytes dumped from a running system, loaded at ADDRESS over what the ELF has there; "
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


def extra(options: argparse.Namespace) -> Extra:
    """What a command line asks to load. Raises UsageError for what is not FILE@ADDRESS."""
    return Extra(tuple(dumps(options.raw)), tuple(options.symbols))


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
