"""Where addresses of functions stand in a program: tables, and code that takes addresses.

A table is an object of the symbol table that holds the address of a function when the program has
been loaded, in memory that may be written or not. Vtables are not among them. What stands anywhere
else, as in literal pools, is an address that code takes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from quoll.image.image import Image
from quoll.image.symbols import Symbol
from quoll.image.vtables import is_vtable

__all__ = ["FunctionTables", "function_tables", "functions_in"]

WORD = 4


@dataclass(frozen=True, slots=True)
class FunctionTables:
    """``tables`` by address, each with its functions; ``taken``: what stands elsewhere.

    Bit 0 is set of Thumb functions.
    """

    tables: tuple[tuple[Symbol, tuple[int, ...]], ...]
    taken: tuple[int, ...]


def function_tables(image: Image) -> FunctionTables:
    """All of them."""
    tables: dict[Symbol, dict[int, None]] = {}
    taken: dict[int, None] = {}
    for addr, word in _pointers(image):
        around = _object_around(image, addr)
        if around is None:
            taken.setdefault(word)
        elif not is_vtable(around):
            tables.setdefault(around, {}).setdefault(word)
    return FunctionTables(tuple((s, tuple(words)) for s, words in tables.items()), tuple(taken))


def functions_in(image: Image, low: int, high: int) -> tuple[int, ...]:
    """The functions whose addresses stand from ``low`` to before ``high``, each once."""
    content = image.read(low, high - low) or b""
    starts = range(-low % WORD, len(content) - WORD + 1, WORD)
    words = (int.from_bytes(content[i : i + WORD], "little") for i in starts)
    return tuple(dict.fromkeys(word for word in words if image.is_function(word)))


def _pointers(image: Image) -> Iterator[tuple[int, int]]:
    """Each word that is the address of a function, with its place."""
    starts = {s.addr | s.thumb for s in image.symbols.symbols if s.kind == "func"}
    others = {s.addr for s in image.symbols.symbols if s.kind == "notype"}
    for segment in image.segments:
        skipped = -segment.addr % WORD
        content = segment.data[skipped:]
        words = array("I", content[: len(content) // WORD * WORD])
        for index, word in enumerate(words):
            if word in starts or (word & ~1 in others and image.is_function(word)):
                yield segment.addr + skipped + WORD * index, word


def _object_around(image: Image, addr: int) -> Symbol | None:
    found = image.symbol_at(addr)
    return found[0] if found is not None and found[0].kind == "object" else None
