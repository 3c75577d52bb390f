"""Loads whose address a loop advances: at most one miss per line they pass, not one per load.

A *stream* is a load whose address moves by a constant ``stride`` per execution while the loop runs,
and whose previous line is still in the cache. It misses only where it enters another line, and when
the loop is entered. The analysis follows the aliases of symbols from the load around the loop and
back to it (rule 13), and drops lines that another access may evict. This holds for every policy: a
line used last stays until another line may fill its set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cache.events import CacheEvent
from cache.geometry import CacheGeometry
from cache.lines import signed
from cache.persistence import LoopScopes
from cache.reference import AccessStream
from quoll.abstract_domain.terms import RIGID
from quoll.inlining.supergraph import Supergraph

__all__ = ["LoadEvents", "find_streams"]

Place = tuple[int, int]  # a node, and the position of an event in it
Behind = dict[int, int]  # symbol -> offset in bytes of the previous access; all name the same byte


@dataclass(frozen=True, slots=True)
class LoadEvents:
    """The events of nodes, None for events that surely hit, and the events of all edges.

    ``candidates`` are loads that may be streams, with the bytes that each accesses in its line.
    """

    nodes: Mapping[int, Sequence[CacheEvent | None]]
    edges: Sequence[Sequence[CacheEvent]]
    candidates: Mapping[Place, tuple[CacheEvent, int]]
    aliases: Callable[[int], Mapping[int, int]]


def find_streams(
    graph: Supergraph, scopes: LoopScopes, geometry: CacheGeometry, loads: LoadEvents
) -> dict[Place, AccessStream]:
    """The candidates that are streams, each in the outermost loop in which it is one."""
    finder = _StreamFinder(graph, geometry, loads)
    found: dict[Place, AccessStream] = {}
    for place, (load, width) in loads.candidates.items():
        around: tuple[int, ...] = ()
        for loop in reversed(scopes.around[place[0]]):
            if loop >= len(graph.loops):
                continue
            stride = finder.stride(place, load, scopes.executed[loop])
            if stride is None:
                break
            around = (*around, loop)
            found[place] = AccessStream(loop, geometry.line_bytes, stride, width, around)
    return found


class _StreamFinder:
    """Follows one load at a time."""

    def __init__(self, graph: Supergraph, geometry: CacheGeometry, loads: LoadEvents) -> None:
        self.graph, self.geometry, self.loads = graph, geometry, loads
        self.known_aliases: dict[int, Mapping[int, int]] = {}

    def stride(self, place: Place, load: CacheEvent, inside: frozenset[int]) -> int | None:
        """Bytes from one execution to the next, less than a line; None if not constant."""
        target = load.target
        assert target is not None
        assert target.symbol is not None
        first = target.spans[0][0]
        came = self.around(place, load, {target.symbol: first}, inside)
        if came is None or target.symbol not in came:
            return None
        stride = abs(first - came[target.symbol])
        return stride if stride < self.geometry.line_bytes else None

    def around(
        self, place: Place, load: CacheEvent, start: Behind, inside: frozenset[int]
    ) -> Behind | None:
        """The state of the previous execution when the load executes again; None: unknown."""
        node, position = place
        states: dict[int, Behind] = {}
        arrived: Behind | None = None
        after = self.past(node, position + 1, None, start, load)
        pending = [] if after is None else [(node, after)]
        while pending:
            source, state = pending.pop()
            for edge, target in self.onward(source, inside):
                behind = self.along(edge, state, load)
                if behind is None:
                    return None
                before = states.get(target)
                joined = behind if before is None else common(before, behind)
                if joined == before:
                    continue
                states[target] = joined
                if target == node:
                    arrived = self.past(node, 0, position, joined, load)
                    if not arrived:
                        return None
                    continue
                passed = self.past(target, 0, None, joined, load)
                if passed is None:
                    return None
                pending.append((target, passed))
        return arrived

    def onward(self, node: int, inside: frozenset[int]) -> Iterator[tuple[int, int]]:
        """Edges out of a node that stay in the loop, with their targets."""
        for edge in self.graph.successors[node]:
            target = self.graph.edges[edge].dst
            if target in inside:
                yield edge, target

    def along(self, edge: int, state: Behind, load: CacheEvent) -> Behind | None:
        """The state after ``edge``, along which symbols change."""
        if any(self.evicts(event, state, load) for event in self.loads.edges[edge]):
            return None
        aliases = self.known_aliases.get(edge)
        if aliases is None:
            aliases = self.known_aliases[edge] = self.loads.aliases(edge)
        after = {symbol: at for symbol, at in state.items() if symbol < RIGID}
        for symbol, term in aliases.items():
            at = state.get(term >> 32)
            if at is not None:
                after[symbol] = at - signed(term)
        return after or None

    def past(
        self, node: int, first: int, last: int | None, state: Behind, load: CacheEvent
    ) -> Behind | None:
        """The state after the events of a node from ``first``, before ``last``."""
        for event in self.loads.nodes.get(node, ())[first:last]:
            if event is not None and self.evicts(event, state, load):
                return None
        return state

    def evicts(self, event: CacheEvent, state: Behind, load: CacheEvent) -> bool:
        """Whether ``event`` may evict the line of the previous access, or change its address."""
        target = event.target
        if target is None:
            return True
        if load.target is not None and not target.sets & load.target.sets:
            return False
        if event.store or event.vacates:
            return event.vacates
        geometry = self.geometry
        at = None if target.symbol is None else state.get(target.symbol)
        if at is None:
            return True
        # Lines of one symbol that lie less than a way apart are in different sets, or the same.
        near = (geometry.index_sets - 2) * geometry.line_bytes
        return not all(
            abs(low - at) <= near and abs(high - at) <= near for low, high in target.spans
        )


def common(a: Behind, b: Behind) -> Behind:
    """The weaker of both states."""
    return {symbol: at for symbol, at in a.items() if b.get(symbol) == at}
