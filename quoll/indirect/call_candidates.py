"""Candidates of an unresolved indirect call, as a fact to be confirmed.

A proposal holds every function that the analysis cannot exclude (rule 50): each address-taken
function in tables or code and, if the call may be virtual, the functions of vtables. A possibly
virtual call adds vtable functions and excludes no others. A load from a table at a known place
excludes none either: compilers fold indices into addresses, so the place may belong to a
neighbouring table. A note names smaller alternatives if more is known about the call, and the
functions left out, with the assumption. A proposal is no part of any result until a user states it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache, cached_property

from quoll.cfg.cfg import Block, Cfg, Edge
from quoll.cfg.unresolved import CandidateFact
from quoll.facts.fact import SYMBOL
from quoll.image.dwarf_types import VIRTUAL_CALL, Signature
from quoll.image.function_tables import function_pointers, functions_in
from quoll.image.image import Image
from quoll.image.symbols import Symbol
from quoll.image.vtables import Vtables
from quoll.indirect.address_taken import ANY_TAKEN, AddressTaken
from quoll.indirect.call_types import call_types
from quoll.indirect.load_origins import LoadOrigin, LoadRoot, may_be_virtual, origins
from quoll.indirect.trait_objects import method_slot

__all__ = ["Candidates"]

MOST_NAMED = 256  # most tables and functions in a proposal; it names none beyond that
LARGEST_TABLE = 1 << 16  # bytes without a symbol
SMALL = 1 << 12  # constants below are numbers, unless a variable is there
NEAR = 8  # most functions of a section that are named
VIRTUAL = "if it is a virtual call, 'through any vtable' is enough"
NOT_VIRTUAL = (
    "functions of vtables are left out, as the object is not handed on: this assumes that the "
    "call is no virtual one, and that no address from a vtable is handed around"
)
STORED_VTABLES = "the vtables whose addresses its function stores"
DEBUG_INFORMATION = "the debug information"
ENDLESS = "this leaves out {} without a return, as threads, and assumes no call of one"
VECTORS = "this leaves out the exception vectors, and assumes no call of one"
LOADED = (
    "this leaves out {} of which only exception vectors or veneers load the address, and assumes "
    "no call of one"
)


class Candidates:
    """Proposals for the calls of one image."""

    def __init__(
        self, image: Image, vtables: Vtables, taken: AddressTaken, endless: Callable[[int], bool]
    ) -> None:
        self._image, self._vtables, self._taken = image, vtables, taken
        self._is_endless = cache(endless)

    def proposal(
        self, cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block
    ) -> CandidateFact | None:
        """The fact about the transfer that ends ``block``; None without any candidate."""
        found = origins(cfg, into, block, self._image, across=True) or ()
        typed = self._of_types(cfg, found)
        if typed is not None:
            return typed
        ways = {_from_memory(origin) for origin in found} or {LoadOrigin((0,), LoadRoot.UNKNOWN)}
        spilled = any(map(_may_be_spilled, found or (LoadOrigin((0,), LoadRoot.UNKNOWN),)))
        twice = {way.offsets[1] for way in ways if way.levels >= 2}
        slot = twice.pop() if len(twice) == 1 and not spilled else None
        virtual = bool(self._vtables) and (spilled or may_be_virtual(cfg, into, block, self._image))
        vtables = virtual and bool(self._vtables.functions(None, slot))
        tables = [symbol for symbol, _ in self._taken.tables.tables]
        functions = self._coming_back(self._callbacks)
        left_out = len(self._callbacks) - len(functions)
        notes = dict.fromkeys(sorted(set(filter(None, map(self._near, ways)))))
        if vtables and (tables or functions):
            notes.setdefault(VIRTUAL)
        elif self._vtables and not virtual:
            notes.setdefault(NOT_VIRTUAL)
        if left_out:
            notes.setdefault(ENDLESS.format(_counted(left_out)))
        notes |= dict.fromkeys(self._left_out)
        return self._proposal(tables, functions, notes, vtables=vtables)

    def _of_types(self, cfg: Cfg, found: Iterable[LoadOrigin]) -> CandidateFact | None:
        """The functions of the pointer's type, where the debug information has it."""
        found = [
            o
            for o in found
            if not (self._is_from_device(o) or self._is_null(o) or self._is_number(o))
        ]
        methods = [o for o in found if method_slot(self._image, self._vtables, cfg, o) is not None]
        others = [origin for origin in found if origin not in methods]
        signatures = call_types(self._image, cfg, others) if others else frozenset[Signature]()
        if signatures is None or not (signatures or methods):
            return None
        signatures = signatures | {VIRTUAL_CALL} if methods else signatures
        virtual = VIRTUAL_CALL in signatures
        taken = dict.fromkeys((*self._callbacks, *self._in_tables))
        plain = signatures - {VIRTUAL_CALL}
        fitting = [word for word in taken if plain and self._fits(word, plain)]
        if len(fitting) == len(taken) or not (virtual or any(map(self._signature, fitting))):
            return None
        unfit = len(taken) - len(fitting)
        coming_back = self._coming_back(fitting)
        kinds = ("a virtual function",) if virtual else ()
        shown = " or ".join((*kinds, *sorted(map(str, plain))))
        by = " and ".join(
            (*([STORED_VTABLES] if methods else ()), *([DEBUG_INFORMATION] if others else ()))
        )
        note = (
            f"it calls {shown} by {by}: this leaves out {_counted(unfit)} of "
            "other types, and assumes that code casts none of them"
        )
        left_out = len(fitting) - len(coming_back)
        notes = [note, ENDLESS.format(_counted(left_out))] if left_out else [note]
        notes += self._left_out
        return self._proposal((), coming_back, notes, vtables=virtual)

    def _coming_back(self, functions: Sequence[int]) -> Sequence[int]:
        """The functions with a way out; all of them if none has one."""
        if len(functions) > MOST_NAMED:
            return functions
        return [word for word in functions if not self._is_endless(word)] or functions

    def _plain(self, functions: Iterable[int]) -> list[int]:
        """The functions that are no exception vectors."""
        return [word for word in functions if word & ~1 not in self._taken.vectors]

    @cached_property
    def _callbacks(self) -> Sequence[int]:
        return self._plain(self._taken.callbacks)

    @cached_property
    def _left_out(self) -> tuple[str, ...]:
        """The notes on exception vectors, and on functions that only they or veneers load."""
        words = {*self._taken.callbacks, *self._words_of_tables}
        notes = () if len(self._plain(words)) == len(words) else (VECTORS,)
        loaded = len(set(self._plain(self._taken.by_code)) - words)
        return (*notes, LOADED.format(_counted(loaded))) if loaded else notes

    def _is_from_device(self, origin: LoadOrigin) -> bool:
        """Whether a device register, which no variable is, holds a number added to an address."""
        if origin.root is not LoadRoot.CONSTANT or origin.levels < 2:
            return False
        place = origin.constant + (origin.offsets[-1] or 0) & 0xFFFFFFFF
        if origin.offsets[1] is not None or self._image.types.variable(place) is not None:
            return False
        return self._image.segment_at(place) is None

    def _is_null(self, origin: LoadOrigin) -> bool:
        """Whether it is 0, or a word that is loaded through 0, where nothing is."""
        constant = origin.root is LoadRoot.CONSTANT and origin.constant == 0
        return constant and self._image.segment_at(0) is None

    def _is_number(self, origin: LoadOrigin) -> bool:
        """Whether it is a constant from which code computes an index, such as a mask."""
        computed = bool(origin.levels) and origin.offsets[-1] is None
        if origin.root is not LoadRoot.CONSTANT or not computed:
            return False
        if self._image.types.variable(origin.constant) is not None:
            return False
        nowhere = self._image.segment_at(origin.constant) is None
        return nowhere or origin.constant < SMALL

    def _fits(self, word: int, signatures: Set[Signature]) -> bool:
        own = self._signature(word)
        types = self._held.get(word, ()) if own is None else (own, *self._held.get(word, ()))
        return own is None or any(one.fits(other) for one in types for other in signatures)

    @cached_property
    def _held(self) -> Mapping[int, Set[Signature]]:
        """The types of pointers in initial data to each function, to which the source casts it."""
        held: dict[int, set[Signature]] = {}
        for addr, word in function_pointers(self._image):
            held.setdefault(word, set()).update(self._image.types.held_functions(addr))
        return held

    def _signature(self, word: int) -> Signature | None:
        return self._image.types.signature(word & ~1)

    @cached_property
    def _in_tables(self) -> tuple[int, ...]:
        return tuple(self._plain(self._words_of_tables))

    @cached_property
    def _words_of_tables(self) -> tuple[int, ...]:
        return tuple(word for _, words in self._taken.tables.tables for word in words)

    @cached_property
    def _holding(self) -> frozenset[Symbol]:
        return frozenset(symbol for symbol, _ in self._taken.tables.tables)

    def _near(self, way: LoadOrigin) -> str:
        """A smaller alternative if the target is loaded only from near a known place; else ""."""
        if way.levels != 1 or way.root is not LoadRoot.CONSTANT:
            return ""
        addr = (way.constant + (way.offsets[1] or 0)) & 0xFFFFFFFF
        around = self._image.symbol_at(addr) or self._image.symbol_at(way.constant)
        if around is not None and around[0] in self._holding:
            name = self._name(around[0].addr, around[0].name)
            return f"if it is loaded from {name} only, 'through {name}' is enough"
        if around is not None and around[0].kind != "notype":
            return ""
        section = self._image.section_at(addr)
        if section is None or section.executable or section.size > LARGEST_TABLE:
            return ""
        found = functions_in(self._image, section.addr, section.addr + section.size)
        if not 0 < len(found) <= NEAR:
            return ""
        names = ", ".join(sorted(map(self._function, found)))
        return f"if it is loaded from {section.name} only, 'to {names}' is enough"

    def _proposal(
        self,
        tables: Sequence[Symbol],
        functions: Sequence[int],
        notes: Iterable[str],
        *,
        vtables: bool,
    ) -> CandidateFact | None:
        through = ["any vtable"] if vtables else []
        if len(tables) + len(functions) > MOST_NAMED:
            to = [ANY_TAKEN]
        else:
            through += sorted(self._name(table.addr, table.name) for table in tables)
            to = sorted(self._function(word) for word in functions)
        if not (through or to):
            return None
        text = f" through {', '.join(through)}" if through else ""
        both = " or" if through and to else ""
        fact = f"calls at PLACE go{text}" + (f"{both} to {', '.join(to)}" if to else "")
        return CandidateFact(fact, len(through) + len(to), "; ".join(notes))

    def _name(self, addr: int, name: str) -> str:
        """A unique symbol, else the address."""
        named = {(s.addr, s.kind) for s in self._image.symbols.named(name)}
        plain = re.fullmatch(SYMBOL, name) is not None
        return name if plain and len(named) == 1 else f"{addr:#x}"

    def _function(self, word: int) -> str:
        addr, thumb = word & ~1, bool(word & 1)
        symbols = [s for s in self._image.symbols.at(addr) if s.kind != "object"]
        name = self._name(addr, symbols[-1].name) if symbols else f"{addr:#x}"
        return f"{word:#x}" if name.startswith("0x") and thumb else name


def _counted(functions: int) -> str:
    return f"{functions} function{'' if functions == 1 else 's'}"


def _may_be_spilled(origin: LoadOrigin) -> bool:
    """Whether the target, or its load address, may have been a vtable word before."""
    return origin.root in (LoadRoot.UNKNOWN, LoadRoot.LOST, LoadRoot.NUMBER) or (
        origin.root is LoadRoot.STACK and origin.levels in (1, 2)
    )


def _from_memory(origin: LoadOrigin) -> LoadOrigin:
    """``origin`` without a load from the stack, which restores an earlier value."""
    if origin.root is LoadRoot.STACK and origin.levels:
        return LoadOrigin(origin.offsets[:-1], LoadRoot.WORD)
    return origin
