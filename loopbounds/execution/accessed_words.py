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
SIGN = 1 << 31
Place = tuple[Var, int]  # a word at the start of an instruction, and a distance from it
WordAccess = tuple[Op, RecordedWord | None]  # an op, and the word where it loads or stores


def accessed_words(
    graph: Supergraph, values: KnownValues, node: int
) -> tuple[tuple[WordAccess, ...], ...]:
    """The ops of each instruction of a node, each with the word that it accesses, if it is known.

    An address in a stack of unknown place is known by its distance from sp at the entry. A word at
    an unaligned address is in two words: none is given. Raises ControlFlowError for an instruction
    without semantics.
    """
    found = []
    for index, insn in enumerate(graph.nodes[node].block.insns):
        ops = lift(insn)
        transfers = any(op.code in TRANSFERS for op in ops)
        lowest = _lowest(values, node, index) if transfers else None
        found.append(tuple((op, None) for op in ops) if lowest is None else _cells(ops, lowest))
    return tuple(found)


def _lowest(values: KnownValues, node: int, insn: int) -> RecordedWord | None:
    """The lowest address that an instruction accesses; None if it may be one of several."""
    known = values.access(node, insn)
    if known is not None and known.low == known.high:
        return RecordedWord(named=True, address=known.low)
    known = values.frame_access(node, insn)
    if known is not None and known.low == known.high:
        return RecordedWord(named=False, address=known.low - BIAS & WORD)
    return None


def _cells(ops: Sequence[Op], lowest: RecordedWord) -> tuple[WordAccess, ...]:
    """The ops, with words at constant distances from the lowest address."""
    found = _places(ops)
    places = [place for place in found if place is not None]
    if len({start for start, _ in places}) > 1:
        return tuple((op, None) for op in ops)  # any of them may be the lowest
    least = min(distance for _, distance in places)
    cells: list[WordAccess] = []
    for op, place in zip(ops, found, strict=True):
        cell = None
        if place is not None:
            at = lowest.address + place[1] - least & WORD
            if at % WORD_SIZE == 0 or _transferred(op).size < WORD_SIZE:
                cell = lowest._replace(address=at & -WORD_SIZE)
        cells.append((op, cell))
    return tuple(cells)


def _places(ops: Sequence[Op]) -> list[Place | None]:
    """The address of each load and store, as a distance from a word; None for another op."""
    places: dict[Var, Place] = {}
    found = list[Place | None]()
    for number, op in enumerate(ops):
        place = places.get(op.ins[0], (op.ins[0], 0)) if op.ins else None
        found.append(place if op.code in TRANSFERS else None)
        if op.out is not None:
            moved = _moved(op)
            if moved is None or place is None:
                places[op.out] = Var(Space.TEMP, -1 - number, WORD_SIZE), 0
            else:
                places[op.out] = place[0], place[1] + moved
    return found


def _transferred(op: Op) -> Var:
    """The variable that an op loads or stores."""
    return op.ins[1] if op.out is None else op.out


def _moved(op: Op) -> int | None:
    """The constant that an op adds to its first operand; None for another op."""
    if op.code is OpCode.COPY:
        return 0
    if op.code not in (OpCode.INT_ADD, OpCode.INT_SUB) or op.ins[1].space is not Space.CONST:
        return None
    by = (op.ins[1].offset + SIGN & WORD) - SIGN
    return by if op.code is OpCode.INT_ADD else -by
