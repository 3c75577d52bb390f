"""Facts about registers, pointers and interrupt masks that values contradict (rule 49)."""

from __future__ import annotations

from quoll.errors import FactsError
from quoll.facts.regions import MemoryRegions, PointerBounds
from quoll.image.image import Image
from quoll.intervals.strided_interval import ANY, ValueSet, meet
from quoll.value_analysis.value_results import ValueResults

__all__ = ["refuse_contradicted"]


def refuse_contradicted(values: ValueResults, image: Image, regions: MemoryRegions) -> None:
    """Raise FactsError for a fact about a word or mask that is another one in some context."""
    _refuse_masked(values, image, regions)
    for index, node in enumerate(values.graph.nodes if regions.pointers else ()):
        if not values.reached(index):
            continue
        for number, insn in enumerate(node.block.insns):
            for pointer in regions.pointers.get(insn.addr, ()):
                known = _excluded(values, index, number, pointer)
                if known is None:
                    continue
                what = "it accesses" if pointer.register is None else f"r{pointer.register} is"
                raise FactsError.contradicted(
                    f"'{pointer.fact}' is not so: {what} {known} when control is at "
                    f"{image.place(insn.addr)}",
                    about=pointer.fact.key,
                    hint="correct the fact or remove it",
                )


def _refuse_masked(values: ValueResults, image: Image, regions: MemoryRegions) -> None:
    """Raise FactsError for a function that begins unmasked and is entered with a known mask."""
    for index, node in enumerate(values.graph.nodes if regions.unmasked else ()):
        fact = regions.unmasked.get(node.block.addr)
        if fact is not None and values.reached(index) and values.masked(index) is not False:
            raise FactsError.contradicted(
                f"'{fact}' is not so: interrupts are masked when control gets to "
                f"{image.place(node.block.addr)}, in some context at least",
                about=fact.key,
                hint="an exception masks them; name a function that runs behind the instruction "
                "that unmasks them, or remove the fact",
            )


def _excluded(
    values: ValueResults, node: int, insn: int, pointer: PointerBounds
) -> ValueSet | None:
    """Words that a fact excludes, if values prove that the word is one of them on some path."""
    if pointer.register is None:
        where = values.access(node, insn)
        ways = [] if where is None else [where]
    else:
        ways = [values.operand(node, insn, pointer.register)]
        if not insn:
            ways += values.arriving(node, pointer.register)
    return next((w for w in ways if w != ANY and meet(w, pointer.known) is None), None)
