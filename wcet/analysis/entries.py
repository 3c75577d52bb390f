"""Starts and exits of paths: the requested entries, and the exits of the platform."""

from __future__ import annotations

from quoll.errors import FactsError, UsageError
from quoll.facts.fact import FactSource
from quoll.facts.fact_places import find_place
from quoll.facts.guidance import PathEndFact
from quoll.image.elf import SAY_WHICH
from quoll.image.image import Image
from quoll.spelling import nearest, suggestion
from wcet.platforms.platform_model import EntryPoint, Platform

__all__ = ["ALL", "exit_facts", "find_entries", "find_entry", "path_exits", "platform_entry"]

ALL = "all"
NAMED = 4  # tables in a hint


def find_entries(image: Image, platform: Platform, names: tuple[str, ...]) -> dict[str, int]:
    """Address of each entry, bit 0 set for Thumb code; ``all``: every entry of the platform.

    A name of the platform denotes the first of its symbols that exists, else its vector. Raises
    UsageError for a name that is no entry of the platform, no symbol and no address.
    """
    wanted = [n for name in names for n in (platform.entries if name == ALL else [name])]
    return {name: find_entry(image, platform, name) for name in wanted}


def find_entry(image: Image, platform: Platform, name: str) -> int:
    """Address of one entry, as ``find_entries`` gives it."""
    point = platform.entries.get(name)
    if point is not None:
        address = platform_entry(image, point)
        if address is None:
            raise _no_such_entry(image, name, point)
        return address
    try:
        (address,) = find_place(image, name, names=(*platform.entries, ALL)).words
    except (FactsError, ValueError) as fault:
        raise UsageError(
            f"no entry {name!r}: {fault}",
            hint=f"platform {platform.name} knows {', '.join(platform.entries)}",
        ) from fault
    return address


def platform_entry(image: Image, point: EntryPoint) -> int | None:
    """Address of an entry of the platform, bit 0 set for Thumb code; None if the ELF lacks it."""
    symbols = filter(None, map(image.symbol, point.symbols))
    address = next((s.addr | s.thumb for s in symbols), point.vector)
    return None if image.read(address & ~1, 2) is None else address


def _no_such_entry(image: Image, name: str, point: EntryPoint) -> UsageError:
    known = list(image.symbols.names())
    near = [n for word in (*point.symbols, name) for n in nearest(word, known)]
    meant = suggestion(list(dict.fromkeys(near)))
    several = image.overlaid(point.vector)
    why = several or f"nothing is loaded at the vector {point.vector:#010x}"
    hint = f"name a symbol or an address with --entry{meant and f'; {meant}'}"
    return UsageError(
        f"entry {name}: none of the symbols {', '.join(point.symbols)} exists, and {why}",
        hint=f"{SAY_WHICH}; or name a symbol"
        if several
        else f"{hint}{_elsewhere(image, point.vector)}",
    )


def _elsewhere(image: Image, vector: int) -> str:
    """A hint: the same vector in tables at other addresses in code."""
    from quoll.arm.exception_table import SIZE, exception_tables  # it loads the disassembler

    found = [f"--entry {table.addr + vector % SIZE:#x}" for table in exception_tables(image)]
    return f"; a table of vectors has it at {', '.join(found[:NAMED])}" if found else ""


def path_exits(image: Image, platform: Platform) -> frozenset[int]:
    """The platform's exits that this ELF has."""
    names = (n for n in image.symbols.names() if n.startswith(platform.exits))
    return frozenset(s.addr for name in names for s in image.symbols.named(name))


def exit_facts(places: tuple[str, ...]) -> tuple[PathEndFact, ...]:
    """The facts of ``--end``, listed like facts of files."""
    return tuple(
        PathEndFact(FactSource("--end", number, f"path must end at {place}"), place, must=True)
        for number, place in enumerate(places, 1)
    )
