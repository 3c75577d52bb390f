"""Memory as loaded: addresses with their initial contents when a path starts, and until which
store.

Paths may begin with memory that nothing has stored into since it was loaded (``Image.as_loaded``).
All of it is first taken for constant. The values then bound the addresses of each store, and
memory that one may hit is constant no longer; with less known the values are found again, until no
store hits what is taken for constant. That is sound by induction over the steps of an execution: as
long as none of these words has changed the values hold, and so no further step changes one. Stored
words are known at the start of a path all the same: they are cells of the first state.

A store into a stack at an unknown address spares this memory, as the listed assumption says. Any
other store that is not proved to go elsewhere may hit all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_memory import S3
from quoll.arm.insn import AccessKind
from quoll.arm.status import writes_masks
from quoll.arm.system_registers import DISCARDED
from quoll.image.image import Image
from quoll.image.memory_map import Span
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["stored_as_loaded", "words_at_start"]

WORD = 4  # bytes
HALF = 1 << 31
EVERYWHERE = 0, (1 << 32) - 1
CELLS = 4096  # words of the first state; of a part that is larger none is one


class MemoryAccesses(Protocol):
    """What values say of the accesses of a graph."""

    graph: Supergraph

    @property
    def environment(self) -> AnalysisEnvironment:
        """What all blocks share."""

    def reached(self, node: int) -> bool:
        """Whether some execution may reach a node."""

    def access(self, node: int, insn: int) -> ValueSet | None:
        """First addresses of the data access of an instruction."""

    def frame_access(self, node: int, insn: int) -> ValueSet | None:
        """The same as distances from sp at the entry of the node's part."""


def stored_as_loaded(values: MemoryAccesses, image: Image) -> frozenset[Span]:
    """The parts of ``image.constant_as_loaded`` that some store of the graph may hit.

    That no other name of these words is stored to is S3 (rule 34), where the map does not tell.
    """
    constant = image.constant_as_loaded()
    places = frozenset(_stored(values)) if constant else frozenset()
    memory = image.memory
    hit = frozenset(
        (max(low, first), min(high, last))
        for span in places
        for low, high in memory.physical_aliases(*span)
        for first, last in constant
        if low <= last and first <= high
    )
    left = image.changing(hit).constant_as_loaded()
    if any(memory.assumes_apart(span, loaded) for span in places for loaded in left):
        values.environment.used.add(S3)
    return hit


def words_at_start(image: Image) -> dict[int, int]:
    """The words of memory that stores change, as they are when a path starts."""
    found: dict[int, int] = {}
    for low, high in image.changed_as_loaded():
        first = low & ~(WORD - 1)
        if high - low >= CELLS * WORD or len(found) >= CELLS:
            continue
        for addr in range(first, high + 1, WORD):
            word = image.at_start(addr, WORD)
            if word is not None and image.constant(addr, WORD) is None:
                found[addr] = word
    return found


def _stored(values: MemoryAccesses) -> Iterator[Span]:
    """Where stores may go, but for stacks whose place is not known."""
    graph = values.graph
    for index, node in enumerate(graph.nodes):
        if not values.reached(index):
            continue
        for number, insn in enumerate(node.block.insns):
            if writes_masks(insn):  # an interrupt handler may run then
                yield EVERYWHERE
            memory = insn.memory
            if memory is not None and memory.access not in (AccessKind.STORE, AccessKind.SWAP):
                continue
            where = values.access(index, number)
            if where is None:
                continue
            if where == ANY:
                frame = values.frame_access(index, number)
                if frame is None or frame.high - frame.low >= HALF:
                    yield EVERYWHERE
                continue
            size = DISCARDED if memory is None else memory.size * memory.count
            last = where.high + size - 1
            yield EVERYWHERE if last > EVERYWHERE[1] else (where.low, last)
    for edge in range(len(graph.edges)):
        if any(not replaced.preserves for replaced in graph.passed(edge)):
            yield EVERYWHERE
