"""Facts about registers, pointers and memory, proved by value analysis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from quoll.arm.insn import AccessKind
from quoll.facts.invariants import RegisterAtMostFact
from quoll.facts.memory_facts import InitialContentsFact, PointsIntoFact, RegionFact
from quoll.intervals.strided_interval import ANY, ValueSet
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.verdict import EntryFinding, FindingKind

__all__ = ["of_memory", "of_word"]

STORES = (AccessKind.STORE, AccessKind.SWAP)
SHOWN = 4  # stores that are named


def of_word(basis: EntryBasis, fact: RegisterAtMostFact | PointsIntoFact) -> EntryFinding:
    """The finding about a register, or an address, at a place."""
    if hidden := basis.hidden(basis.facts.at(fact, fact.place).addresses):
        return EntryFinding(FindingKind.OPEN, hidden)
    wide, found = None, list(words(basis, fact))
    for where, known in found:
        if not holds(basis, fact, known):
            wide = f"values give {'any word' if known == ANY else known} at {where}"
            break
    if not found:
        return EntryFinding(FindingKind.APART, "no path gets to the place")
    if wide is not None:
        return EntryFinding(FindingKind.OPEN, wide)
    texts = dict.fromkeys(str(known) for _, known in found)
    return EntryFinding(FindingKind.HOLDS, f"values: {', '.join(texts)}")


def words(
    basis: EntryBasis, fact: RegisterAtMostFact | PointsIntoFact
) -> Iterator[tuple[str, ValueSet]]:
    """The possible words in each context, with the place."""
    place, values = basis.facts.at(fact, fact.place), basis.entry.values
    for n, node in enumerate(basis.graph.nodes):
        for i, insn in enumerate(node.block.insns):
            if insn.addr not in place.addresses or not values.reached(n):
                continue
            register = fact.register
            known = values.access(n, i) if register is None else values.operand(n, i, register)
            if known is not None:
                yield basis.entry.code.run.image.place(insn.addr), known


def holds(basis: EntryBasis, fact: RegisterAtMostFact | PointsIntoFact, known: ValueSet) -> bool:
    """Whether each of the words satisfies the fact."""
    if isinstance(fact, RegisterAtMostFact):
        return known.high <= fact.most
    region = basis.facts.regions.regions[fact.region]
    inside = region.low <= known.low and known.high <= region.high
    return inside and known.low % fact.aligned == 0 and known.stride % fact.aligned == 0


def of_memory(basis: EntryBasis, fact: RegionFact | InitialContentsFact) -> EntryFinding:
    """The stores of the entry that may hit a region; the finding is open in any case.

    Other code runs too: start-up code, and user programs.
    """
    region = fact if isinstance(fact, RegionFact) else basis.facts.regions.regions[fact.region]
    hits = list(dict.fromkeys(stores_into(basis, region)))
    if not hits:
        why = "no store on its paths hits it; other code is not analysed"
        return EntryFinding(FindingKind.OPEN, why)
    more = f" and {len(hits) - SHOWN} more" if len(hits) > SHOWN else ""
    return EntryFinding(FindingKind.OPEN, f"stores may hit it: {', '.join(hits[:SHOWN])}{more}")


def stores_into(basis: EntryBasis, region: RegionFact) -> Iterator[str]:
    """The stores that may hit a region, in the graph and in functions with a summary."""
    image, values = basis.entry.code.run.image, basis.entry.values
    for n, node in enumerate(basis.graph.nodes):
        for i, insn in enumerate(node.block.insns):
            memory = insn.memory
            if memory is None or memory.access not in STORES or not values.reached(n):
                continue
            where = values.access(n, i)
            size = memory.size * memory.count
            if where is not None and may_hit(where, size, region):
                unknown = ", at any address" if where == ANY else ""
                yield f"{insn.text} at {image.place(insn.addr)}{unknown}"
    yield from map(partial(passed, basis), basis.graph.guidance.replaced)


def passed(basis: EntryBasis, function: int) -> str:
    """A function that is not in the graph."""
    return f"the stores of {basis.entry.code.run.image.place(function)}"


def may_hit(where: ValueSet, size: int, region: RegionFact) -> bool:
    """Whether an access may touch a byte of the region."""
    return where.low <= region.high and region.low < where.high + size
