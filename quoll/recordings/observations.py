"""Accesses of a recorded execution that refute or support a fact about memory (rule 28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.facts.fact import Fact
from quoll.facts.memory_facts import RegionFact, UnknownPointsIntoFact
from quoll.facts.regions import MemoryRegions, PointerBounds
from quoll.image.image import Image
from quoll.recordings.trace import Execution

__all__ = ["Observation", "insn_at", "observations"]

READ_ONLY = "read-only"
SIZE = 0xFF  # mask of the size in an access word; the next bit marks stores
Words = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Observation:
    """An access of an execution that a fact concerns."""

    fact: Fact
    position: int  # of the instruction in the execution
    address: int  # the accessed address
    holds: bool  # whether the fact allows it


def observations(
    regions: MemoryRegions,
    image: Image,
    execution: Execution,
    unknown: frozenset[int] = frozenset(),
) -> Iterator[Observation]:
    """For each observable fact, the first access that refutes it, else its first access.

    Stores test read-only regions. A pointer fact is tested where the instruction of its place
    accesses memory through the register with a constant offset; elsewhere a recording does not show
    registers. ``unknown`` are the instructions whose access address the analysis does not know
    (``ValueResults.unknown``). No recording shows whether memory is cached.
    """
    position, low, info = execution.access_words.T
    last, store = low.astype(np.int64) + (info & SIZE) - 1, info > SIZE
    if not len(low):
        return
    pcs = np.frombuffer(execution.pcs, np.uint32)[position]
    for region in regions.of_kind(READ_ONLY):
        outside = (last < region.low) | (region.high < low)
        yield from _first(region, position, low, store, outside)
    elsewhere = regions.elsewhere
    if regions.unknown is not None and elsewhere is not None:
        about = np.isin(pcs, np.fromiter(unknown, np.uint32, len(unknown)))
        inside = (elsewhere[0] <= low) & (last <= elsewhere[1])
        yield from _first(regions.unknown, position, low, about, inside)
    for place in regions.pointers.keys() & set(pcs.tolist()):
        insn = insn_at(image, place)
        for pointer in regions.pointers[place]:
            lowest: dict[int, int] = {}
            for row in np.flatnonzero(pcs == place):
                at, address = int(position[row]), int(low[row])
                lowest[at] = min(address, lowest.get(at, address))
            yield from _pointed(pointer, insn, lowest)


def _first(
    fact: RegionFact | UnknownPointsIntoFact,
    position: Words,
    address: Words,
    about: Flags,
    allowed: Flags,
) -> Iterator[Observation]:
    """The first access that violates ``fact``, else the first that it concerns."""
    rows = np.flatnonzero(about & ~allowed)
    holds = not len(rows)
    for row in (np.flatnonzero(about) if holds else rows)[:1]:
        yield Observation(fact, int(position[row]), int(address[row]), holds)


def _pointed(
    pointer: PointerBounds, insn: Insn, lowest: Mapping[int, int]
) -> Iterator[Observation]:
    """The first violating access of a pointer fact at one instruction, else its first access."""
    found: Observation | None = None
    for position, address in lowest.items():
        base: int | None = address
        if pointer.register is not None:
            base = _base(insn, address, pointer.register)
        if base is None:
            return
        holds = base in pointer.known
        if found is None or not holds:
            found = Observation(pointer.fact, position, address, holds)
        if not holds:
            break
    if found is not None:
        yield found


def insn_at(image: Image, address: int) -> Insn:
    """The instruction at a recorded address."""
    code, symbol = image.read(address, 4) or image.read(address, 2), image.symbol_at(address)
    assert code is not None
    return decode(code, address, symbol is not None and symbol[0].thumb)


def _base(insn: Insn, address: int, register: int) -> int | None:
    """The value of ``register`` if ``insn`` accessed ``address`` first; None if undetermined."""
    memory = insn.memory
    if memory is None or memory.base != register or memory.index is not None:
        return None
    offset = memory.displacement if memory.pre_indexed or memory.count > 1 else 0
    return (address - offset) & 0xFFFFFFFF
