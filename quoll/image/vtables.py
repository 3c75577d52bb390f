"""Vtables of C++, with the class hierarchy in their type information, and of Rust.

Source: Itanium C++ ABI, 2.5 (vtables), 2.9.5 (type information), 5.1 (names); the ARM C++ ABI
changes neither layout. A vtable object ``_ZTV`` holds one table for the class and one for each of
its bases at its own offset: offsets, the distance to the whole object, the address of the class's
type information (0 with ``-fno-rtti``), then one function for each virtual one. An object points
behind these two words. ``_ZTC`` objects hold the tables for objects whose bases are under
construction.

A vtable of Rust has no name. It holds the function that drops a value, or 0, then size and
alignment of the type, then the methods of the trait, if there are any (Rust reference, "Trait
objects", leaves the layout open; it is as rustc has emitted it since 1.0). A pointer to a trait
object holds its address beside the value's, so no object does.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import takewhile

from quoll.graph.closure import closure
from quoll.image.image import Image
from quoll.image.rust_names import rust_name
from quoll.image.symbols import Symbol

__all__ = ["Vtables", "is_vtable"]

WORD = 4
TYPE, SINGLE, SEVERAL = 8, 12, 16  # bytes of type information without bases, with one, with more
RUST = -1  # in place of the address of type information
METHODS = 3  # index of the first method
MOST_WORDS = 1 << 10  # of a vtable of Rust
LARGEST_ALIGNMENT = 1 << 12
MISSING = ("__cxa_pure_virtual", "__cxa_deleted_virtual")  # their call is an error
CLASS = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
TYPE_NAME = re.compile(r"_ZT[IV](\w+)")


def is_vtable(symbol: Symbol) -> bool:
    """Whether ``symbol`` names the vtables of a class."""
    return symbol.name.startswith(("_ZTV", "_ZTC")) and symbol.size > 0


@dataclass(frozen=True, slots=True)
class _Table:
    """Functions of one vtable from its address point up to the next table; 0 for other words.

    ``kind`` is the address of the class's type information, 0 without it, ``RUST`` of a trait.
    """

    kind: int
    words: tuple[int, ...]


class Vtables:
    """All vtables of an image, with their loaded contents."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._types = {s.addr: s for s in image.symbols.symbols if s.name.startswith("_ZTI")}
        self._derived: dict[int, list[int]] = {}
        for addr, symbol in self._types.items():
            for base in self._bases(symbol):
                self._derived.setdefault(base, []).append(addr)
        objects = [s for s in image.symbols.symbols if is_vtable(s)]
        self._classes = tuple(t for symbol in objects for t in self._tables_in(symbol))
        self._traits = dict(self._of_traits())
        self._tables = (*self._classes, *self._traits.values())

    def __bool__(self) -> bool:
        """Whether there are vtables of classes."""
        return bool(self._classes)

    def named(self, name: str) -> frozenset[int]:
        """The type information of the class ``name``, and of all its derived classes.

        ``name`` is a source name or a symbol of the class. Empty without type information.
        """
        symbol = TYPE_NAME.fullmatch(name)
        mangled = symbol[1] if symbol else _mangled(name)
        roots = [addr for addr, s in self._types.items() if s.name == f"_ZTI{mangled}"]
        return frozenset(closure(roots, lambda addr: self._derived.get(addr, ())))

    def classes(self) -> tuple[str, ...]:
        """The names of the classes with type information, in the form that ``named`` accepts."""
        return tuple(_written(s.name.removeprefix("_ZTI")) for s in self._types.values())

    def functions(self, kinds: Set[int] | None, slot: int | None) -> tuple[int, ...]:
        """The functions of vtables of ``kinds`` (None: all) at offset ``slot`` from the address
        point.

        ``slot`` None: at any offset. Tables of an unknown class may belong to any class. Thumb
        functions have bit 0 set.
        """
        found: dict[int, None] = {}
        for table in self._tables:
            if kinds is not None and table.kind and table.kind not in kinds:
                continue
            if slot is None:
                words = table.words
            else:
                at, rest = divmod(slot, WORD)
                words = table.words[at : at + 1] if not rest and at >= 0 else ()
            found |= dict.fromkeys(word for word in words if word)
        return tuple(found)

    def _calls(self, word: int) -> bool:
        """Whether ``word`` is a function, other than a placeholder for a missing one."""
        named = {symbol.name for symbol in self._image.symbols.at(word & ~1)}
        return self._image.is_function(word) and named.isdisjoint(MISSING)

    def _bases(self, symbol: Symbol) -> Iterator[int]:
        """The type information of the bases of a class, from the class's own."""
        words = self._words(symbol)
        if symbol.size == SINGLE:
            yield from (w for w in words[2:3] if w in self._types)
        elif symbol.size >= SEVERAL and len(words) == 4 + 2 * words[3]:
            yield from (w for w in words[4::2] if w in self._types)

    def _tables_in(self, symbol: Symbol) -> Iterator[_Table]:
        """The tables of one object; without type information, behind each 0 and to the end.

        A slot may be 0, too: a pure virtual function's, if ``__cxa_pure_virtual`` is weak and not
        defined.
        """
        words = self._words(symbol)
        known = [i for i, word in enumerate(words) if i and word in self._types]
        before = known or [i for i, word in enumerate(words) if i and not word]
        for index, at in enumerate(before):
            last = not known or index + 1 == len(before)
            end = len(words) if last else before[index + 1] - 1
            functions = (word if self._calls(word) else 0 for word in words[at + 1 : end])
            yield _Table(words[at] if known else 0, tuple(functions))

    def has_method(self, addr: int, slot: int) -> bool:
        """Whether a trait's vtable may be at ``addr``, with a method at offset ``slot``."""
        table = self._traits.get(addr)
        at, rest = divmod(slot, WORD)
        return table is not None and not rest and at >= METHODS and any(table.words[at : at + 1])

    def is_inside_trait(self, addr: int) -> bool:
        """Whether ``addr`` may be behind the first word of a trait's vtable, and begins none."""
        if addr in self._traits:
            return False
        return any(at < addr < at + WORD * len(table.words) for at, table in self._traits.items())

    def _of_traits(self) -> Iterator[tuple[int, _Table]]:
        """Vtables of Rust, by their shape; another object of the same shape may be among them."""
        if not any(map(rust_name, self._image.symbols.names())):
            return
        for segment in self._image.segments:
            skipped = -segment.addr % WORD
            words = _words(segment.data[skipped:])
            for at in range(len(words) - METHODS + 1):
                if self._begins(*words[at : at + METHODS]):
                    behind = words[at + METHODS : at + MOST_WORDS]
                    methods = [self._method(w) for w in takewhile(self._may_follow, behind)]
                    if words[at] or any(methods):
                        start = segment.addr + skipped + WORD * at
                        yield start, _Table(RUST, (words[at], 0, 0, *methods))

    def _method(self, word: int) -> int:
        return word if self._image.is_function(word) else 0

    def _may_follow(self, word: int) -> bool:
        """Whether a method, no method, or a vtable of another trait may be here."""
        return not word or self._image.segment_at(word) is not None

    def _begins(self, drop: int, size: int, alignment: int) -> bool:
        """Whether a vtable of Rust may begin with these words."""
        power = alignment.bit_count() == 1 and alignment <= LARGEST_ALIGNMENT
        return power and not size % alignment and (not drop or self._image.is_function(drop))

    def _words(self, symbol: Symbol) -> tuple[int, ...]:
        return tuple(_words(self._image.read(symbol.addr, symbol.size) or b""))


def _words(content: bytes) -> array[int]:
    return array("I", content[: len(content) // WORD * WORD])


def _mangled(name: str) -> str:
    components = name.split("::")
    text = "".join(f"{len(component)}{component}" for component in components)
    return text if len(components) == 1 else f"N{text}E"


def _written(mangled: str) -> str:
    """A mangled name in source form; its symbol if it is not a plain name."""
    rest, components = mangled, []
    if nested := re.fullmatch(r"N(\d.*)E", mangled):
        rest = nested[1]
    while (number := re.match(r"\d+", rest)) is not None:
        end = number.end() + int(number[0])
        components.append(rest[number.end() : end])
        rest = rest[end:]
    written = "::".join(components)
    plain = not rest and CLASS.fullmatch(written) and _mangled(written) == mangled
    return written if plain else f"_ZTI{mangled}"
