"""Invariants at the ends of paths, by where stores break them and functions establish them.

Along the paths of a graph an invariant holds until a store may break it. It holds again behind a
call of a function at each of whose returns it holds, however it was called. So a scheduler that
clears a word on all its paths is proved alone, and the rest of the graph is followed with one bit a
node. A store of a valid word changes nothing: it may be conditional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from loopbounds.slicing.cell import MemoryCell
from quoll.assumptions import Assumption
from quoll.cfg.cfg import EdgeKind
from quoll.facts.entry_invariants import LocatedInvariant
from quoll.facts.predicate import MemoryWord
from quoll.inlining.supergraph import Supergraph
from quoll.value_analysis.known_stores import WordStore
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.preserved_words import (
    fixed,
    stores_are_known,
    stores_valid,
    summarised,
)

__all__ = ["EstablishedWords", "established"]

LARGE = 500  # nodes of a function that is not tried: its proof takes long

# Whether an invariant holds at each end of the paths of a function, from any state.
Establishes = Callable[[EntryBasis], bool]


@dataclass(frozen=True, slots=True)
class EstablishedWords:
    """The nodes behind which an invariant holds, and the assumptions of the proof."""

    after: frozenset[int]
    assumed: frozenset[Assumption]


def established(
    basis: EntryBasis,
    invariant: LocatedInvariant,
    words: Mapping[MemoryWord, MemoryCell],
    establishes: Establishes,
) -> EstablishedWords | None:
    """Where ``invariant`` holds if it does when paths start; None: it is not known."""
    cells = words.values()
    if not stores_are_known(basis) or not fixed(basis.image, cells):
        return None
    assumed, sparing = set[Assumption](), dict[WordStore, bool]()

    def spares(store: WordStore) -> bool:
        if store not in sparing:
            by = [basis.spares(store, cell) for cell in cells]
            sparing[store] = None not in by
            assumed.update(one for found in by for one in found or ())
        return sparing[store]

    if not all(map(spares, summarised(basis))):
        return None
    breaking, storing = set[int](), set[int]()  # nodes with stores that may hit a word
    for (node, _), store in basis.stores.items():
        if not spares(store):
            storing.add(node)
            if not all(stores_valid(invariant, words, store, cell) for cell in cells):
                breaking.add(node)
    ends = establishing(basis, storing, establishes, assumed)
    unknown = may_be_broken(basis.graph, breaking, ends)
    after = frozenset(range(len(basis.graph.nodes))) - unknown - breaking
    return EstablishedWords(after, frozenset(assumed))


def establishing(
    basis: EntryBasis, storing: Set[int], establishes: Establishes, assumed: set[Assumption]
) -> frozenset[int]:
    """The edges that return from functions which establish the invariant.

    Tried are the small functions with a store that may hit its words.
    """
    graph = basis.graph
    if any(context.recursive for context in graph.contexts):
        return frozenset()
    contexts = {graph.nodes[node].context for node in storing}
    tried: dict[int, bool] = {}
    found = set[int]()
    for context in contexts:
        edges = returns_of(graph, context)
        function = graph.contexts[context].function
        nodes = sum(len(graph.nodes_in[inner]) for inner in graph.called_by(context))
        if not edges or nodes > LARGE or context == graph.nodes[graph.entry].context:
            continue
        if function not in tried:
            alone = basis.called(function)
            tried[function] = alone is not None and establishes(alone)
            if alone is not None and tried[function]:
                assumed.update(alone.hypotheses)
        if tried[function]:
            found |= edges
    return frozenset(found)


def returns_of(graph: Supergraph, context: int) -> frozenset[int]:
    """The edges of returns out of an activation; none if it is not entered at its start."""
    inside = graph.called_by(context)
    start = graph.contexts[context].function & ~1
    found = set[int]()
    for index, edge in enumerate(graph.edges):
        src, dst = (graph.nodes[node].context in inside for node in (edge.src, edge.dst))
        if dst and not src:
            entered = graph.nodes[edge.dst]
            if entered.context != context or entered.block.addr != start:
                return frozenset()
        if src and not dst and edge.kind is EdgeKind.RETURN:
            found.add(index)
    return frozenset(found)


def may_be_broken(graph: Supergraph, breaking: Set[int], ends: Set[int]) -> frozenset[int]:
    """The nodes before which the invariant may not hold; it does behind each edge of ``ends``."""
    found, pending = set[int](), list[int]()
    pending += (graph.edges[e].dst for n in breaking for e in graph.successors[n] if e not in ends)
    while pending:
        if (node := pending.pop()) not in found:
            found.add(node)
            pending += (graph.edges[e].dst for e in graph.successors[node] if e not in ends)
    return frozenset(found)
