"""A first ``wcet.toml`` for an ELF: what can be seen of it, and what its author has to say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from quoll.image.image import Image
from quoll.printable import printable
from wcet.platforms.outside import outside_map
from wcet.platforms.platform import Platform

__all__ = ["draft"]

HANDLER = re.compile(
    r"irq|fiq|isr|svc|swi(?!tch)|syscall|interrupt|abort|undef|handler(?![a-z])", re.IGNORECASE
)
FIRST = re.compile(r"_*(arm_|vector|exc|isr|irq|fiq|svc|swi(?!tch))", re.IGNORECASE)
SHOWN = 12  # names of functions


def draft(image: Image, kernel: Path, platform: Platform | None, reason: str) -> str:
    """The text of the file; ``reason`` says why this platform, or why none."""
    return "".join(f"{printable(line)}\n" for line in _lines(image, kernel, platform, reason))


def _lines(image: Image, kernel: Path, platform: Platform | None, reason: str) -> Iterator[str]:
    yield "# What 'wcet analyse', 'wcet baseline' and 'wcet check' analyse without further words."
    yield f"kernel = {_quoted(str(kernel))}"
    yield ""
    yield f"# Core, caches and latencies ({reason}):"
    if platform is None:
        yield '# platform = "the name of a shipped one, or the path of a file.toml"'
    else:
        yield f"platform = {_quoted(platform.name)}"
    yield ""
    yield from _entries(image, platform)
    if platform is not None:
        yield from _outside(image, platform)
    beside = kernel.with_suffix(".facts")
    yield ""
    yield f"# Facts: {beside.name} beside the kernel is read; here stand others."
    yield f'# facts = ["{beside.stem}-more.facts"]'
    yield ""
    yield "# Where the compiler ran, if not here: paths of source files are relative to it."
    yield '# sources = "."'
    yield ""
    yield "# By how much a bound may grow beyond the baseline, in per cent."
    yield "# tolerance = 0"
    yield ""
    yield "# What an entry may take at most: cycles, or text with us, ms or s."
    yield "[budgets]"
    yield '# "interrupt latency" = "50 us"'


def _entries(image: Image, platform: Platform | None) -> Iterator[str]:
    found = (
        [] if platform is None else [n for n in platform.entries if _is_there(image, platform, n)]
    )
    if found:
        yield "# Entries of the platform that this ELF has; symbols and addresses may stand here."
        yield f"entries = [{', '.join(map(_quoted, found))}]"
        return
    named = _handlers(image)
    yield "# No entry of the platform is in this ELF. Functions with names of handlers:"
    yield f"# {', '.join(named[:SHOWN]) or 'none'}"
    first = next((n for n in (*named, "main") if image.symbol(n) is not None), None)
    yield f"entries = [{_quoted(first)}]" if first else '# entries = ["a function"]'


def _is_there(image: Image, platform: Platform, name: str) -> bool:
    point = platform.entries[name]
    known = any(image.symbol(symbol) is not None for symbol in point.symbols)
    return known or image.read(point.vector & ~1, 2) is not None


def _handlers(image: Image) -> list[str]:
    """Functions with names of handlers, those first that begin like code of vectors."""
    found = (
        name
        for name in image.symbols.names()
        if HANDLER.search(name)
        and name.isprintable()
        and (symbol := image.symbol(name)) is not None
        and image.is_executable(symbol.addr)
    )
    return sorted(found, key=lambda name: (FIRST.match(name) is None, len(name), name))


def _outside(image: Image, platform: Platform) -> Iterator[str]:
    """Sections that no memory of the platform covers, with the fact that would help."""
    ranges = outside_map(image, platform.hierarchy.memory)
    if ranges:
        yield ""
        yield "# The platform says nothing of the memory of these sections, so every access there"
        yield "# is charged as uncached. If it is cached, state in a facts file:"
        for found in ranges:
            yield f"#   {found.fact}     ({', '.join(found.sections)})"


def _quoted(text: str) -> str:
    """A string of TOML, which has the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False)
