"""The stacks to which code switches, as given by the constants from which sp is computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from loopbounds.slicing.cell import SP
from loopbounds.slicing.effects import block_effect, stack_symbol
from loopbounds.terms.bit_vectors import Term
from quoll.cfg.cfg import Block, Program
from quoll.image.image import Image

__all__ = ["FRAMES", "NO_STACKS", "StackSpans"]

FRAMES = 1 << 16  # bytes above sp that may belong to live frames


@dataclass(frozen=True, slots=True)
class StackSpans:
    """``spans``: lowest address and end of each stack; ``apart``: ends of stacks in no section.

    An address in a stack of ``apart`` is a distance from its end. As a number it could be confused
    with other numbers: a stack may end at 0xfffffff0, and -62 is no address in it.
    """

    spans: tuple[tuple[int, int], ...]
    apart: frozenset[int]

    @staticmethod
    def of(blocks: Iterable[Block], image: Image) -> StackSpans:
        """The stacks to which code switches."""
        tops = sorted(set(_tops(blocks, image)))
        apart = frozenset(top for top in tops if image.section_at(top - 1) is None)
        return StackSpans(tuple((_bottom(top, image), top) for top in tops), apart)

    @staticmethod
    def of_program(program: Program, image: Image) -> StackSpans:
        """The stacks to which a program switches."""
        return StackSpans.of((b for cfg in program.functions.values() for b in cfg.blocks), image)

    def joined(self, other: StackSpans) -> StackSpans:
        """These stacks and the other ones."""
        spans = sorted({*self.spans, *other.spans}, key=lambda span: span[1])
        return StackSpans(tuple(spans), self.apart | other.apart)

    def end_of(self, symbol: Term) -> int | None:
        """The end of the stack that ``symbol`` stands for; None for other symbols."""
        return next((end for end in self.apart if stack_symbol(end) is symbol), None)

    def hold(self, stack_pointer: int, address: int) -> bool:
        """Whether an address is in live frames of the stack into which sp points."""
        return any(bottom <= stack_pointer <= address < top for bottom, top in self.spans)

    def are_apart(self, stack_pointer: int, address: int) -> bool:
        """Whether both are in one stack outside of sections; sp may be at its end."""
        return any(
            bottom <= stack_pointer <= top and bottom <= address <= top
            for bottom, top in self.spans
            if top in self.apart
        )

    def surely_reach(self, low: int, high: int) -> bool:
        """Whether some byte from ``low`` to ``high`` is in a stack with two known ends.

        A stack in a section, without a symbol, has no known lowest address.
        """
        return any(
            bottom <= high and low < top
            for bottom, top in self.spans
            if top in self.apart or top - bottom != FRAMES
        )

    def may_reach(self, low: int, high: int) -> bool:
        """Whether some byte from ``low`` to ``high`` may be in a stack, or at its end."""
        return any(bottom <= high and low <= top for bottom, top in self.spans)

    def reach(self, address: int) -> bool:
        """Whether an address is in a stack, or at its end."""
        return self.may_reach(address, address)

    def reach_in_section(self, address: int) -> bool:
        """Whether an address is in a stack in a section, or at its end."""
        return any(low <= address <= top for low, top in self.spans if top not in self.apart)


NO_STACKS = StackSpans((), frozenset())


def _tops(blocks: Iterable[Block], image: Image) -> Iterator[int]:
    """The constants from which code computes the stack pointer."""
    for block in {id(block): block for block in blocks}.values():
        if not any(SP in insn.writes for insn in block.insns):
            continue
        effect = block_effect(block)
        value = effect.registers.get(SP)
        for part in () if value is None else _chosen(value):
            if part in effect.loads and effect.loads[part].address.constant is not None:
                load = effect.loads[part]
                loaded = image.constant(load.address.value, load.size)
                if loaded is not None:
                    yield loaded
        if value is not None and value.constant is not None:
            yield value.value


def _bottom(top: int, image: Image) -> int:
    """The lowest address of the stack below ``top``: its symbol's, if it has one."""
    found = image.symbol_at(top - 1)
    if found is None or found[0].addr + found[0].size < top:
        return top - FRAMES
    return found[0].addr


def _chosen(value: Term) -> Iterator[Term]:
    """The words that a value may be, or from which it is computed, except for conditions."""
    seen = {value}
    pending = [value]
    while pending:
        term = pending.pop()
        yield term
        parts = term.args[1:] if term.op == "ite" else term.args
        pending += [part for part in parts if part not in seen]
        seen.update(parts)
