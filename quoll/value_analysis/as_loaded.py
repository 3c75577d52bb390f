"""Memory with its loaded contents when a path starts, and the stores that end this.

Paths may begin with memory that nothing has stored into since it was loaded (``Image.as_loaded``).
At first all of it counts as constant. The values then bound the addresses of each store, and memory
that a store may hit is constant no longer; the values are recomputed with less known, until no
store hits constant memory. This is sound by induction over the steps of an execution: as long as
none of these words has changed the values hold, and so the next step changes none. The initial
contents of stored words are still known: they are cells of the first state.

A store into a stack at an unknown address spares this memory, by a listed assumption. Any other
store that is not proved to go elsewhere may hit all of it, except read-only sections (S2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_memory import S2, S3
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
CELLS = 4096  # most words in cells of the first state; larger ranges have none


class MemoryAccesses(Protocol):
    """The known accesses of a graph."""

    graph: Supergraph

    @property
    def environment(self) -> AnalysisEnvironment:
        """The common inputs of all blocks."""

    def reached(self, node: int) -> bool:
        """Whether some execution may reach a node."""

    def access(self, node: int, insn: int) -> ValueSet | None:
        """First addresses of the data access of an instruction."""

    def frame_access(self, node: int, insn: int) -> ValueSet | None:
        """As ``access``, but distances from sp at the entry of the node's function."""


def stored_as_loaded(values: MemoryAccesses, image: Image) -> frozenset[Span]:
    """The ranges of ``image.constant_as_loaded`` that some store of the graph may hit.

    Where the map does not decide, S3 says that no alias of these words is stored to (rule 34).
    """
    constant = image.constant_as_loaded()
    places = frozenset(_stored(values)) if constant else frozenset()
    memory = image.memory
    read_only = _read_only(image, constant) if EVERYWHERE in places else ()
    if read_only:
        values.environment.used.add(S2)
        places = places - {EVERYWHERE} | frozenset(_between(read_only))
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


def _read_only(image: Image, spans: Iterable[Span]) -> tuple[Span, ...]:
    """The parts of ``spans`` in sections that are constant in any case, in ascending order."""
    always = image.starting_with(())
    sections = [(s.addr, s.addr + s.size - 1) for s in image.sections if s.size and not s.writable]
    parts = {(max(a, low), min(b, high)) for a, b in spans for low, high in sections}
    return tuple(sorted(span for span in parts if span[0] <= span[1] and always.is_constant(span)))


def _between(spans: Iterable[Span]) -> Iterator[Span]:
    """All addresses outside ``spans``, which are in ascending order."""
    at = EVERYWHERE[0]
    for low, high in spans:
        if at < low:
            yield at, low - 1
        at = max(at, high + 1)
    if at <= EVERYWHERE[1]:
        yield at, EVERYWHERE[1]


def words_at_start(image: Image) -> dict[int, int]:
    """The words that stores change, with their values when a path starts."""
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
    """The targets of stores, except for stacks of unknown place."""
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
