"""From where the target of an indirect call is loaded: through which words of memory, and how.

The definitions of the target are followed back through copies, additions and loads, on every way.
A *level* is a load: the target of a virtual call is the word at an offset (level 1) from where the
first word of an object points (level 2). Loads from the stack are no levels that count, as they
only give back what was spilled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from quoll.arm.immediates import added_constant, immediate_operand
from quoll.arm.insn import PC, SP, Cond, Flow, Insn, Shift
from quoll.arm.operation import Operation
from quoll.arm.wide_constants import upper_half
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.cfg.transfers import literal
from quoll.domain.function_values import CALLEE_SAVED
from quoll.image.image import Image

__all__ = ["Origin", "Root", "may_be_virtual", "origins", "slot_read"]

LEVELS = 3  # loads that are followed
WORK = 400  # definitions that are looked at


class Root(Enum):
    """What an address, or the target itself, comes from."""

    CONSTANT = "constant"
    STACK = "stack"
    WORD = "word"  # a register at entry, the result of a call
    LOADED = "loaded"  # beyond the loads that are followed
    UNKNOWN = "unknown"  # something that is not followed


@dataclass(frozen=True, slots=True)
class Origin:
    """One way in which the target comes about: what was added, the target's own first, then by
    level; None where that is not one number. ``constant`` is that of the root."""

    offsets: tuple[int | None, ...]
    root: Root
    constant: int = 0

    @property
    def levels(self) -> int:
        """How many loads there are."""
        return len(self.offsets) - 1


def origins(
    cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block, image: Image, *, across: bool
) -> frozenset[Origin] | None:
    """All ways in which the target of the transfer that ends ``block`` comes about.

    ``into`` are the edges into each block. What is not the base of an object is followed across
    calls only with ``across``. None if there are too many.
    """
    return _Search(cfg, into, image, across=across).of_transfer(block)


def slot_read(
    cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block, image: Image
) -> int | None:
    """The one offset from where a word of an object points at which the target is loaded.

    None if that is not known: then any slot may be read.
    """
    found = origins(cfg, into, block, image, across=False)
    if not found:
        return None
    slots = {_slot(origin) for origin in found}
    return slots.pop() if len(slots) == 1 else None


def may_be_virtual(
    cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block, image: Image
) -> bool:
    """Whether the object whose word leads to the target may be the first argument, too.

    It is that of every virtual call; the second one if the first says where a result is returned.
    """
    ways = origins(cfg, into, block, image, across=True)
    if ways is None:
        return True
    objects = [
        replace(w, offsets=w.offsets[2:])
        for w in ways
        if w.levels > 2 or (w.levels == 2 and w.root is not Root.STACK)
    ]
    if not objects:
        return False
    for argument in (0, 1):
        held = _Search(cfg, into, image, across=True).of_register(block, argument)
        if held is None or any(_may_equal(a, b) for a in objects for b in held):
            return True
        if all(origin.root is Root.CONSTANT for origin in held):
            return False
    return False


def _may_equal(a: Origin, b: Origin) -> bool:
    """Whether two words may be one, as far as is followed."""
    if not {a.root, b.root}.isdisjoint((Root.STACK, Root.UNKNOWN)):
        return True
    if any(x != y and None not in (x, y) for x, y in zip(a.offsets, b.offsets, strict=False)):
        return False
    if Root.LOADED in (a.root, b.root):
        return True
    return (len(a.offsets), a.root, a.constant) == (len(b.offsets), b.root, b.constant)


def _slot(origin: Origin) -> int | None:
    of_object = origin.levels > 2 or origin.root in (Root.CONSTANT, Root.WORD)
    loaded_twice = origin.levels >= 2 and of_object
    return origin.offsets[1] if loaded_twice and origin.offsets[0] == 0 else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a register holds before the instruction at ``position`` of ``block``."""

    block: Block
    position: int
    register: int
    offsets: tuple[int | None, ...]
    left: EdgeKind | None = None

    def plus(self, change: int | None) -> tuple[int | None, ...]:
        """The offsets, with ``change`` added on the way to the last level."""
        *others, last = self.offsets
        return (*others, None if last is None or change is None else last + change)


