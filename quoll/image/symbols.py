"""Symbols of an image by name and by address, and the mapping symbols of its bytes.

Mapping symbols ($a, $t, $d) start ARM code, Thumb code and data (AAELF32, section 5.5.5).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quoll.errors import InputError
from quoll.image.elf import RawSymbol
from quoll.image.itanium_names import itanium_name
from quoll.image.rust_names import rust_name
from quoll.input_files import Unreadable, read_input
from quoll.printable import printable

__all__ = ["MappingSymbol", "Symbol", "SymbolTable", "read_names", "symbol_table"]

KINDS = {
    "STT_NOTYPE": "notype", "STT_OBJECT": "object", "STT_FUNC": "func",
    "STT_LOOS": "func",  # STT_GNU_IFUNC
}  # fmt: skip
FARTHEST = 64  # symbols below an address that are examined for one that covers it


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name for ``size`` bytes (0: unknown) at ``addr``, which has the Thumb bit cleared."""

    name: str
    addr: int
    size: int
    kind: str  # func, object or notype
    thumb: bool
    local: bool
    file: str = ""  # source file of a local symbol, from the symbol table


@dataclass(frozen=True, slots=True)
class MappingSymbol:
    """From ``addr`` on the bytes are ARM code (a), Thumb code (t) or data (d)."""

    addr: int
    kind: str


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """``symbols`` ascend by address; among those at one address the best name is last."""

    symbols: tuple[Symbol, ...]
    mappings: tuple[MappingSymbol, ...]
    _addrs: list[int] = field(repr=False)
    _mapping_addrs: list[int] = field(repr=False)
    _names: dict[str, tuple[Symbol, ...]] = field(repr=False)

    def named(self, name: str) -> tuple[Symbol, ...]:
        """All symbols of that name: each file may have a local one.

        A function of Rust or C++ has a second name, the one in the ELF.
        """
        return self._names.get(name, ())

    def names(self) -> Iterable[str]:
        """All names."""
        return self._names.keys()

    def at(self, addr: int) -> tuple[Symbol, ...]:
        """The symbols whose address is ``addr``, best name last."""
        low, high = bisect_left(self._addrs, addr), bisect_right(self._addrs, addr)
        return self.symbols[low:high]

    def covering(self, addr: int, floor: int) -> Symbol | None:
        """The nearest symbol not below ``floor`` whose extent includes ``addr``.

        A symbol of unknown size extends to the next symbol.
        """
        top = bisect_right(self._addrs, addr) - 1
        nearest = self._addrs[top] if top >= 0 else -1
        for at in range(top, max(top - FARTHEST, -1), -1):
            symbol = self.symbols[at]
            if symbol.addr < floor:
                return None
            if symbol.addr + symbol.size > addr or (not symbol.size and symbol.addr == nearest):
                return symbol
        return None

    def function_around(self, addr: int) -> Symbol | None:
        """The function symbol of known size that includes ``addr``."""
        top = bisect_right(self._addrs, addr) - 1
        for at in range(top, max(top - FARTHEST, -1), -1):
            symbol = self.symbols[at]
            if symbol.kind == "func" and symbol.addr + symbol.size > addr:
                return symbol
        return None

    def mapping(self, addr: int, floor: int) -> str | None:
        """The kind of the last mapping symbol between ``floor`` and ``addr``: a, t, d or None."""
        at = bisect_right(self._mapping_addrs, addr) - 1
        if at < 0 or self.mappings[at].addr < floor:
            return None
        return self.mappings[at].kind


