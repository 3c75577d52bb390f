"""Symbol lists as ``nm`` prints them, which ``System.map`` and ``/proc/kallsyms`` are too.

    c0008000 T stext
    c0008240 00000030 t __create_page_tables       with nm -S
    bf000000 t init_module  [module]

Names of code dumped from a running system, which no ELF file has. Such a list does not say which
functions are Thumb code, unless the lowest bit of their addresses is set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from quoll.errors import InputError
from quoll.image.elf import RawSymbol
from quoll.image.inputs import Unreadable, read_input
from quoll.printable import printable

__all__ = ["read_names"]

LINE = re.compile(
    r"(?P<addr>[0-9a-fA-F]{1,16}) +(?:(?P<size>[0-9a-fA-F]{8,16}) +)?(?P<type>\S) (?P<name>\S+)"
    r"(?:\s+\[\S+\])?\s*"
)
UNDEFINED = re.compile(r"\s*[UwvN] \S+\s*")
KINDS = {"t": "STT_FUNC", "d": "STT_OBJECT", "b": "STT_OBJECT", "r": "STT_OBJECT"}
LARGEST = 64 << 20  # bytes


def read_names(path: Path) -> tuple[RawSymbol, ...]:
    """The symbols in a list. Raises InputError naming the file, and the line that is none."""
    try:
        text = read_input(path, LARGEST).decode("utf-8")
    except (Unreadable, UnicodeDecodeError) as fault:
        reason = fault if isinstance(fault, Unreadable) else "is not UTF-8 text"
        raise InputError(f"the list of symbols {path} {reason}") from fault
    return tuple(_symbols(text, path))


def _symbols(text: str, path: Path) -> Iterator[RawSymbol]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or UNDEFINED.fullmatch(line):
            continue
        match = LINE.fullmatch(line)
        if match is None or int(match["addr"], 16) >= 1 << 32:
            raise InputError(
                f"{path}:{number}: '{printable(line.strip()[:60])}' is no symbol",
                hint="lines are 'ADDRESS TYPE NAME', as nm prints them",
            )
        kind = KINDS.get(match["type"].lower(), "STT_NOTYPE")
        binding = "STB_LOCAL" if match["type"].islower() else "STB_GLOBAL"
        size = int(match["size"] or "0", 16)
        yield RawSymbol(printable(match["name"]), int(match["addr"], 16), size, kind, binding, True)
