"""The stores of a graph, by the addresses that values give.

    stores(values)         KnownStore(node=3, insn=1, span=(0xF001B984, 0xF001B987), ...), ...
    word_store(values, one)  WordStore(place=0xF0012DD8, span=(0xF001B984, 0xF001B987), ...)
    word_stores(values)    {WordStore(place=0xF0012DD8, span=(0xF001B984, 0xF001B987), ...)}

A ``WordStore`` needs neither the graph nor its values afterwards, so that a function with a summary
hands its stores on to proofs about its callers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from quoll.arm.insn import PC, AccessKind, Insn
from quoll.arm.system_registers import DISCARDED
from quoll.errors import ControlFlowError
from quoll.image.memory_map import Span
from quoll.intervals.strided_interval import ValueSet
from quoll.semantics.lift import lift
from quoll.semantics.ops import OpCode, Space
from quoll.value_analysis.value_results import ValueResults

__all__ = ["KnownStore", "WordStore", "stores", "word_store", "word_stores"]

NEAR = 1 << 16  # bytes: the largest range within which an address counts as known
STORES = (AccessKind.STORE, AccessKind.SWAP)
WORD = 4  # bytes


class KnownStore(NamedTuple):
    """A store by instruction ``insn`` of ``node``; ``span``: the bytes that it may hit, if known.

    ``exact``: it has one address. ``on_stack``: it hits a stack of unknown place.
    """

    node: int
    insn: int
    span: Span | None
    exact: bool
    on_stack: bool


def stores(values: ValueResults) -> Iterator[KnownStore]:
    """All stores of reached nodes."""
    for node, at in enumerate(values.graph.nodes):
        if not values.reached(node):
            continue
        for index, insn in enumerate(at.block.insns):
            memory = insn.memory
            if memory is not None and memory.access not in STORES:
                continue
            where = values.access(node, index)
            if where is None:
                continue
            if where.high - where.low < NEAR:
                size = DISCARDED if memory is None else memory.size * memory.count
                span, exact = (where.low, where.high + size - 1), where.exact is not None
                yield KnownStore(node, index, span, exact, False)
            else:
                frame = values.frame_access(node, index)
                on_stack = frame is not None and frame.high - frame.low < NEAR
                yield KnownStore(node, index, None, False, on_stack)


@dataclass(frozen=True, slots=True)
class WordStore:
    """A store by the instruction at ``place`` to bytes of ``span``, first and last.

    ``exact``: it has one address; ``word``: the possible words that it stores there, if it stores
    one. ``on_stack``: it hits a stack of unknown place, near its sp at the start. ``unknown``:
    nothing is known about its address, which is not computed from a stack address (S8).
    """

    place: int
    span: Span
    exact: bool
    word: ValueSet | None
    on_stack: bool
    unknown: bool


def word_stores(values: ValueResults) -> frozenset[WordStore]:
    """All stores of reached nodes, without duplicates from several contexts."""
    return frozenset(word_store(values, store) for store in stores(values))


def word_store(values: ValueResults, store: KnownStore) -> WordStore:
    """A store of a reached node, without its node."""
    insn = values.graph.nodes[store.node].block.insns[store.insn]
    where = values.access(store.node, store.insn)
    assert where is not None, "a store has an address"
    memory = insn.memory
    size = DISCARDED if memory is None else memory.size * memory.count
    register = _stored_register(insn) if store.exact else None
    word = None if register is None else values.operand(store.node, store.insn, register)
    unknown = (
        store.span is None
        and memory is not None
        and not values.near_a_stack(store.node, store.insn)
    )
    span = where.low, where.high + size - 1
    return WordStore(insn.addr, span, store.exact, word, store.on_stack, unknown)


def _stored_register(insn: Insn) -> int | None:
    """The register that an instruction stores as one word; None if it stores anything else."""
    memory = insn.memory
    if memory is None or memory.access is not AccessKind.STORE or memory.size * memory.count > WORD:
        return None
    try:
        stored = [op.ins[1] for op in lift(insn) if op.code is OpCode.STORE]
    except ControlFlowError:
        return None
    if len(stored) != 1:
        return None
    [word] = stored
    register = word.space is Space.REG and word.size == WORD and word.offset < PC
    return word.offset if register else None
