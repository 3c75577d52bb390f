"""Stores of words that a compiler spills to places of the frame without a name.

Places are distances from sp where the function begins. They are followed through copies and
constants that are added, so that code may reach a place through sp and through a frame pointer. A
store through another pointer is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quoll.abstract_domain.function_values import CALLEE_SAVED
from quoll.arm.addressing import base_change
from quoll.arm.immediates import added_constant
from quoll.arm.insn import SP, AccessKind, Insn, ShiftKind
from quoll.arm.operation import Operation
from quoll.cfg.cfg import Block, Cfg, EdgeKind

__all__ = ["SpilledWord", "SpilledWords"]

WORD = 4  # bytes

_Distances = Mapping[int, int]  # register -> its distance from sp at entry


@dataclass(frozen=True, slots=True)
class SpilledWord:
    """The instruction at ``position`` of ``block`` stores ``register``, a whole word."""

    block: Block
    position: int
    register: int

    @property
    def addr(self) -> int:
        """The address of the store."""
        return self.block.insns[self.position].addr


class SpilledWords:
    """The stores to constant places in the frame of a function."""

    def __init__(self, cfg: Cfg) -> None:
        self._places: dict[tuple[int, int], int] = {}  # base and address of an access -> place
        self._stores: dict[int, list[SpilledWord]] = {}
        for block, before in _entered(cfg):
            known = dict(before)
            for position, insn in enumerate(block.insns):
                for register, distance in known.items():
                    self._places[register, insn.addr] = distance
                self._note(block, position, insn, known)
                _step(insn, known)

    @property
    def stores(self) -> Iterator[SpilledWord]:
        """All of them."""
        return (store for stores in self._stores.values() for store in stores)

    def at(self, register: int, offset: int, addr: int) -> tuple[SpilledWord, ...]:
        """The stores to the word ``offset`` bytes above ``register`` before the instruction at
        ``addr``; none if that is no known place.
        """
        distance = self._places.get((register, addr))
        return () if distance is None else tuple(self._stores.get(distance + offset, ()))

    def _note(self, block: Block, position: int, insn: Insn, known: _Distances) -> None:
        memory = insn.memory
        if memory is None or memory.access is not AccessKind.STORE or memory.size != WORD:
            return
        if memory.base is None or memory.base not in known or memory.index is not None:
            return
        first = known[memory.base] + (memory.displacement if memory.pre_indexed else 0)
        for number, register in enumerate(insn.transfers):
            stored = SpilledWord(block, position, register)
            self._stores.setdefault(first + WORD * number, []).append(stored)


def _entered(cfg: Cfg) -> Iterator[tuple[Block, _Distances]]:
    """The blocks with the distances that are known wherever they are entered."""
    found: dict[int, _Distances] = {0: {SP: 0}}
    pending = [0]
    edges: dict[int, list[tuple[int, EdgeKind]]] = {}
    for edge in cfg.edges:
        edges.setdefault(edge.src, []).append((edge.dst, edge.kind))
    while pending:
        at = pending.pop()
        known = dict(found[at])
        for insn in cfg.blocks[at].insns:
            _step(insn, known)
        for to, kind in edges.get(at, ()):
            saved = (SP, *CALLEE_SAVED) if kind is EdgeKind.ACROSS else known
            left = {register: known[register] for register in saved if register in known}
            if to in found:
                left = dict(found[to].items() & left.items())
                if left == found[to]:
                    continue
            found[to] = left
            pending.append(to)
    yield from ((cfg.blocks[at], known) for at, known in found.items())


def _step(insn: Insn, known: dict[int, int]) -> None:
    """The distances after ``insn``."""
    result: int | None = None
    memory = insn.memory
    if memory is not None:
        moves = memory.writeback and memory.index is None and memory.base in known
        if moves and memory.base is not None and not insn.conditional:
            result = known[memory.base] + base_change(insn, memory)
    elif len(insn.sources) == 1 and insn.sources[0] in known and insn.shift is ShiftKind.NONE:
        added = 0 if insn.operation is Operation.MOVE else added_constant(insn)
        if added is not None and not insn.conditional:
            result = known[insn.sources[0]] + added
    for register in insn.writes:
        moved = memory is None or register == memory.base
        if result is not None and moved:
            known[register] = result
        else:
            known.pop(register, None)
