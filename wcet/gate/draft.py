"""A first ``wcet.toml`` for an ELF: detected settings, and lines to fill in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from quoll.image.image import Image
from quoll.printable import printable
from wcet.platforms.platform_model import Platform

__all__ = ["draft", "entries_of"]

HANDLER = re.compile(
    r"irq|fiq|isr|svc|swi(?!tch)|syscall|interrupt|abort|undef|handler(?![a-z])", re.IGNORECASE
)
FIRST = re.compile(r"_*(arm_|vector|exc|isr|irq|fiq|svc|swi(?!tch))", re.IGNORECASE)
SHOWN = 12  # names of functions


def draft(
    image: Image,
    kernel: Path,
    platform: tuple[Platform, str] | None,
    reason: str,
    facts: str | None,
) -> str:
    """The text of the file; ``reason``: why this platform, or why none.

    ``platform``: with its evidence in the ELF; ``facts``: the name of a facts file beside it.
    """
    lines = _lines(image, kernel, platform, reason, facts)
    return "".join(f"{printable(line)}\n" for line in lines)


def entries_of(image: Image, platform: Platform | None) -> tuple[str, ...]:
    """The platform's entries in the ELF, else the most likely handler function."""
    known = () if platform is None else platform.entries
    found = [name for name in known if platform and _is_there(image, platform, name)]
    named = [name for name in (*_handlers(image), "main") if image.only_symbol(name) is not None]
    return tuple(found or named[:1])


def _lines(
    image: Image,
    kernel: Path,
    platform: tuple[Platform, str] | None,
    reason: str,
    facts: str | None,
) -> Iterator[str]:
    yield "# The inputs of 'wcet analyse', 'wcet baseline' and 'wcet check' without options."
    yield f"kernel = {_quoted(str(kernel))}"
    yield ""
    yield "# The command that builds the kernel, run in this folder before the kernel is read."
    yield '# build = "make"'
    yield ""
    yield f"# Core, caches and latencies ({reason}):"
    if platform is None:
        yield '# platform = "the name of a shipped one, or the path of a file.toml"'
    else:
        yield f"platform = {_quoted(platform[1])}"
    yield ""
    yield from _entries(image, None if platform is None else platform[0])
    neighbouring = kernel.with_suffix(".facts")
    yield ""
    yield "# Instructions after which every path ends, beyond exits of the platform and returns."
    yield '# exits = ["symbol+0xOFFSET"]'
    yield ""
    if facts is not None:
        yield "# Facts that the binary lacks: this file has lines to fill in."
        yield f"facts = [{_quoted(facts)}]"
    else:
        yield f"# Facts: {neighbouring.name} in the folder of the kernel is read; name others here."
        yield f"# facts = [{_quoted(f'{neighbouring.stem}-more.facts')}]"
    yield ""
    yield "# Where the compiler ran, if not here: paths of source files are relative to it."
    yield '# sources = "."'
    yield ""
    yield "# By how much a bound may grow beyond the baseline, in per cent."
    yield "# tolerance = 0"
    yield ""
    yield "# The most that an entry may take: cycles, or text with us, ms or s."
    yield "[budgets]"
    yield '# "interrupt latency" = "50 us"'


def _entries(image: Image, platform: Platform | None) -> Iterator[str]:
    found = entries_of(image, platform)
    if platform is not None and found and found[0] in platform.entries:
        yield "# Entries of the platform that this ELF has; symbols and addresses may stand here."
    else:
        yield "# No entry of the platform is in this ELF. Functions with names of handlers:"
        yield f"# {', '.join(_handlers(image)[:SHOWN]) or 'none'}"
    names = ", ".join(map(_quoted, found))
    yield f"entries = [{names}]" if found else '# entries = ["a function"]'


def _is_there(image: Image, platform: Platform, name: str) -> bool:
    point = platform.entries[name]
    known = any(image.only_symbol(symbol) is not None for symbol in point.symbols)
    return known or image.read(point.vector & ~1, 2) is not None


def _handlers(image: Image) -> list[str]:
    """Functions with names of handlers; names that begin like vector code come first."""
    found = (
        name
        for name in image.symbols.names()
        if HANDLER.search(name)
        and name.isprintable()
        and (symbol := image.only_symbol(name)) is not None
        and image.is_executable(symbol.addr)
    )
    return sorted(found, key=lambda name: (FIRST.match(name) is None, len(name), name))


def _quoted(text: str) -> str:
    """A string of TOML, which uses JSON's escapes."""
    return json.dumps(text, ensure_ascii=False)
