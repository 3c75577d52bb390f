"""The places of function addresses in a program: tables, and code that takes addresses.

A table is an object of the symbol table that holds the address of a function after loading, in
read-only or writable memory. Vtables are excluded. Code takes the function addresses elsewhere, as
in literal pools and packed structures.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Set
from dataclasses import dataclass

from quoll.image.image import Image
from quoll.image.symbols import Symbol
from quoll.image.vtables import is_vtable

__all__ = ["FunctionTables", "function_pointers", "function_tables", "functions_in"]

WORD = 4


@dataclass(frozen=True, slots=True)
class FunctionTables:
    """``tables`` by address, each with its functions; ``taken``: addresses outside of tables.

    Thumb functions have bit 0 set.
    """

    tables: tuple[tuple[Symbol, tuple[int, ...]], ...]
    taken: tuple[int, ...]


def function_tables(image: Image, left_out: Set[int] = frozenset()) -> FunctionTables:
    """The tables and the addresses elsewhere, of the whole image but the words at ``left_out``."""
    tables: dict[Symbol, dict[int, None]] = {}
    taken: dict[int, None] = {}
    for addr, word in function_pointers(image):
        if addr in left_out:
            continue
        around = _object_around(image, addr)
        if around is None:
            taken.setdefault(word)
        elif not is_vtable(around):
            tables.setdefault(around, {}).setdefault(word)
    for word in _packed(image):
        taken.setdefault(word)
    return FunctionTables(tuple((s, tuple(words)) for s, words in tables.items()), tuple(taken))


def functions_in(image: Image, low: int, high: int) -> tuple[int, ...]:
    """The functions whose addresses lie from ``low`` to before ``high``, each once.

    0 is the null pointer there, even if exception vectors are at 0.
    """
    content = image.read(low, high - low) or b""
    starts = range(-low % WORD, len(content) - WORD + 1, WORD)
    words = (int.from_bytes(content[i : i + WORD], "little") for i in starts)
    return tuple(dict.fromkeys(word for word in words if word and image.is_function(word)))


def function_pointers(image: Image) -> Iterator[tuple[int, int]]:
    """Each aligned word that is the address of a function, with its place."""
    starts = _starts(image)
    for segment in image.segments:
        skipped = -segment.addr % WORD
        for index, word in enumerate(_words(segment.data[skipped:])):
            if word in starts:
                yield segment.addr + skipped + WORD * index, word


def _packed(image: Image) -> Iterator[int]:
    """The addresses of functions that are stored unaligned."""
    starts = _starts(image)
    for segment in image.segments:
        aligned = -segment.addr % WORD
        for skipped in {*range(WORD)} - {aligned}:
            yield from sorted(starts.intersection(_words(segment.data[skipped:])))


def _words(content: bytes) -> array[int]:
    return array("I", content[: len(content) // WORD * WORD])


def _starts(image: Image) -> frozenset[int]:
    """The addresses of functions, with bit 0 set for Thumb code.

    0 is no address of a function, but the null pointer (C11, 6.3.2.3), even if code is there.
    """
    symbols = image.symbols.symbols
    labels = {s.addr for s in symbols if s.kind == "notype"}
    named = (word for addr in labels for word in (addr, addr | 1) if image.is_function(word))
    return frozenset({*(s.addr | s.thumb for s in symbols if s.kind == "func"), *named}) - {0}


def _object_around(image: Image, addr: int) -> Symbol | None:
    found = image.symbol_at(addr)
    return found[0] if found is not None and found[0].kind == "object" else None
