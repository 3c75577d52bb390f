"""The origin of an indirect transfer's target, along the definitions of registers.

This only saves the value analysis: values do not know a target that is loaded from writable memory,
returned by a call, or passed by the caller either. Nor do they know a pointer that lay on the stack
during another call: values preserve only saved registers and return addresses there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from quoll.abstract_domain.function_values import CALLEE_SAVED
from quoll.arm.insn import LR, PC, SP, AccessKind, Condition, ControlFlow, Insn, ShiftKind
from quoll.arm.operation import Operation
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.cfg.discover import falls_through
from quoll.cfg.transfers import is_call, literal
from quoll.image.image import Image

__all__ = ["OpaqueOrigin", "OriginKind", "may_decide", "opaque_origin"]

WORD = 4  # bytes of an address
CHANGED_BY_CONSTANT = (Operation.ADD, Operation.SUBTRACT, Operation.BIT_CLEAR)
STACK = -1  # in place of a register


class OriginKind(Enum):
    """The kind of an unknown word's origin; the text has its place in braces."""

    ENTRY = "the target depends on {} as it was when the function was entered"
    CALL = "the target comes from the call at {}"
    WRITABLE_WORD = "the target is read from {}, which may be written"


@dataclass(frozen=True, slots=True)
class OpaqueOrigin:
    """The reason why a target is unknown: its register, call or word at ``place``."""

    kind: OriginKind
    place: str

    def __str__(self) -> str:
        return self.kind.value.format(self.place)


def opaque_origin(
    cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block, image: Image
) -> OpaqueOrigin | None:
    """The reason why the target of the transfer ending ``block`` is unknown; None if it may be
    known.

    ``into`` are the edges into each block.
    """
    return _DefinitionSearch(cfg, into, image).of_transfer(block)


def may_decide(cfg: Cfg, into: Mapping[int, Sequence[Edge]], image: Image) -> bool:
    """Whether values may exclude a block of ``cfg``, or know a loaded word from its store.

    They cannot if the function stores only to the stack, and has at most one conditional transfer,
    which tests whether an unknown word equals a number.
    """
    conditional = []
    for block in cfg.blocks:
        if any(_stores(insn) for insn in block.insns):
            return True
        if block.last.flow is not ControlFlow.NEXT and falls_through(block.last):
            conditional.append(block)
    if len(conditional) > 1:
        return True
    return any(
        not _DefinitionSearch(cfg, into, image).is_undecidable(block) for block in conditional
    )


def _stores(insn: Insn) -> bool:
    memory = insn.memory
    stores = memory is not None and memory.access in (AccessKind.STORE, AccessKind.SWAP)
    return stores and memory is not None and memory.base != SP


@dataclass(frozen=True, slots=True)
class _Query:
    """The value of a register before the instruction at ``position`` of ``block``.

    With ``load``, the register is a load address, minus that offset. ``STACK`` is any word of the
    stack. ``left`` is the edge on which the block is left afterwards, None if it is not.
    """

    block: Block
    position: int
    register: int
    load: int | None
    left: EdgeKind | None = None


