"""The words of memory that instructions access at addresses which value analysis knows."""

from __future__ import annotations

from collections.abc import Sequence

from loopbounds.execution.memory import RecordedWord
from loopbounds.slicing.code import KnownValues
from quoll.abstract_domain.terms import BIAS
from quoll.inlining.supergraph import Supergraph
from quoll.semantics.lift import lift
from quoll.semantics.ops import Op, OpCode, Space, Var

__all__ = ["TRANSFERS", "WORD_SIZE", "WordAccess", "accessed_words"]

TRANSFERS = (OpCode.LOAD, OpCode.STORE)
WORD_SIZE = 4
WORD = 0xFFFFFFFF
Place = tuple[Var, int]  # a word at the start of an instruction, and a distance from it
WordAccess = tuple[Op, RecordedWord | None]  # an op, and the word where it loads or stores


def accessed_words(
    graph: Supergraph, values: KnownValues, node: int
) -> tuple[tuple[WordAccess, ...], ...]:
    """The ops of each instruction of a node, each with the word that it accesses, if it is known.

    An address in a stack of unknown place is known by its distance from sp at the entry. Raises
    ControlFlowError for an instruction without semantics.
    """
    found = []
    for index, insn in enumerate(graph.nodes[node].block.insns):
        ops = lift(insn)
        transfers = any(op.code in TRANSFERS for op in ops)
        first = _first(values, node, index) if transfers else None
        found.append(tuple((op, None) for op in ops) if first is None else _cells(ops, first))
    return tuple(found)


def _first(values: KnownValues, node: int, insn: int) -> RecordedWord | None:
    """The first address that an instruction accesses; None if it may be one of several."""
    known = values.access(node, insn)
    if known is not None and known.low == known.high:
        return RecordedWord(named=True, address=known.low)
    known = values.frame_access(node, insn)
    if known is not None and known.low == known.high:
        return RecordedWord(named=False, address=known.low - BIAS & WORD)
    return None


def _cells(ops: Sequence[Op], first: RecordedWord) -> tuple[WordAccess, ...]:
    """The ops, with words at constant distances from the first address."""
    places: dict[Var, Place] = {}
    begin: Place | None = None
    found: list[WordAccess] = []
    for number, op in enumerate(ops):
        place = places.get(op.ins[0], (op.ins[0], 0)) if op.ins else None
        cell = None
        if op.code in TRANSFERS and place is not None:
            begin = begin or place
            if place[0] == begin[0]:
                at = first.address + place[1] - begin[1] & WORD & -WORD_SIZE
                cell = first._replace(address=at)
        found.append((op, cell))
        if op.out is not None:
            moved = _moved(op)
            if moved is None or place is None:
                places[op.out] = Var(Space.TEMP, -1 - number, WORD_SIZE), 0
            else:
                places[op.out] = place[0], place[1] + moved
    return tuple(found)


def _moved(op: Op) -> int | None:
    """The constant that an op adds to its first operand; None for another op."""
    if op.code is OpCode.COPY:
        return 0
    if op.code not in (OpCode.INT_ADD, OpCode.INT_SUB) or op.ins[1].space is not Space.CONST:
        return None
    return op.ins[1].offset if op.code is OpCode.INT_ADD else -op.ins[1].offset
