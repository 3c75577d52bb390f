"""Cores by the names of their places, so that they are found again in another build.

A block is named by its function with an offset, in its calling context. In a rebuilt kernel, equal
names may mean other code: whoever places a core proves it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ilp.constraints.proved_exclusions import InfeasibleCore
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.results.cache_key import key_of
from quoll.results.results_store import ResultsStore
from quoll.results.versions import versions
from wcet.analysis.request_key import CODE

__all__ = ["CoreName", "GraphNames", "NamedCores", "named_cores", "store_names"]

MOST = 200  # names of an entry: each costs a proof in each build
T = TypeVar("T")
Place = tuple[str, int]  # a function and the offset in it; "" and an address outside of all


@dataclass(frozen=True, slots=True)
class NodeName:
    """A block. ``calls``: call sites around it, outermost first; ``iterations``: peeled loops."""

    calls: tuple[Place, ...]
    block: Place
    iterations: tuple[tuple[Place, bool], ...]


@dataclass(frozen=True, slots=True)
class EdgeName:
    """A transfer of control; ``kind``: the name of its ``EdgeKind``."""

    source: NodeName
    target: NodeName
    kind: str


@dataclass(frozen=True, slots=True)
class CoreName:
    """An ``InfeasibleCore``; loops are named by their headers."""

    loop: NodeName | None
    edges: tuple[EdgeName, ...]
    distance: int
    counts: tuple[tuple[NodeName, int], ...]


@dataclass(frozen=True, slots=True)
class NamedCores:
    """A record: the cores of each refined entry of the builds of a kernel."""

    of_entries: Mapping[str, tuple[CoreName, ...]]


def named_cores(store: ResultsStore, kernel: Path) -> Mapping[str, tuple[CoreName, ...]]:
    """By entry, the cores of earlier builds of a kernel, the last one first: to be proved again."""
    if not store.enabled:
        return {}
    found: NamedCores | None = store.load(names_key(kernel), NamedCores)
    return {} if found is None else found.of_entries


def store_names(store: ResultsStore, kernel: Path, entry: str, names: tuple[CoreName, ...]) -> None:
    """Store the cores of one entry. The cores of earlier builds follow them."""
    known = named_cores(store, kernel)
    names = tuple(dict.fromkeys((*names, *known.get(entry, ()))))[:MOST]
    store.save(names_key(kernel), NamedCores({**known, entry: names}))


def names_key(kernel: Path) -> str:
    """The key of the cores of all builds of the kernel in one file."""
    return key_of("named cores", str(kernel.absolute()), versions(*CODE))


class GraphNames:
    """The names in one graph."""

    def __init__(self, graph: Supergraph, image: Image) -> None:
        self._graph, self._image = graph, image
        self._places: dict[int, Place] = {}

    def name(self, core: InfeasibleCore) -> CoreName:
        """A core of the graph by names."""
        loops = self._graph.loops
        return CoreName(
            None if core.loop is None else self._node(loops[core.loop].header),
            tuple(map(self._edge, core.edges)),
            core.distance,
            tuple((self._node(loops[loop].header), least) for loop, least in core.counts),
        )

    def placed(self, name: CoreName) -> InfeasibleCore | None:
        """The core in this graph, without a proof; None if a name is of no place, or of several."""
        edges = [self._edges.get(edge) for edge in name.edges]
        loops = [self._loops.get(header) for header, _ in name.counts]
        around = None if name.loop is None else self._loops.get(name.loop)
        known = tuple(edge for edge in edges if edge is not None)
        if len(known) < len(edges) or None in loops or (around is None) != (name.loop is None):
            return None
        counts = zip(loops, name.counts, strict=True)
        repeated = tuple((loop, least) for loop, (_, least) in counts if loop is not None)
        return InfeasibleCore(around, known, (), name.distance, repeated)

    def _place(self, addr: int) -> Place:
        known = self._places.get(addr)
        if known is None:
            function = self._image.symbols.function_around(addr)
            known = ("", addr) if function is None else (function.name, addr - function.addr)
            self._places[addr] = known
        return known

    def _node(self, number: int) -> NodeName:
        node = self._graph.nodes[number]
        iterations = tuple((self._place(one.header), one.first) for one in node.iterations)
        return NodeName(self._calls[node.context], self._place(node.block.addr), iterations)

    def _edge(self, number: int) -> EdgeName:
        edge = self._graph.edges[number]
        return EdgeName(self._node(edge.src), self._node(edge.dst), edge.kind.name)

    @cached_property
    def _calls(self) -> list[tuple[Place, ...]]:
        """By context, the call sites around it."""
        found: list[tuple[Place, ...]] = []
        for one in self._graph.contexts:  # callers come first
            outer = () if one.parent is None else found[one.parent]
            found.append(outer if one.call_site is None else (*outer, self._place(one.call_site)))
        return found

    @cached_property
    def _edges(self) -> dict[EdgeName, int]:
        return only((self._edge(e), e) for e in range(len(self._graph.edges)))

    @cached_property
    def _loops(self) -> dict[NodeName, int]:
        return only((self._node(loop.header), loop.index) for loop in self._graph.loops)


def only(pairs: Iterable[tuple[T, int]]) -> dict[T, int]:
    """The numbers of names that one number has."""
    found: dict[T, list[int]] = defaultdict(list)
    for name, number in pairs:
        found[name].append(number)
    return {name: numbers[0] for name, numbers in found.items() if len(numbers) == 1}