class _DefinitionSearch:
    def __init__(self, cfg: Cfg, into: Mapping[int, Sequence[Edge]], image: Image) -> None:
        self._cfg, self._into, self._image = cfg, into, image
        self._calls = False
        self._visited: set[tuple[int, int, int | None]] = set()
        self._pending: list[_Query] = []

    def of_transfer(self, block: Block) -> OpaqueOrigin | None:
        """The reason why the target of the transfer that ends ``block`` is unknown, or None."""
        insn, last = block.last, len(block.insns) - 1
        self._calls = is_call(block)
        if insn.memory is not None:
            self._loaded(block, last, insn)
        elif len(insn.sources) == 1 and insn.shift is ShiftKind.NONE and insn.sources[0] != PC:
            self._pending.append(_Query(block, last, insn.sources[0], None))
        return self._result()

    def is_undecidable(self, block: Block) -> bool:
        """Whether ``block`` ends with a choice by equality of an unknown word."""
        last = block.last
        if last.cond not in (Condition.EQ, Condition.NE):
            return False
        for index in range(len(block.insns) - 2, -1, -1):
            insn = block.insns[index]
            if insn.sets_flags:
                plain = len(insn.sources) == 1 and insn.shift is ShiftKind.NONE
                if insn.operation is not Operation.COMPARE or insn.conditional or not plain:
                    return False
                self._pending.append(_Query(block, index, insn.sources[0], None))
                return self._result() is not None
        return False

    def _result(self) -> OpaqueOrigin | None:
        while self._pending:
            reason = self._resolve(self._pending.pop())
            if reason is not None:
                return reason
        return None

    def _resolve(self, query: _Query) -> OpaqueOrigin | None:
        block, register = query.block, query.register
        for index in range(query.position - 1, -1, -1):
            insn = block.insns[index]
            if insn is block.last and query.left is EdgeKind.FALLTHROUGH and _skipped(insn):
                continue
            if _may_tell(insn, register) and not _differ(block, index, query.left):
                return None
            if register in insn.writes:
                return self._defined(query, index, insn)
        if block.index == 0 and register == LR:
            return None
        if block.index == 0:
            place = "the stack" if register == STACK else f"r{register}"
            return OpaqueOrigin(OriginKind.ENTRY, place)
        for edge in self._into.get(block.index, ()):
            before = self._cfg.blocks[edge.src]
            if edge.kind is EdgeKind.ACROSS and register not in CALLEE_SAVED:
                return OpaqueOrigin(OriginKind.CALL, self._image.place(before.last.addr))
            if (edge.src, register, query.load) not in self._visited:
                self._visited.add((edge.src, register, query.load))
                end = len(before.insns)
                self._pending.append(_Query(before, end, register, query.load, edge.kind))
        return None

    def _defined(self, query: _Query, index: int, insn: Insn) -> OpaqueOrigin | None:
        """The reason why the result of ``insn`` is unknown, or None."""
        if insn.memory is not None:
            constant = literal(self._image, insn)
            if constant is None:
                if query.register in insn.transfers:
                    self._loaded(query.block, index, insn)
            elif query.load is not None:
                return self._written((constant + query.load) & 0xFFFFFFFF)
            return None
        plain = len(insn.sources) == 1 and insn.shift is ShiftKind.NONE
        if plain and insn.sources[0] not in (PC, SP):
            if insn.operation is Operation.MOVE:
                self._pending.append(_Query(query.block, index, insn.sources[0], query.load))
            elif insn.operation in CHANGED_BY_CONSTANT:
                self._pending.append(_Query(query.block, index, insn.sources[0], None))
        return None

    def _loaded(self, block: Block, index: int, insn: Insn) -> None:
        """Follow the address of a load."""
        memory = insn.memory
        assert memory is not None
        if insn.operation is not Operation.LOAD_WORD or memory.index is not None:
            return
        if memory.base == SP and self._calls:
            self._pending.append(_Query(block, index, STACK, None))
        elif memory.base not in (None, PC, SP):
            assert memory.base is not None
            offset = memory.displacement if memory.pre_indexed else 0
            self._pending.append(_Query(block, index, memory.base, offset))

    def _written(self, addr: int) -> OpaqueOrigin | None:
        if self._image.constant(addr, WORD) is not None:
            return None
        return OpaqueOrigin(OriginKind.WRITABLE_WORD, self._image.place(addr))


def _skipped(last: Insn) -> bool:
    """Whether the block continues after ``last`` only if its condition is false."""
    return last.flow is ControlFlow.INDIRECT and last.conditional


def _differ(block: Block, index: int, left: EdgeKind | None) -> bool:
    """Whether the comparison at ``index`` found two different words on the edge ``left``.

    An unequal word stays as unknown as before.
    """
    last = block.last
    if last.flow is not ControlFlow.JUMP or any(
        insn.sets_flags for insn in block.insns[index + 1 :]
    ):
        return False
    different = {EdgeKind.TAKEN: Condition.NE, EdgeKind.FALLTHROUGH: Condition.EQ}
    return (
        left is not None
        and block.insns[index].operation is Operation.COMPARE
        and last.cond is different.get(left)
    )


def _may_tell(insn: Insn, register: int) -> bool:
    """Whether values may learn ``register`` from ``insn`` although it is not written.

    A comparison with another register may be one with an address.
    """
    if register == STACK:
        return insn.memory is not None and insn.memory.access in (AccessKind.STORE, AccessKind.SWAP)
    compared = insn.sources if insn.operation is Operation.COMPARE else ()
    return len(compared) == 2 and register in compared
