"""A first ``wcet.toml`` for an ELF: detected settings, and lines to fill in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quoll.errors import UsageError
from quoll.image.image import Image
from quoll.printable import printable
from wcet.gate.exception_entries import EntryKind, ExceptionEntry, exception_entries
from wcet.platforms.outside import outside_map
from wcet.platforms.platform_model import EntryPoint, Platform

__all__ = ["ChosenEntries", "draft", "entries_of", "other_board", "sources_of"]

HANDLER = re.compile(
    r"irq|fiq|isr|svc|swi(?!tch)|syscall|interrupt|abort|undef|handler(?![a-z])", re.IGNORECASE
)
SHOWN = 12  # names of functions


@dataclass(frozen=True, slots=True)
class ChosenEntries:
    """The entries of a draft, with the comment above them."""

    names: tuple[str, ...]
    comment: tuple[str, ...]


def draft(
    kernel: Path,
    platform: tuple[Platform, str] | None,
    reason: str,
    facts: str | None,
    entries: ChosenEntries,
    other: Sequence[str] = (),
    sources: Path | None = None,
) -> str:
    """The text of the file; ``reason``: why this platform, or why none.

    ``platform``: with its evidence in the ELF; ``facts``: the name of a facts file beside it;
    ``other``: the remarks of ``other_board``; ``sources``: where the compiler ran, if not here.
    """
    lines = _lines(kernel, platform, reason, facts, entries, other, sources)
    return "".join(f"{printable(line)}\n" for line in lines)


def entries_of(image: Image, platform: Platform | None, named: Sequence[str]) -> ChosenEntries:
    """The entries that the user ``named``; else the platform's; else handlers of exception vectors.

    Raises UsageError if there are none: names of functions are no evidence.
    """
    if named:
        return ChosenEntries(tuple(named), ("Entries; symbols and addresses may stand here.",))
    points = {} if platform is None else platform.entries
    known = tuple(name for name, point in points.items() if _has_symbol(image, point))
    handlers = () if known else exception_entries(image)
    chosen = tuple(h.name for h in handlers if h.kind is EntryKind.HANDLER)
    if chosen:
        return ChosenEntries(chosen, tuple(_handler_lines(handlers)))
    known = known or tuple(n for n, point in points.items() if _has_vector(image, point))
    if known:
        text = "Entries of the platform that this ELF has; symbols and addresses may stand here."
        return ChosenEntries(known, (text,))
    raise _no_entry(image, handlers)


def sources_of(image: Image, kernel: Path) -> Path | None:
    """The folder above the kernel in which the compiler ran, if only there its sources are found.

    An ELF may name any folder; one that is not above it may hold files of other people.
    """
    named = [Path(path) for path in image.lines.paths]
    relative = [path for path in named if not path.is_absolute()]
    if any(path.is_file() for path in relative):
        return None
    above = kernel.resolve().parents[:-1]
    for text in image.compiler_folders:
        folder = Path(text)
        if folder in above and any((folder / path).is_file() for path in relative):
            return folder
    return None


def other_board(image: Image, platform: Platform, named: str | None) -> tuple[str, ...]:
    """Remarks if only the core chose the platform, and the ELF is linked to other memory.

    They name the three figures that make a board of the user's, and how to get each.
    """
    outside = () if named else outside_map(image, platform.hierarchy.memory)
    if not outside:
        return ()
    ranges = ", ".join(f"{one.low:#x} to {one.high:#x}" for one in outside)
    return (
        f"this is not the board {platform.name}, which has the same core but other memory: until "
        "you describe yours, its clock and latencies are charged, and only cycles count",
        f"your board is three figures more: wcet platform new BOARD --from {platform.name}",
        f"  [[memory]]: the ranges of RAM ({ranges} are used), as in the linker script",
        "  latency.memory_*: the cycle counter around loads from uncached RAM, the slowest one",
        "  clock_hz: cycles of that counter in a second of a timer ('wcet help your-board')",
    )


def _handler_lines(handlers: Sequence[ExceptionEntry]) -> Iterator[str]:
    """A line for each handler, with its exceptions; one for all nameless ones that never end."""
    yield "Entries to which the exception vectors lead; symbols and addresses may stand here."
    endless: list[str] = []
    for handler in handlers:
        if handler.kind is EntryKind.ENDLESS and handler.name == f"{handler.word:#x}":
            endless += handler.exceptions
            continue
        left_out = "" if handler.kind is EntryKind.HANDLER else f"; left out: {handler.kind.value}"
        yield f"  {', '.join(handler.exceptions)}: {handler.name}{left_out}"
    if endless:
        yield f"  {', '.join(endless)}: left out, as none of them ends"


def _no_entry(image: Image, handlers: Sequence[ExceptionEntry]) -> UsageError:
    if handlers:
        found = "; ".join(line.strip() for line in list(_handler_lines(handlers))[1:])
        message = f"no exception vector leads to a handler that ends: {found}"
    else:
        message = "the ELF has no table of exception vectors that says where its entries are"
    likely = ", ".join(_handlers(image)[:SHOWN])
    hint = "name the entries: wcet init KERNEL.ELF --entry NAME"
    return UsageError(
        message, hint=f"{hint}; functions with names of handlers: {likely}" if likely else hint
    )


def _lines(
    kernel: Path,
    platform: tuple[Platform, str] | None,
    reason: str,
    facts: str | None,
    entries: ChosenEntries,
    other: Sequence[str],
    sources: Path | None,
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
        yield from (f"# {line}" for line in other)
        yield f"platform = {_quoted(platform[1])}"
    yield ""
    yield from (f"# {line}" for line in entries.comment)
    yield f"entries = [{', '.join(map(_quoted, entries.names))}]"
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
    yield '# sources = "."' if sources is None else f"sources = {_quoted(str(sources))}"
    yield ""
    yield "# By how much a bound may grow beyond the baseline, in per cent."
    yield "# tolerance = 0"
    yield ""
    yield "# The most that an entry may take: cycles, or text with us, ms or s."
    yield "[budgets]"
    yield '# "interrupt latency" = ' + ("50_000" if other else '"50 us"')


def _has_symbol(image: Image, point: EntryPoint) -> bool:
    return any(image.only_symbol(symbol) is not None for symbol in point.symbols)


def _has_vector(image: Image, point: EntryPoint) -> bool:
    return image.read(point.vector & ~1, 2) is not None


def _handlers(image: Image) -> list[str]:
    """Functions with names of handlers, the shortest name first."""
    found = {
        symbol.name
        for symbol in image.symbols.symbols
        if symbol.kind == "func"
        and HANDLER.search(symbol.name)
        and symbol.name.isprintable()
        and image.only_symbol(symbol.name) is not None
    }
    return sorted(found, key=lambda name: (len(name), name))


def _quoted(text: str) -> str:
    """A string of TOML, which uses JSON's escapes."""
    return json.dumps(text, ensure_ascii=False)
