"""What an indirect call that is not resolved may call, as a fact to be confirmed.

A proposal holds every function that could be meant if objects and tables are made as compilers and
programs make them: the slot of every vtable for a call through a word of an object, the functions
of the table for one through a table of known place, and else of all tables that fit, with the
functions whose address code takes. It is no part of any result until a user states it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from quoll.arm.immediates import wide_constants
from quoll.cfg.cfg import Block, Cfg, Edge
from quoll.image.function_tables import FunctionTables, function_tables, functions_in
from quoll.image.image import Image
from quoll.image.symbols import Symbol
from quoll.image.vtables import Vtables
from quoll.indirect.loaded_from import Origin, Root, may_be_virtual, origins

__all__ = ["Candidates"]

MOST_NAMED = 256  # tables and functions of a proposal
FEW_TABLES = 8  # more are looked at for a function at the offset that is loaded
LARGEST_TABLE = 1 << 16  # bytes without a symbol


class Candidates:
    """Proposals for the calls of one image."""

    def __init__(self, image: Image, vtables: Vtables) -> None:
        self._image, self._vtables = image, vtables

    def proposal(self, cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block) -> str | None:
        """The fact about the transfer that ends ``block``, with PLACE for it; None without any."""
        found = origins(cfg, into, block, self._image, across=True) or ()
        ways = {_from_memory(origin) for origin in found} or {Origin((0,), Root.UNKNOWN)}
        tables, functions = self._of_places(ways)
        vtables = False
        if not (tables or functions):
            twice = {way.offsets[1] for way in ways if way.levels >= 2}
            slot = twice.pop() if len(twice) == 1 else None
            virtual = bool(self._vtables) and may_be_virtual(cfg, into, block, self._image)
            vtables = virtual and bool(self._vtables.functions(None, slot))
            if not vtables:
                functions = dict.fromkeys(self._taken)
            if len(functions) > MOST_NAMED:  # in a large program: tables would only add to them
                return None
            once = {way.offsets[1] for way in ways if way.levels >= 1}
            tables = self._fitting(once.pop() if len(once) == 1 else None)
        return self._fact(tables, functions, vtables=vtables)

    @cached_property
    def _known(self) -> FunctionTables:
        return function_tables(self._image)

    @cached_property
    def _taken(self) -> tuple[int, ...]:
        """The functions whose addresses code takes, or that stand outside of all objects."""
        code = (s for s in self._image.segments if s.executable)
        words = (w for s in code for w in wide_constants(s.data[-s.addr % 4 :]))
        wide = (word for word in words if self._image.is_function(word))
        return tuple(dict.fromkeys((*self._known.taken, *wide)))

    @cached_property
    def _holding(self) -> frozenset[Symbol]:
        return frozenset(symbol for symbol, _ in self._known.tables)

    def _of_places(self, ways: Iterable[Origin]) -> tuple[dict[Symbol, None], dict[int, None]]:
        """Tables and functions where the target is loaded from a known place, or near to it."""
        tables: dict[Symbol, None] = {}
        functions: dict[int, None] = {}
        for way in ways:
            if way.levels != 1 or way.root is not Root.CONSTANT:
                continue
            addr = (way.constant + (way.offsets[1] or 0)) & 0xFFFFFFFF
            around = self._image.symbol_at(addr) or self._image.symbol_at(way.constant)
            if around is not None and around[0] in self._holding:
                tables[around[0]] = None
                if self._may_be_written(addr):
                    functions |= dict.fromkeys(self._taken)
            elif around is None or around[0].kind == "notype":
                functions |= dict.fromkeys(self._in_section(addr))
        return tables, functions

    def _in_section(self, addr: int) -> tuple[int, ...]:
        """The functions of a section of pointers, such as those of constructors."""
        section = self._image.section_at(addr)
        if section is None or section.executable or section.size > LARGEST_TABLE:
            return ()
        return functions_in(self._image, section.addr, section.addr + section.size)

    def _may_be_written(self, addr: int) -> bool:
        return self._image.constant(addr & ~3, 4) is None

    def _fitting(self, offset: int | None) -> dict[Symbol, None]:
        """The tables in which the target may stand ``offset`` bytes behind what a pointer holds."""
        tables = self._known.tables
        if offset is None or len(tables) <= FEW_TABLES:
            return {symbol: None for symbol, _ in tables}
        return {s: None for s, functions in tables if self._fits(s, functions, offset)}

    def _fits(self, table: Symbol, functions: Sequence[int], offset: int) -> bool:
        """Whether the first element has a function there, or none yet."""
        content = self._image.read(table.addr + offset, 4)
        if content is None or not 0 <= offset <= table.size - 4:
            return False
        word = int.from_bytes(content, "little")
        return word in (0, *functions)

    def _fact(
        self, tables: Collection[Symbol], functions: Collection[int], *, vtables: bool
    ) -> str | None:
        if len(tables) + len(functions) + vtables > MOST_NAMED:
            return None
        through = ["any vtable"] if vtables else []
        through += sorted(self._name(table.addr, table.name) for table in tables)
        to = sorted(self._function(word) for word in functions)
        if not (through or to):
            return None
        text = f" through {', '.join(through)}" if through else ""
        both = " or" if through and to else ""
        return f"calls at PLACE go{text}" + (f"{both} to {', '.join(to)}" if to else "")

    def _name(self, addr: int, name: str) -> str:
        """A symbol that is no other's name, else the address."""
        named = {(s.addr, s.kind) for s in self._image.symbols.named(name)}
        plain = name.replace(".", "_").replace("$", "_").isidentifier()
        return name if plain and len(named) == 1 else f"{addr:#x}"

    def _function(self, word: int) -> str:
        addr, thumb = word & ~1, bool(word & 1)
        symbols = [s for s in self._image.symbols.at(addr) if s.kind != "object"]
        name = self._name(addr, symbols[-1].name) if symbols else f"{addr:#x}"
        return f"{word:#x}" if name.startswith("0x") and thumb else name


def _from_memory(origin: Origin) -> Origin:
    """``origin`` without a load from the stack, which gives back what was computed before."""
    if origin.root is Root.STACK and origin.levels:
        return Origin(origin.offsets[:-1], Root.WORD)
    return origin
