"""The code that loops are sliced from: the acyclic supergraph and the effect of each block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from loopbounds.acyclic import Acyclic
from loopbounds.cell import SP
from loopbounds.effects import Effect, block_effect
from loopbounds.terms import Term, sub
from quoll.cfg import Block
from quoll.image import Image
from quoll.supergraph import Supergraph
from quoll.valueset import ANY, ValueSet

__all__ = ["Code", "KnownValues", "NothingKnown"]

FRAMES = 1 << 16  # bytes above the stack pointer that may be live frames


class KnownValues(Protocol):
    """What value analysis answers, for every execution of the node in its context."""

    def register(self, node: int, register: int, /) -> ValueSet:
        """The values of a general register when a node begins."""

    def access(self, node: int, insn: int, /) -> ValueSet | None:
        """First addresses that an instruction of the node's block accesses; None: no access."""


class NothingKnown:
    """Any word, anywhere."""

    def register(self, node: int, register: int, /) -> ValueSet:
        """Any word."""
        return ANY

    def access(self, node: int, insn: int, /) -> ValueSet | None:
        """Any address."""
        return ANY


@dataclass(slots=True)
class Code:
    """Read-only for its users; effects are computed when first asked for."""

    graph: Supergraph
    acyclic: Acyclic
    image: Image
    values: KnownValues
    bounds: dict[int, int] = field(default_factory=dict)  # proved so far, by loop index
    s1: bool = True  # rule 1: stores of unknown address spare live stack frames
    _effects: dict[int, Effect] = field(default_factory=dict)
    _tops: frozenset[int] | None = None
    _written: dict[int, frozenset[int]] = field(default_factory=dict)

    def effect(self, node: int) -> Effect:
        """What the block of ``node`` does."""
        block: Block = self.graph.nodes[node].block
        known = self._effects.get(id(block))
        if known is None:
            known = self._effects[id(block)] = block_effect(block)
        return known

    def written(self, loop: int) -> frozenset[int]:
        """Registers that some block of a loop writes."""
        known = self._written.get(loop)
        if known is None:
            nodes = self.graph.loops[loop].nodes
            known = frozenset(r for node in nodes for r in self.effect(node).registers)
            self._written[loop] = known
        return known

    def steady(self, address: int, size: int) -> bool:
        """Whether memory there only changes by stores of this program: a section of the image."""
        section = self.image.section_at(address)
        return section is not None and address + size <= section.addr + section.size

    def is_frame(self, address: Term, stack_pointer: Term) -> bool:
        """Whether an address is within the live stack frames at a stack pointer."""
        distance = sub(address, stack_pointer).constant
        if distance is None or distance >= FRAMES:
            return False
        if address.constant is None:
            return True
        tops = [t for t in self.stack_tops() if t >= stack_pointer.value]
        return bool(tops) and address.value < min(tops)

    def near_stack(self, value: int) -> bool:
        """Whether a constant may be an address in a stack."""
        return any(self._bottom(top) <= value <= top for top in self.stack_tops())

    def _bottom(self, top: int) -> int:
        """Where the stack below ``top`` ends: the object it is, if it has a symbol."""
        found = self.image.symbol_at(top - 1)
        if found is None or found[0].addr + found[0].size < top:
            return top - FRAMES
        return found[0].addr

    def stack_tops(self) -> frozenset[int]:
        """The constants that are loaded into the stack pointer."""
        if self._tops is None:
            self._tops = frozenset(self._find_tops())
        return self._tops

    def _find_tops(self) -> Iterator[int]:
        for node in range(len(self.graph.nodes)):
            if not any(SP in insn.writes for insn in self.graph.nodes[node].block.insns):
                continue
            effect = self.effect(node)
            value = effect.registers.get(SP)
            load = effect.loads.get(value) if value is not None else None
            if load is not None and load.address.constant is not None:
                loaded = self.image.constant(load.address.value, load.size)
                if loaded is not None:
                    yield loaded
            elif value is not None and value.constant is not None:
                yield value.value