class _Search:
    def __init__(
        self, cfg: Cfg, into: Mapping[int, Sequence[Edge]], image: Image, *, across: bool
    ) -> None:
        self._cfg, self._into, self._image, self._across = cfg, into, image, across
        self._pending: list[_Asked] = []
        self._found: set[Origin] = set()
        self._seen: dict[tuple[int, int, tuple[int | None, ...]], set[int | None]] = {}

    def of_register(self, block: Block, register: int) -> frozenset[Origin] | None:
        self._pending.append(_Asked(block, len(block.insns) - 1, register, (0,)))
        return self._answered()

    def of_transfer(self, block: Block) -> frozenset[Origin] | None:
        insn, at = block.last, len(block.insns) - 1
        start = _Asked(block, at, PC, (0,))
        if insn.memory is not None:
            self._load(start, at, insn)
        elif len(insn.sources) == 1 and insn.sources[0] != PC:
            self._pending.append(replace(start, register=insn.sources[0]))
        else:
            return None
        return self._answered()

    def _answered(self) -> frozenset[Origin] | None:
        for _ in range(WORK):
            if not self._pending:
                return frozenset(self._found)
            self._answer(self._pending.pop())
        return None

    def _root(self, asked: _Asked, root: Root, constant: int = 0) -> None:
        self._found.add(Origin(asked.offsets, root, constant))

    def _answer(self, asked: _Asked) -> None:
        block, register = asked.block, asked.register
        if register == SP:
            self._root(asked, Root.STACK)
            return
        for index in range(asked.position - 1, -1, -1):
            insn = block.insns[index]
            if insn is block.last and asked.left is EdgeKind.FALLTHROUGH and insn.conditional:
                continue
            if register in insn.writes:
                if insn.conditional and not _same_condition(block, index, asked):
                    self._pending.append(replace(asked, position=index))
                self._defined(asked, index, insn)
                return
        if block.index == 0:
            self._root(asked, Root.WORD)
        for edge in self._into.get(block.index, ()):
            self._before(asked, edge)

    def _before(self, asked: _Asked, edge: Edge) -> None:
        source = self._cfg.blocks[edge.src]
        if edge.kind is EdgeKind.ACROSS:
            if asked.register not in CALLEE_SAVED:
                self._root(asked, Root.WORD)
                return
            if not self._across and len(asked.offsets) < LEVELS:
                self._root(asked, Root.UNKNOWN)
                return
        key = source.index, asked.register, asked.offsets[:-1]
        seen = self._seen.setdefault(key, set())
        offset = asked.offsets[-1]
        if offset in seen or None in seen:
            return
        if seen:  # round a loop, a pointer moves on
            offset = None
        seen.add(offset)
        end = len(source.insns)
        offsets = (*asked.offsets[:-1], offset)
        self._pending.append(_Asked(source, end, asked.register, offsets, edge.kind))

    def _defined(self, asked: _Asked, index: int, insn: Insn) -> None:
        """The register is what ``insn`` writes."""
        if insn.memory is not None:
            constant = literal(self._image, insn)
            if constant is not None:
                self._root(asked, Root.CONSTANT, constant)
            elif asked.register in insn.transfers:
                self._load(asked, index, insn)
            else:  # a base that is written back
                plain = insn.operation is Operation.LOAD_WORD and insn.memory.index is None
                change = insn.memory.displacement if plain else None
                self._follow(asked, index, asked.register, change)
            return
        upper, constant = upper_half(insn), immediate_operand(insn)
        if upper is not None:
            self._wide(asked, index, upper)
        elif insn.operation is Operation.MOVE and constant is not None:
            self._root(asked, Root.CONSTANT, constant)
        elif (added := added_constant(insn)) is not None and len(insn.sources) == 1:
            if insn.sources[0] == PC:
                self._root(asked, Root.CONSTANT, insn.pc_operand + added)
            else:
                self._follow(asked, index, insn.sources[0], added)
        elif insn.operation is Operation.MOVE and _copies(insn):
            self._follow(asked, index, insn.sources[0], 0)
        elif insn.flow is not Flow.NEXT:
            self._root(asked, Root.WORD)
        elif insn.sources and PC not in insn.sources:
            for source in dict.fromkeys(insn.sources):
                self._follow(asked, index, source, None)
        else:
            self._root(asked, Root.UNKNOWN)

    def _follow(self, asked: _Asked, index: int, register: int, change: int | None) -> None:
        offsets = asked.plus(change)
        self._pending.append(_Asked(asked.block, index, register, offsets))

    def _wide(self, asked: _Asked, index: int, upper: int) -> None:
        for insn in reversed(asked.block.insns[:index]):
            if asked.register in insn.writes:
                lower = immediate_operand(insn)
                if insn.operation is Operation.MOVE and lower is not None:
                    self._root(asked, Root.CONSTANT, upper << 16 | lower & 0xFFFF)
                    return
                break
        self._root(asked, Root.UNKNOWN)

    def _load(self, asked: _Asked, index: int, insn: Insn) -> None:
        """The register is loaded: the address is asked for next."""
        memory = insn.memory
        assert memory is not None
        single = insn.operation is Operation.LOAD_WORD and memory.base is not None
        if not single and not (memory.size == 4 and memory.base is not None):
            self._root(asked, Root.UNKNOWN)
            return
        if len(asked.offsets) > LEVELS:
            self._root(asked, Root.LOADED)
            return
        offset: int | None = memory.displacement if memory.pre_indexed else 0
        offset = offset if single and memory.index is None else None
        loaded = replace(asked, position=index, offsets=(*asked.offsets, offset))
        assert memory.base is not None
        if memory.base == PC:
            known = offset is not None
            self._root(
                replace(loaded, offsets=(*asked.offsets, 0 if known else None)),
                Root.CONSTANT,
                insn.pc_operand + (offset or 0),
            )
            return
        bases = [memory.base] if memory.index is None else [memory.base, memory.index]
        self._pending += [replace(loaded, register=base) for base in bases]


def _copies(insn: Insn) -> bool:
    return len(insn.sources) == 1 and insn.shift is Shift.NONE


def _same_condition(block: Block, index: int, asked: _Asked) -> bool:
    """Whether the instruction at ``index`` is executed wherever the one asking is."""
    here = block.insns[index]
    if asked.position >= len(block.insns):
        return False
    between = block.insns[index : asked.position]
    asking = block.insns[asked.position].cond
    return asking is here.cond is not Cond.AL and not any(i.sets_flags for i in between)
