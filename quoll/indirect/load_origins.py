"""Origins of the target of an indirect call: the words of memory through which it is loaded.

The definitions of the target are followed back through copies, additions and loads, on every path.
A *level* is a load: the target of a virtual call is the word at an offset (level 1) from the
address in the first word of an object (level 2). Loads from the stack do not count as levels, as
they only restore spilled words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from quoll.abstract_domain.function_values import CALLEE_SAVED
from quoll.arm.immediates import added_constant, immediate_operand
from quoll.arm.insn import PC, SP, AccessKind, Condition, ControlFlow, Insn, ShiftKind
from quoll.arm.operation import Operation
from quoll.arm.wide_constants import upper_half
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.cfg.transfers import literal
from quoll.image.image import Image

__all__ = [
    "LoadBase",
    "LoadOrigin",
    "LoadRoot",
    "entering",
    "may_be_virtual",
    "origins",
    "register_origins",
    "slot_read",
]

LEVELS = 3  # most loads that are followed
WORD = 4  # bytes
RESULT = 0  # register of a result
WORK = 400  # most definitions that are analysed


class LoadRoot(Enum):
    """The origin of an address, or of the target itself."""

    CONSTANT = "constant"
    STACK = "stack"
    WORD = "word"  # a register at entry, or the result of a call
    LOADED = "loaded"  # beyond the loads that are followed
    NUMBER = "number"  # a loaded byte or halfword, which is no address
    UNKNOWN = "unknown"  # a value that is not followed, of no register
    LOST = "lost"  # a value that is not followed: of a register, or computed from the pc


@dataclass(frozen=True, slots=True)
class LoadBase:
    """The base ``register`` of a load, which is unchanged before each instruction at ``places``.

    ``offset`` is added to it, None if it is not constant.
    """

    register: int
    places: tuple[int, ...]
    offset: int | None


@dataclass(frozen=True, slots=True)
class LoadOrigin:
    """One origin of the target.

    ``offsets``: constants added to the target and, per level, to the address; None if not constant.
    ``constant`` is the root's value, and ``shift`` the sum of the constants that are added to it
    before the first load, beside unknown summands. Of a word, ``register`` is where it is when the
    function is entered, or ``callee`` is the entry of the only function whose result it is.
    ``bases``: the base of each load, beginning with the load of the target.
    """

    offsets: tuple[int | None, ...]
    root: LoadRoot
    constant: int = 0
    shift: int = 0
    register: int | None = None
    callee: int | None = None
    bases: tuple[LoadBase, ...] = ()

    @property
    def base(self) -> LoadBase | None:
        """Where the target is loaded."""
        return self.bases[0] if self.bases else None

    @property
    def levels(self) -> int:
        """The number of loads."""
        return len(self.offsets) - 1


def entering(cfg: Cfg) -> Mapping[int, Sequence[Edge]]:
    """The edges into each block."""
    into: dict[int, list[Edge]] = {}
    for edge in cfg.edges:
        into.setdefault(edge.dst, []).append(edge)
    return into


def origins(
    cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block, image: Image, *, across: bool
) -> frozenset[LoadOrigin] | None:
    """All origins of the target of the transfer that ends ``block``.

    ``into`` are the edges into each block. ``across``: also follow values across calls that are not
    bases of objects. None if there are too many.
    """
    return _OriginSearch(cfg, into, image, across=across).of_transfer(block)


def register_origins(
    cfg: Cfg,
    into: Mapping[int, Sequence[Edge]],
    block: Block,
    position: int,
    register: int,
    image: Image,
) -> frozenset[LoadOrigin] | None:
    """All origins of a register before the instruction at ``position`` of ``block``, as above."""
    return _OriginSearch(cfg, into, image, across=True).of_register(block, register, position)


def slot_read(
    cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block, image: Image
) -> int | None:
    """The only vtable offset at which the target is loaded.

    None if it is not unique: then any slot may be read.
    """
    found = origins(cfg, into, block, image, across=False)
    if not found:
        return None
    slots = {_slot(origin) for origin in found}
    return slots.pop() if len(slots) == 1 else None


def may_be_virtual(
    cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block, image: Image
) -> bool:
    """Whether the object whose word leads to the target may also be the first argument.

    A virtual call passes its object as first argument, or as second if the first one is the address
    of a returned structure.
    """
    ways = origins(cfg, into, block, image, across=True)
    if ways is None:
        return True
    objects = [
        replace(w, offsets=w.offsets[2:])
        for w in ways
        if w.levels > 2 or (w.levels == 2 and w.root is not LoadRoot.STACK)
    ]
    if not objects:
        return False
    for argument in (0, 1):
        held = _OriginSearch(cfg, into, image, across=True).of_register(block, argument)
        if held is None or any(_may_equal(a, b) for a in objects for b in held):
            return True
        if all(origin.root is LoadRoot.CONSTANT for origin in held):
            return False
    return False


def _may_equal(a: LoadOrigin, b: LoadOrigin) -> bool:
    """Whether two words may be equal, as far as their origins are followed."""
    unknown = LoadRoot.STACK, LoadRoot.NUMBER, LoadRoot.UNKNOWN, LoadRoot.LOST
    if not {a.root, b.root}.isdisjoint(unknown):
        return True
    if any(x != y and None not in (x, y) for x, y in zip(a.offsets, b.offsets, strict=False)):
        return False
    if LoadRoot.LOADED in (a.root, b.root):
        return True
    return (len(a.offsets), a.root, a.constant) == (len(b.offsets), b.root, b.constant)


def _slot(origin: LoadOrigin) -> int | None:
    of_object = origin.levels > 2 or origin.root in (LoadRoot.CONSTANT, LoadRoot.WORD)
    loaded_twice = origin.levels >= 2 and of_object
    return origin.offsets[1] if loaded_twice and origin.offsets[0] == 0 else None


@dataclass(frozen=True, slots=True)
class _Query:
    """The value of a register before the instruction at ``position`` of ``block``."""

    block: Block
    position: int
    register: int
    offsets: tuple[int | None, ...]
    left: EdgeKind | None = None
    shift: int = 0
    bases: tuple[LoadBase, ...] = ()

    def plus(self, change: int | None) -> tuple[int | None, ...]:
        """The offsets, with ``change`` added at the last level."""
        *others, last = self.offsets
        return (*others, None if last is None or change is None else last + change)


class _OriginSearch:
    def __init__(
        self, cfg: Cfg, into: Mapping[int, Sequence[Edge]], image: Image, *, across: bool
    ) -> None:
        self._cfg, self._into, self._image, self._across = cfg, into, image, across
        self._pending: list[_Query] = []
        self._found: set[LoadOrigin] = set()
        self._visited: dict[tuple[object, ...], set[int | None]] = {}

    def of_register(
        self, block: Block, register: int, position: int | None = None
    ) -> frozenset[LoadOrigin] | None:
        """The origins before the instruction at ``position``, by default the last one."""
        position = len(block.insns) - 1 if position is None else position
        self._pending.append(_Query(block, position, register, (0,)))
        return self._result()

    def of_transfer(self, block: Block) -> frozenset[LoadOrigin] | None:
        insn, at = block.last, len(block.insns) - 1
        start = _Query(block, at, PC, (0,))
        if insn.memory is not None:
            self._load(start, at, insn)
        elif len(insn.sources) == 1 and insn.sources[0] != PC:
            self._pending.append(replace(start, register=insn.sources[0]))
        else:
            return None
        return self._result()

    def _result(self) -> frozenset[LoadOrigin] | None:
        for _ in range(WORK):
            if not self._pending:
                return frozenset(self._found)
            self._resolve(self._pending.pop())
        return None

    def _root(self, query: _Query, root: LoadRoot, constant: int = 0) -> None:
        self._found.add(LoadOrigin(query.offsets, root, constant, query.shift, bases=query.bases))

    def _word(self, query: _Query, *, register: int | None, callee: int | None) -> None:
        word = LoadOrigin(query.offsets, LoadRoot.WORD, register=register, callee=callee)
        self._found.add(replace(word, bases=query.bases))

    def _resolve(self, query: _Query) -> None:
        block, register = query.block, query.register
        if register == SP:
            self._root(query, LoadRoot.STACK)
            return
        for index in range(query.position - 1, -1, -1):
            insn = block.insns[index]
            if insn is block.last and query.left is EdgeKind.FALLTHROUGH and insn.conditional:
                continue
            if register in insn.writes:
                if insn.conditional and not _same_condition(block, index, query):
                    self._pending.append(replace(query, position=index))
                self._defined(query, index, insn)
                return
        if block.index == 0:
            self._word(query, register=register, callee=None)
        for edge in self._into.get(block.index, ()):
            self._before(query, edge)

    def _before(self, query: _Query, edge: Edge) -> None:
        source = self._cfg.blocks[edge.src]
        if edge.kind is EdgeKind.ACROSS:
            if query.register == RESULT:
                callee = source.calls[0] if len(source.calls) == 1 else None
                self._word(query, register=None, callee=callee)
                return
            if query.register not in CALLEE_SAVED:  # GCC's -fipa-ra may preserve it
                self._root(query, LoadRoot.LOST)
                return
            if not self._across and len(query.offsets) < LEVELS:
                self._root(query, LoadRoot.UNKNOWN)
                return
        key = source.index, query.register, query.offsets[:-1], query.bases
        seen = self._visited.setdefault(key, set())
        offset = query.offsets[-1]
        if offset in seen or None in seen:
            return
        shift = query.shift
        if seen:  # in a loop, a pointer advances, perhaps from the least of these
            shift = min(known for known in (*seen, offset, shift) if known is not None)
            offset = None
        seen.add(offset)
        end = len(source.insns)
        offsets = (*query.offsets[:-1], offset)
        self._pending.append(
            _Query(source, end, query.register, offsets, edge.kind, shift, query.bases)
        )

    def _defined(self, query: _Query, index: int, insn: Insn) -> None:
        """Follow a register that ``insn`` writes."""
        if insn.memory is not None:
            constant = literal(self._image, insn)
            if constant is not None:
                self._root(query, LoadRoot.CONSTANT, constant)
            elif query.register in insn.transfers:
                self._load(query, index, insn)
            else:  # a base with write-back
                plain = insn.operation is Operation.LOAD_WORD and insn.memory.index is None
                change = insn.memory.displacement if plain else None
                self._follow(query, index, query.register, change)
            return
        upper, constant = upper_half(insn), immediate_operand(insn)
        if upper is not None:
            self._wide(query, index, upper)
        elif insn.operation is Operation.MOVE and constant is not None:
            self._root(query, LoadRoot.CONSTANT, constant)
        elif (added := added_constant(insn)) is not None and len(insn.sources) == 1:
            if insn.sources[0] == PC:
                self._root(query, LoadRoot.CONSTANT, insn.pc_operand + added)
            else:
                self._follow(query, index, insn.sources[0], added)
        elif insn.operation is Operation.MOVE and _copies(insn):
            self._follow(query, index, insn.sources[0], 0)
        elif insn.flow is not ControlFlow.NEXT:
            self._root(query, LoadRoot.WORD)
        elif insn.sources and PC not in insn.sources:
            for source in dict.fromkeys(insn.sources):
                self._follow(query, index, source, None)
        else:
            self._root(query, LoadRoot.LOST if insn.sources else LoadRoot.UNKNOWN)

    def _follow(self, query: _Query, index: int, register: int, change: int | None) -> None:
        offsets, shift = query.plus(change), query.shift + (change or 0)
        self._pending.append(
            _Query(query.block, index, register, offsets, shift=shift, bases=query.bases)
        )

    def _wide(self, query: _Query, index: int, upper: int) -> None:
        for insn in reversed(query.block.insns[:index]):
            if query.register in insn.writes:
                lower = immediate_operand(insn)
                if insn.operation is Operation.MOVE and lower is not None:
                    self._root(query, LoadRoot.CONSTANT, upper << 16 | lower & 0xFFFF)
                    return
                break
        self._root(query, LoadRoot.LOST)

    def _load(self, query: _Query, index: int, insn: Insn) -> None:
        """Follow the address of a loaded register."""
        memory = insn.memory
        assert memory is not None
        if memory.size != WORD or memory.base is None:
            number = memory.base is not None and memory.size < WORD
            self._root(query, LoadRoot.NUMBER if number else LoadRoot.UNKNOWN)
            return
        if len(query.offsets) > LEVELS:
            self._root(query, LoadRoot.LOADED)
            return
        place = memory.displacement if memory.pre_indexed else 0
        several = memory.access is AccessKind.LOAD and memory.count > 1
        several = several and query.register in insn.transfers
        if several:
            place += WORD * insn.transfers.index(query.register)
        exact = several or insn.operation is Operation.LOAD_WORD
        offset = place if exact and memory.index is None else None
        added = place if memory.index is None else None
        bases = (*query.bases, _base(query.block, index, memory.base, added))
        offsets = (*query.offsets, offset)
        loaded = replace(query, position=index, offsets=offsets, shift=place, bases=bases)
        if memory.base == PC:
            known = offset is not None
            self._root(
                replace(loaded, offsets=(*query.offsets, 0 if known else None), shift=0),
                LoadRoot.CONSTANT,
                insn.pc_operand + (offset or 0),
            )
            return
        summands = [memory.base] if memory.index is None else [memory.base, memory.index]
        self._pending += [replace(loaded, register=summand) for summand in summands]


def _base(block: Block, index: int, register: int, offset: int | None) -> LoadBase:
    """The base of the load at ``index``, with all places in the block where it is unchanged."""
    places = [block.insns[index].addr]
    for insn in reversed(block.insns[:index]):
        if register in insn.writes:
            break
        places.append(insn.addr)
    for insn in block.insns[index:]:
        if register in insn.writes:
            break
        places.append(insn.next)
    return LoadBase(register, tuple(places), offset)


def _copies(insn: Insn) -> bool:
    return len(insn.sources) == 1 and insn.shift is ShiftKind.NONE


def _same_condition(block: Block, index: int, query: _Query) -> bool:
    """Whether the instruction at ``index`` executes whenever the querying one does."""
    here = block.insns[index]
    if query.position >= len(block.insns):
        return False
    between = block.insns[index : query.position]
    reader = block.insns[query.position].cond
    return reader is here.cond is not Condition.AL and not any(i.sets_flags for i in between)
