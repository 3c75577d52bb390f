"""Classification of every memory reference of a supergraph: the entrance to this package.

L1 is analysed in full; of L2, only locked lines are known. An access reaches L2 only if L1 misses,
and L1 is never *proved* to miss from an unknown initial state, because the real cache has more ways
than the model counts. Every access to L2 is therefore uncertain. An uncertain access, join(access,
no access), adds nothing to the L2 state, which is empty at the start (rules 6 and 10). All other L2
references are not classified and cost a miss; ``docs/caches.md`` has the argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cache.data_cache import DataAddresses, DataClassifier
from cache.events import FlowOrder
from cache.geometry import CacheHierarchy
from cache.instruction_cache import AddressStrides, FetchClasses, FetchClassifier
from cache.locked import NOT_LOCKED
from cache.persistence import LoopScopes
from cache.reference import CacheClassification, Reference
from cache.unlocked import unlocking, unlocks_code, unlocks_data
from cache.wrong_paths import InsnAt
from quoll.assumptions import (
    AT_ENTRY,
    EVICTION,
    LOCKED,
    LOCKED_AGAIN,
    NOTHING_KNOWN,
    Assumption,
)
from quoll.inlining.supergraph import Supergraph

__all__ = ["ClassifiedFetches", "classify"]


@dataclass(frozen=True, slots=True)
class ClassifiedFetches:
    """A graph with the classes of its fetches, which do not depend on the range of data addresses.

    ``flow``: its order, for further analyses of the graph.
    """

    graph: Supergraph
    hierarchy: CacheHierarchy
    flow: FlowOrder
    scopes: LoopScopes
    fetches: FetchClasses

    @staticmethod
    def of(
        graph: Supergraph,
        strides: AddressStrides,
        hierarchy: CacheHierarchy,
        code: InsnAt = lambda addr, thumb: None,
    ) -> ClassifiedFetches:
        """The fetches of ``graph`` when the caches start unknown and dirty.

        ``code``: the instructions that fetch may find on wrong paths, if branches are predicted.
        """
        flow, scopes = FlowOrder.of(graph), LoopScopes.of(graph)
        fetches = FetchClassifier(graph, flow, scopes, hierarchy, strides, code).run()
        return ClassifiedFetches(graph, hierarchy, flow, scopes, fetches)

    def with_data(self, values: DataAddresses) -> CacheClassification:
        """The classes of all references. Loop bounds are not needed.

        ``CacheClassification.counted`` applies them later.
        """
        graph, scopes, fetches = self.graph, self.scopes, self.fetches
        data = DataClassifier(graph, self.flow, scopes, self.hierarchy, values).run()
        references = tuple(_in_order(f, d) for f, d in zip(fetches.nodes, data.nodes, strict=True))
        first: list[tuple[Reference, ...]] = [()] * len(graph.edges)
        start: tuple[Reference, ...] = ()
        for loop in scopes.loops:
            lines = fetches.loops.get(loop.index, ()) + data.loops.get(loop.index, ())
            if lines:
                for edge in loop.entries:
                    first[edge] += lines
                if loop.header == graph.entry:
                    start += lines
        return CacheClassification(
            references,
            fetches.edges,
            tuple(first),
            (*_assumptions(self.hierarchy), *_locked_again(graph, self.hierarchy)),
            fetches.leaving,
            start,
            data.ranges,
        )


def classify(
    graph: Supergraph,
    values: DataAddresses,
    hierarchy: CacheHierarchy,
    code: InsnAt = lambda addr, thumb: None,
) -> CacheClassification:
    """Classify fetches, loads and stores of all nodes; arguments as for ``ClassifiedFetches``."""
    return ClassifiedFetches.of(graph, values, hierarchy, code).with_data(values)


def _in_order(fetches: tuple[Reference, ...], data: tuple[Reference, ...]) -> tuple[Reference, ...]:
    """Fetches before the data accesses of the same instruction."""
    if not data:
        return fetches
    return tuple(sorted(fetches + data, key=lambda r: r.insn))


def _assumptions(hierarchy: CacheHierarchy) -> tuple[Assumption, ...]:
    held = (
        ("L1I", hierarchy.locked_i),
        ("L1D", hierarchy.locked_d),
        ("L2", hierarchy.locked if hierarchy.l2 else NOT_LOCKED),
    )
    return (
        *(() if hierarchy.initial_i or hierarchy.initial_d else (NOTHING_KNOWN.of(),)),
        EVICTION.of(),
        *(
            LOCKED.of(
                cache=name, spans=", ".join(_span(a, b, locked.line_bytes) for a, b in locked.spans)
            )
            for name, locked in held
            if locked
        ),
        *(
            AT_ENTRY.of(cache=name, state=state.text())
            for name, state in (("L1I", hierarchy.initial_i), ("L1D", hierarchy.initial_d))
            if state
        ),
    )


def _locked_again(graph: Supergraph, hierarchy: CacheHierarchy) -> Iterator[Assumption]:
    """The entries behind this one need the lines that it may drop."""
    for cache, locked, unlocks in (
        ("L1I", hierarchy.locked_i, unlocks_code),
        ("L1D", hierarchy.locked_d, unlocks_data),
    ):
        places = unlocking(graph, unlocks) if locked else ()
        if places:
            yield LOCKED_AGAIN.of(cache=cache, places=", ".join(f"{at:#010x}" for at in places))


def _span(first: int, last: int, size: int) -> str:
    return f"{first * size:#x} to {last * size + size - 1:#x}"
