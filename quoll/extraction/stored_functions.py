"""The targets of a call through words of one object that only constants are stored to.

All code of the image is examined, as the words may be stored by code that no entry reaches. A
pointer to an object is made from an address near it: of the object, of its section, of a neighbour.
A function with such an address may neither hand a pointer to the object to other code, nor store to
an unknown place, nor store there anything but 0 and functions. An address in code that is not
followed, or that another instruction than ``ldr`` loads, leaves all objects open. The call then
goes to one of the functions that are stored where it loads, or that lie there after loading. The
rest is the assumption ``STORED_FUNCTIONS``: other pointers do not lead there, and no null pointer
is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from quoll.abstract_domain.condition import words
from quoll.abstract_domain.function_values import LocalValues
from quoll.arm.insn import AccessKind, ControlFlow, Insn
from quoll.arm.wide_constants import immediates, relative_addresses, wide_constants
from quoll.cfg.cfg import Block, Cfg, Edge
from quoll.cfg.growing_function import CalleeEntry
from quoll.cfg.transfers import literal
from quoll.errors import WcetError
from quoll.extraction.lone_function import lone_function
from quoll.image.dwarf_types import Signature
from quoll.image.image import Image
from quoll.image.memory_map import Span
from quoll.image.symbols import Symbol
from quoll.indirect.call_types import call_types
from quoll.indirect.load_origins import LoadOrigin, LoadRoot, entering, origins, register_origins
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["StoredFunctions"]

WORD = 4  # bytes
NEAR = 1 << 12  # bytes around a section from which its objects are reached (A8.8.63: 12 bits)
LARGEST_CODE = 1 << 18  # bytes; beyond that the search takes too long
LARGEST_OBJECT = 1 << 12  # bytes, of words that a call may load
ARGUMENTS = 4  # registers


@dataclass(frozen=True, slots=True)
class _Store:
    """A store that may hit ``places``, of ``functions`` or 0; None: of other words."""

    places: ValueSet
    size: int
    functions: frozenset[int] | None

    def hits(self, span: Span) -> bool:
        return self.places.low <= span[1] and span[0] < self.places.high + self.size


@dataclass(slots=True)
class _Uses:
    """The stores near data, and the spans to which pointers are handed on."""

    stores: list[_Store] = field(default_factory=list)
    handed_on: list[Span] = field(default_factory=list)


class StoredFunctions:
    """The functions stored in the objects of one image."""

    def __init__(self, image: Image) -> None:
        self._image = image

    def targets(self, cfg: Cfg, block: Block) -> tuple[Symbol, frozenset[int]] | None:
        """The object that the call ending ``block`` loads from, and its targets; None if unknown.

        Bit 0 of a target is set for Thumb code.
        """
        loaded = self._loaded(cfg, block)
        found = None if loaded is None else self._image.symbol_at(loaded.low)
        if loaded is None or found is None or found[0].kind != "object":
            return None
        symbol = found[0]
        section = self._image.section_at(symbol.addr)
        span = symbol.addr, symbol.addr + symbol.size - 1
        inside = loaded.high + WORD - 1 <= span[1]
        if not inside or section is None or not section.writable or section.executable:
            return None
        functions = self._stored(span, loaded)
        return (symbol, functions) if functions else None

    def _loaded(self, cfg: Cfg, block: Block) -> ValueSet | None:
        """The places of the word that the call goes to, by the values of its function."""
        found = origins(cfg, entering(cfg), block, self._image, across=True)
        bases = {origin.base for origin in found or ()}
        if len(bases) != 1 or None in bases:
            return None
        (base,) = bases
        values = _values(cfg, self._image)
        places = [
            where
            for b in cfg.blocks
            for insn, where, _ in (_accesses(values, b) if values else ())
            if base and insn.addr in base.places and insn.memory is not None
            if insn.memory.base == base.register and insn.memory.access is AccessKind.LOAD
        ]
        if len(places) != 1 or places[0].high - places[0].low > LARGEST_OBJECT:
            return None
        return places[0]

    def _stored(self, span: Span, loaded: ValueSet) -> frozenset[int] | None:
        """The functions that ``loaded`` places of the object at ``span`` may hold; None: others."""
        image, uses = self._image, self._uses
        if uses is None or any(_overlap(span, other) for other in uses.handed_on):
            return None
        if self._is_pointed_to(span):
            return None
        functions = {word for at in loaded if (word := self._initial(at))}
        for store in uses.stores:
            if not store.hits(span):
                continue
            if store.functions is None:
                return None
            if any(at in loaded for at in store.places):
                functions |= store.functions
        return frozenset(functions) if all(map(image.is_function, functions)) else None

    def _initial(self, at: int) -> int:
        return int.from_bytes(self._image.read(at, WORD) or b"", "little")

    def _is_pointed_to(self, span: Span) -> bool:
        """Whether loaded data has an address in ``span``, at any place."""
        return any(span[0] <= word <= span[1] for word in self._pointers)

    @cached_property
    def _pointers(self) -> frozenset[int]:
        """The addresses in or near writable data in loaded data, also of executable sections."""
        image = self._image
        data = [(s.addr, s.size) for s in image.sections if s.stored and not s.executable]
        objects = (s for s in image.symbols.symbols if s.kind == "object" and s.size)
        data += [(s.addr, s.size) for s in objects if image.is_executable(s.addr)]
        places = ((addr + at, size - at) for addr, size in data for at in range(WORD))
        found = {w for addr, size in places for w in self._words(addr, size, aligned=False)}
        return frozenset(filter(self._near, found))

    def _words(self, addr: int, size: int, *, aligned: bool = True) -> Iterator[int]:
        content = self._image.read(addr, size) or b""
        for at in range(-addr % WORD if aligned else 0, len(content) - WORD + 1, WORD):
            yield int.from_bytes(content[at : at + WORD], "little")

    @cached_property
    def _uses(self) -> _Uses | None:
        """The uses of all code; None if code is not understood."""
        code = [s for s in self._image.sections if s.executable]
        if not code or sum(s.size for s in code) > LARGEST_CODE:
            return None
        named = [s for s in self._image.symbols.symbols if s.kind != "notype" and s.size]
        functions = {s.addr: s for s in named if s.kind == "func"}.values()
        near = [s for s in functions if self._constants(s.addr, s.size)]
        uses, read = _Uses(), list[Span]()
        if not all(self._add(uses, symbol, read) for symbol in near):
            return None
        known = [(s.addr, s.addr + s.size - 1) for s in named]
        if self._constants_in_code([*known, *read]):  # a pool of literals behind functions
            others = (s for s in functions if s not in near)
            if not all(self._add(uses, symbol, read) for symbol in others):
                return None
        return None if self._constants_in_code([*known, *read]) else uses

    def _constants_in_code(self, known: Sequence[Span]) -> bool:
        """Whether code outside of ``known`` spans has a constant near writable data."""
        code = (s for s in self._image.sections if s.executable)
        return any(self._constants_outside(known, s.addr, s.size) for s in code)

    def _constants_outside(self, known: Iterable[Span], addr: int, size: int) -> bool:
        """Whether bytes of code outside of ``known`` spans have a constant near writable data."""
        at = addr
        for low, high in (*sorted(known), (addr + size, addr + size)):
            end = min(low, addr + size)
            if end - at >= WORD and self._constants(at, end - at):
                return True
            at = max(at, high + 1)
        return False

    def _constants(self, addr: int, size: int) -> set[int]:
        """The constants in code that are addresses in or near writable data."""
        start = addr & ~3
        code = self._image.read(start, addr + size - start) or b""
        found = (*self._words(start, len(code)), *wide_constants(code), *immediates(code))
        return {w for w in (*found, *relative_addresses(code, start)) if self._near(w)}

    def _near(self, word: int) -> list[Span]:
        """The sections of writable data that ``word`` is an address in, or near to."""
        return [
            (section.addr, section.addr + section.size - 1)
            for section in self._image.sections
            if section.writable and not section.executable
            if section.addr - NEAR <= word < section.addr + section.size + NEAR
        ]

    def _add(self, uses: _Uses, symbol: Symbol, read: list[Span]) -> bool:
        """Add the uses of one function; returns whether its code is understood.

        Its instructions, and the literals that they load, are added to ``read``.
        """
        cfg = lone_function(self._image, CalleeEntry(symbol.addr, symbol.thumb))
        values = None if cfg is None else _values(cfg, self._image)
        if cfg is None or values is None:
            return False
        into = entering(cfg)
        for block in cfg.blocks:
            read += [(insn.addr, insn.addr + insn.size - 1) for insn in block.insns]
            for insn, where, size in _accesses(values, block):
                if literal(self._image, insn) is not None:
                    read.append((where.low, where.low + size - 1))
                if insn.memory is not None and insn.memory.access is not AccessKind.LOAD:
                    self._add_store(uses, cfg, into, block, insn, where, size)
            self._add_handed_on(uses, cfg, into, block)
        return not self._constants_outside(read, symbol.addr, symbol.size)

    def _add_store(
        self,
        uses: _Uses,
        cfg: Cfg,
        into: Mapping[int, Sequence[Edge]],
        block: Block,
        insn: Insn,
        where: ValueSet,
        size: int,
    ) -> None:
        index = block.insns.index(insn)
        stored = [
            register_origins(cfg, into, block, index, register, self._image)
            for register in insn.transfers
        ]
        uses.handed_on += [span for found in stored for span in self._pointed(found)]
        functions = self._functions(stored) if stored and size % WORD == 0 else None
        if where.high - where.low <= LARGEST_OBJECT:
            uses.stores.append(_Store(where, size, functions))
            return
        assert insn.memory is not None
        for register in (insn.memory.base, insn.memory.index):
            if register is not None:
                base = register_origins(cfg, into, block, index, register, self._image)
                spans = self._pointed(base, indexed=True)
                uses.stores += [_Store(ValueSet(*span, 1), size, None) for span in spans]

    def _functions(self, stored: Iterable[frozenset[LoadOrigin] | None]) -> frozenset[int] | None:
        """The functions that are stored; None if other words may be."""
        found: set[int] = set()
        for origin in (one for ways in stored for one in (ways or [None])):
            if origin is None or origin.root is not LoadRoot.CONSTANT or origin.offsets != (0,):
                return None
            if origin.constant and not self._image.is_function(origin.constant):
                return None
            found.add(origin.constant)
        return frozenset(found - {0})

    def _add_handed_on(
        self, uses: _Uses, cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block
    ) -> None:
        """Add the spans of pointers in registers of arguments and results."""
        for index, insn in enumerate(block.insns):
            if insn.flow is ControlFlow.TRAP:
                self._add_registers(uses, cfg, into, block, index, ARGUMENTS)
        if not (block.calls or block.returns or block.last.flow is ControlFlow.INDIRECT_CALL):
            return
        handed = self._handed(cfg, block)
        self._add_registers(uses, cfg, into, block, len(block.insns), handed)

    def _add_registers(
        self,
        uses: _Uses,
        cfg: Cfg,
        into: Mapping[int, Sequence[Edge]],
        block: Block,
        index: int,
        count: int,
    ) -> None:
        """Add the spans of pointers in the first registers before an instruction."""
        for register in range(count):
            found = register_origins(cfg, into, block, index, register, self._image)
            uses.handed_on += self._pointed(found)

    def _handed(self, cfg: Cfg, block: Block) -> int:
        """The number of registers that may hold arguments or results where ``block`` ends."""
        types = self._image.types
        if block.returns and not block.calls:
            return _results(types.signature(cfg.entry), void=types.result(cfg.entry) is None)
        if block.calls:
            known = all(map(types.takes_parameters, block.calls))
            called = (types.signature(callee) if known else None for callee in block.calls)
            return max(map(_parameters, called))
        found = origins(cfg, entering(cfg), block, self._image, across=True)
        pointed = call_types(self._image, cfg, found or ()) or ()
        return max(map(_parameters, pointed), default=ARGUMENTS)

    def _pointed(self, found: frozenset[LoadOrigin] | None, *, indexed: bool = False) -> list[Span]:
        """The spans of data that a word of these origins may point to, plus any index."""
        if found is None or any(o.root is LoadRoot.LOST and not o.levels for o in found):
            return [(0, ANY.high)]
        spans: list[Span] = []
        for origin in found:
            sections = self._near(origin.constant)
            if origin.root is not LoadRoot.CONSTANT or origin.levels or not sections:
                continue
            (offset,) = origin.offsets
            at = origin.constant + (offset or 0) & ANY.high
            spans += sections if indexed or offset is None else [(at, at)]
        return spans


def _parameters(signature: Signature | None) -> int:
    """The number of registers that may hold arguments of a function of this type."""
    if signature is None or signature.parameters is None or signature.more:
        return ARGUMENTS
    return min(len(signature.parameters), ARGUMENTS) if signature.narrow else ARGUMENTS


def _results(signature: Signature | None, *, void: bool) -> int:
    """The number of registers that may hold a result of a function of this type."""
    if signature is None or not signature.narrow_result:
        return ARGUMENTS
    return 0 if void else 1


def _values(cfg: Cfg, image: Image) -> LocalValues | None:
    try:
        return LocalValues(cfg, image)
    except WcetError:
        return None


def _accesses(values: LocalValues, block: Block) -> Iterator[tuple[Insn, ValueSet, int]]:
    """The instructions of ``block`` that access memory: the first address, and the bytes."""
    outcome = values.outcome(block.index)
    for index, address in (outcome.accesses() if outcome else {}).items():
        insn = block.insns[index]
        if insn.memory is not None:
            where = words(address.fact, values.environment.stacks)
            yield insn, where, insn.memory.size * insn.memory.count


def _overlap(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
