"""Stores all of whose addresses are read-only: S2 does not cover them (rule 49).

S2 assumes that a store at one of many addresses hits no read-only one. If all are read-only, the
store would hit nothing. So memory that is read-only by its section flags is then written, as by a
store to a known place; a fact that calls the memory read-only is contradicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quoll.arm.insn import AccessKind, Insn
from quoll.errors import ControlFlowError
from quoll.facts.memory_facts import RegionFact
from quoll.image.image import Image
from quoll.image.memory_map import Span
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.value_analysis.as_loaded import MemoryAccesses

__all__ = ["read_only_stores", "refuse_read_only"]

MEMBERS = 1024  # most addresses that are analysed one by one
STORES = (AccessKind.STORE, AccessKind.SWAP)


def read_only_stores(values: MemoryAccesses, image: Image) -> frozenset[Span]:
    """The bytes that stores may write that surely hit memory ``image`` treats as unchanged."""
    found: set[Span] = set()
    for _, where, size in _stores(values):
        span = where.low, where.high + size - 1
        known = found if where.exact is None else None  # other stores are followed individually
        if known is None or span in known or not _are_read_only(where, size, image):
            continue
        found.update(image.overwritten(span))
    return frozenset(found)


def refuse_read_only(values: MemoryAccesses, image: Image, regions: Sequence[RegionFact]) -> None:
    """Raise ControlFlowError for a store that surely hits memory that a fact calls read-only."""
    for insn, where, size in _stores(values) if regions else ():
        for fact in regions:
            if fact.low <= where.low and where.high + size - 1 <= fact.high:
                raise ControlFlowError(
                    f"{insn.text} stores into {fact.name}, at {image.place(where.low)}"
                    f"{'' if where.exact is not None else ' or behind'}, which is read-only by "
                    f"{fact.source}",
                    where=image.place(insn.addr),
                    hint="leave the fact out, or end the path before: path must end at PLACE",
                )


def _stores(values: MemoryAccesses) -> Iterator[tuple[Insn, ValueSet, int]]:
    """The reached stores with restricted addresses, and their sizes in bytes."""
    for index, node in enumerate(values.graph.nodes):
        if not values.reached(index):
            continue
        for number, insn in enumerate(node.block.insns):
            memory = insn.memory
            if memory is None or memory.access not in STORES:
                continue
            where = values.access(index, number)
            if where is not None and where != ANY:
                yield insn, where, memory.size * memory.count


def _are_read_only(where: ValueSet, size: int, image: Image) -> bool:
    if where.size <= MEMBERS:
        return all(image.is_constant((addr, addr + size - 1)) for addr in where)
    return image.is_constant((where.low, where.high + size - 1))