def symbol_table(rows: Iterable[RawSymbol]) -> SymbolTable:
    """Sort and index the defined symbols of code and data among ``rows``.

    Mangled names of Rust and C++ become paths, where no other symbol would have the same path.
    """
    rows = tuple(rows)
    paths = _paths(rows)
    symbols: list[Symbol] = []
    mappings: list[MappingSymbol] = []
    file = ""
    for row in rows:
        if row.kind == "STT_FILE":  # the local symbols of a file follow its name
            file = row.name
        if not row.defined or row.kind not in KINDS:
            continue
        if row.name[:2] in ("$a", "$t", "$d") and row.name[2:3] in ("", "."):
            mappings.append(MappingSymbol(row.value, row.name[1]))
        elif row.name and not row.name.startswith("$"):
            symbols.append(_symbol(row, paths.get(row.name, row.name), file))
    symbols.sort(key=lambda s: (s.addr, s.kind == "func", s.size, not s.local, s.name))
    mappings.sort(key=lambda m: m.addr)
    names: dict[str, tuple[Symbol, ...]] = {}
    for symbol in symbols:
        names[symbol.name] = (*names.get(symbol.name, ()), symbol)
    names.update((mangled, names[path]) for mangled, path in paths.items() if path in names)
    return SymbolTable(
        tuple(symbols),
        tuple(mappings),
        [s.addr for s in symbols],
        [m.addr for m in mappings],
        names,
    )


def _paths(rows: Iterable[RawSymbol]) -> dict[str, str]:
    """The paths of mangled names of Rust and C++ that name one address each."""
    addresses: dict[str, set[int]] = {}
    paths: dict[str, str] = {}
    for row in rows:
        path = rust_name(row.name) or itanium_name(row.name)
        if path is not None and row.defined:
            paths[row.name] = path
        addresses.setdefault(path or row.name, set()).add(row.value)
    return {mangled: path for mangled, path in paths.items() if len(addresses[path]) == 1}


def _symbol(row: RawSymbol, name: str, file: str) -> Symbol:
    kind = KINDS[row.kind]
    thumb = kind == "func" and bool(row.value & 1)
    addr = row.value & ~1 if thumb else row.value
    local = row.binding == "STB_LOCAL"
    return Symbol(name, addr, row.size, kind, thumb, local, file if local else "")


LISTED = re.compile(
    r"(?P<addr>[0-9a-fA-F]{1,16}) +(?:(?P<size>[0-9a-fA-F]{8,16}) +)?(?P<type>\S) (?P<name>\S+)"
    r"(?:\s+\[\S+\])?\s*"
)
UNDEFINED = re.compile(r"\s*[UwvN] \S+\s*")
LISTED_KINDS = {"t": "STT_FUNC", "d": "STT_OBJECT", "b": "STT_OBJECT", "r": "STT_OBJECT"}
LARGEST_LIST = 64 << 20  # bytes


def read_names(path: Path) -> tuple[RawSymbol, ...]:
    """The symbols in a list of lines ``ADDRESS [SIZE] TYPE NAME [MODULE]``.

    ``nm``, ``System.map`` and ``/proc/kallsyms`` have such lines. A function counts as Thumb code
    only if the lowest bit of its address is set. Raises InputError naming the file, and the line
    that is no symbol.
    """
    try:
        text = read_input(path, LARGEST_LIST).decode("utf-8")
    except (Unreadable, UnicodeDecodeError) as fault:
        reason = fault if isinstance(fault, Unreadable) else "is not UTF-8 text"
        raise InputError(f"the list of symbols {path} {reason}") from fault
    return tuple(_symbols(text, path))


def _symbols(text: str, path: Path) -> Iterator[RawSymbol]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or UNDEFINED.fullmatch(line):
            continue
        match = LISTED.fullmatch(line)
        if match is None or int(match["addr"], 16) >= 1 << 32:
            raise InputError(
                f"{path}:{number}: '{printable(line.strip()[:60])}' is no symbol",
                hint="lines are 'ADDRESS TYPE NAME', as nm prints them",
            )
        kind = LISTED_KINDS.get(match["type"].lower(), "STT_NOTYPE")
        binding = "STB_LOCAL" if match["type"].islower() else "STB_GLOBAL"
        size = int(match["size"] or "0", 16)
        yield RawSymbol(printable(match["name"]), int(match["addr"], 16), size, kind, binding, True)
