"""Invariants that every store of an entry preserves, by values: they hold all along its paths.

The proof needs neither the ends of paths nor the order of stores. So it also covers functions with
a summary, from which a path may end, loops, and exceptions on a path: each store either hits other
memory, or stores a word for which the predicate holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from loopbounds.slicing.cell import MemoryCell
from quoll.assumptions import Assumption
from quoll.facts.entry_invariants import LocatedInvariant
from quoll.facts.predicate import MemoryWord
from quoll.image.image import Image
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.known_stores import WordStore, word_stores
from wcet.proving.entry_basis import EntryBasis

__all__ = [
    "PreservedWords",
    "fixed",
    "stores_are_known",
    "stores_preserve",
    "stores_valid",
    "summarised",
]

MOST = 1 << 12  # words that are compared with a predicate, one by one


@dataclass(frozen=True, slots=True)
class PreservedWords:
    """The assumptions under which stores preserve an invariant; ``stored``: one may hit it."""

    assumed: frozenset[Assumption]
    stored: bool


def stores_preserve(
    basis: EntryBasis, invariant: LocatedInvariant, words: Mapping[MemoryWord, MemoryCell]
) -> PreservedWords | None:
    """The proof that each store preserves ``invariant``; None: one may break it."""
    if not stores_are_known(basis) or not fixed(basis.image, words.values()):
        return None
    found, stored = set[Assumption](), False
    for store in _stores(basis):
        for cell in words.values():
            by = basis.spares(store, cell)
            if by is None and not stores_valid(invariant, words, store, cell):
                return None
            found |= by or frozenset()
            stored |= by is None
    return PreservedWords(frozenset(found), stored)


def fixed(image: Image, cells: Iterable[MemoryCell]) -> bool:
    """Whether no change of translations moves one of the words."""
    spans = ((one.address.value, one.address.value + one.size - 1) for one in cells)
    return all(map(image.memory.fixes, spans))


def stores_are_known(basis: EntryBasis) -> bool:
    """Whether the stores of every function outside of the graph are known."""
    summaries = basis.entry.summaries
    unknown = {one.function for one in summaries if any(p.stores is None for p in one.paths)}
    summarised = {one.function for one in summaries} - unknown
    replaced = basis.graph.guidance.replaced.items()
    return all(r.preserves or (r.settled and function in summarised) for function, r in replaced)


def _stores(basis: EntryBasis) -> Iterator[WordStore]:
    yield from word_stores(basis.entry.values)
    yield from summarised(basis)


def summarised(basis: EntryBasis) -> Iterator[WordStore]:
    """The stores of functions with a summary."""
    for one in basis.entry.summaries:
        for paths in one.paths:
            yield from paths.stores or ()


def stores_valid(
    invariant: LocatedInvariant,
    words: Mapping[MemoryWord, MemoryCell],
    store: WordStore,
    cell: MemoryCell,
) -> bool:
    """Whether a store writes all of a word, the only one of the predicate, and preserves it."""
    at = cell.address.value, cell.address.value + cell.size - 1
    if len(words) != 1 or not store.exact or store.span != at or store.word is None:
        return False
    members = _members(store.word)
    return members is not None and all(_holds(invariant, member) for member in members)


def _holds(invariant: LocatedInvariant, word: int) -> bool:
    """Whether the predicate holds if its only word is ``word``."""
    return invariant.fact.predicate.holds(lambda _: word)


def _members(words: ValueSet) -> Iterable[int] | None:
    """All members of a set; None if it has too many."""
    step = max(words.stride, 1)
    if (words.high - words.low) // step >= MOST:
        return None
    return range(words.low, words.high + 1, step)
