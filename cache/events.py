"""The events of one cache on the nodes and edges of a graph, and their fixed point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from cache.lines import AccessedLines
from quoll.graph.fixpoint import solve
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder
from quoll.inlining.supergraph import Supergraph

__all__ = ["UNSEEN", "CacheEvent", "CacheEvents", "EventFlow", "FlowOrder"]

S = TypeVar("S")  # state of the cache
V = TypeVar("V")  # verdict on an event


class CacheEvent(NamedTuple):
    """One access to one line, or (``target`` None) an operation on the cache.

    ``certain``: the access executes, and its line is in the cache afterwards. ``pays``: if the
    access is charged, the charge covers a miss of just this line. ``first``: the charge is made
    where a loop is entered. ``store``: the access changes at most, with LRU, the order of lines.
    ``vacates``: the line may leave the cache, so that nothing is known of its set afterwards.
    ``group``: a load that may share charges with others through its symbol (``AccessGroup.words``).

    Operations: ``forget`` leaves nothing known; if it also ``empties`` the cache, no line is
    present. ``drop`` removes at most one line, any line, and is charged for it. ``rename``: unknown
    addresses have changed their meaning.
    """

    target: AccessedLines | None
    certain: bool = False
    pays: bool = False
    first: bool = False
    store: bool = False
    vacates: bool = False
    group: int | None = None
    forget: bool = False
    empties: bool = False
    drop: bool = False
    rename: bool = False


@dataclass(frozen=True, slots=True)
class CacheEvents:
    """All events of one cache in program order: of each node, then of each edge out of it."""

    nodes: Sequence[Sequence[CacheEvent]]
    edges: Sequence[Sequence[CacheEvent]]


UNSEEN = CacheEvent(None, forget=True, rename=True)  # code that is not examined (rule 2)


@dataclass(frozen=True, slots=True)
class FlowOrder:
    """A supergraph in the form of the fixed-point engine; computed once for all analyses."""

    graph: FlowGraph
    order: WeakOrder

    @staticmethod
    def of(graph: Supergraph) -> FlowOrder:
        """The flow graph of ``graph``."""
        flow = FlowGraph(
            graph.entry,
            [e.src for e in graph.edges],
            [e.dst for e in graph.edges],
            graph.successors,
        )
        return FlowOrder(flow, WeakOrder.of(flow))


class _Effect(NamedTuple, Generic[S, V]):
    """Events from the state ``before`` on."""

    before: S
    after: S
    verdicts: tuple[V, ...]


class EventFlow(ABC, Generic[S, V]):
    """The states of a cache when events happen along the paths of a graph.

    An instance of ``quoll.graph.fixpoint.AbstractDomain``. The effects of the events of a node or
    an edge are cached until the next query in another state, so classification does not repeat the
    events of the fixed point.
    """

    def __init__(self, flow: FlowOrder, events: CacheEvents, start: S) -> None:
        self._flow, self._events = flow, events
        self._inside: dict[int, _Effect[S, V]] = {}
        self._past: dict[int, _Effect[S, V]] = {}  # by edge
        self.states = solve(flow.graph, flow.order, self, start).states

    @abstractmethod
    def after(self, state: S, events: Sequence[CacheEvent]) -> tuple[S, tuple[V, ...]]:
        """The state after ``events``, and the verdict on each."""

    @abstractmethod
    def along(self, edge: int, state: S) -> S:
        """``state`` after ``edge``, without the edge's events."""

    @abstractmethod
    def join(self, node: int, a: S, b: S) -> S: ...

    @abstractmethod
    def widen(self, node: int, old: S, new: S) -> S: ...

    @abstractmethod
    def leq(self, a: S, b: S) -> bool: ...

    def transfer(self, edge: int, state: S) -> S | None:
        end = self._through(self._flow.graph.sources[edge], state).after
        known = self._past.get(edge)
        if known is None or known.before is not end:
            after, verdicts = self.after(end, self._events.edges[edge])
            known = self._past[edge] = _Effect(end, self.along(edge, after), verdicts)
        return known.after

    def _through(self, node: int, state: S) -> _Effect[S, V]:
        known = self._inside.get(node)
        if known is None or known.before is not state:
            after, verdicts = self.after(state, self._events.nodes[node])
            known = self._inside[node] = _Effect(state, after, verdicts)
        return known

    def inside(self, node: int, events: Sequence[CacheEvent]) -> tuple[V, ...] | None:
        """The verdicts on ``events`` from the start of ``node``; None if it is never reached."""
        state = self.states[node]
        if state is None:
            return None
        if events == self._events.nodes[node]:
            return self._through(node, state).verdicts
        return self.after(state, events)[1]

    def past(self, node: int, events: Sequence[CacheEvent]) -> tuple[V, ...] | None:
        """The verdicts on ``events`` after the events of ``node``; None if it is never reached."""
        state = self.states[node]
        if state is None:
            return None
        end = self._through(node, state).after
        for edge in self._flow.graph.successors[node]:
            known = self._past.get(edge)
            if known is not None and known.before is end and events == self._events.edges[edge]:
                return known.verdicts
        return self.after(end, events)[1]
