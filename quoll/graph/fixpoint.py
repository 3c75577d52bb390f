"""The fixed-point engine: every abstract interpretation of a graph runs here.

States flow along edges in weak topological order; heads of components widen after some joins,
one descending pass narrows, and a last pass over every edge checks the result (rule 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from quoll.errors import WcetError
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder

__all__ = ["AbstractDomain", "AscendingIteration", "Fixpoint", "count_in_edges", "solve"]

S = TypeVar("S")

JOINS_BEFORE_WIDENING = 2
VISITS = 10_000  # of one node; only a domain without terminating widening needs more


class AbstractDomain(Protocol[S]):
    """The interface of an abstract domain. Bottom (unreachable) is None."""

    def transfer(self, edge: int, state: S) -> S | None:
        """The state at the target of ``edge`` when ``state`` holds at the start of its source.

        None if the edge cannot be taken from ``state``.
        """

    def join(self, node: int, a: S, b: S) -> S:
        """A state that covers both at the start of ``node``; ``a`` is the state already there.

        Every state that arrives along a backward edge is joined, if need be with itself.
        """

    def widen(self, node: int, old: S, new: S) -> S:
        """A state that covers both; repeated widening of a state ends after finitely many steps."""

    def leq(self, a: S, b: S) -> bool:
        """Whether ``b`` covers ``a``."""


@dataclass(frozen=True, slots=True)
class Fixpoint(Generic[S]):
    """``states[n]`` holds whenever control is at the start of ``n``; None: never reached.

    ``dead`` are the edges that no execution takes: their source is not reached, or the transfer
    from its state is infeasible. ``late`` are the dead edges that were taken while ascending.
    """

    states: tuple[S | None, ...]
    dead: frozenset[int]
    visits: int  # nodes processed, repetitions included
    narrowed: bool
    late: frozenset[int] = frozenset()


def solve(graph: FlowGraph, order: WeakOrder, domain: AbstractDomain[S], entry: S) -> Fixpoint[S]:
    """The states of all nodes when ``entry`` holds at the start of the entry node.

    Raises WcetError if the states do not cover each other along some edge, which is an error of
    the domain, never of the input.
    """
    ascent = AscendingIteration(graph, order, domain)
    ascent.run({graph.entry: entry})
    if ascent.widened:
        narrowed = _narrow(graph, order, domain, entry, ascent)
        dead, uncovered = _check(graph, domain, {graph.entry: entry}, narrowed, ascent.covered)
        if uncovered is None:
            late = dead & ascent.taken
            return Fixpoint(tuple(narrowed), dead, sum(ascent.visited), True, late)
    return ascent.result()


class AscendingIteration(Generic[S]):
    """The ascending iteration, which can continue from further starts after it has finished.

    ``in_edges``: the result of ``count_in_edges``, if known. ``likely``: states expected to recur;
    a state equal to its likely one is replaced by that object.
    """

    def __init__(
        self,
        graph: FlowGraph,
        order: WeakOrder,
        domain: AbstractDomain[S],
        in_edges: Sequence[int] | None = None,
        likely: Sequence[S | None] | None = None,
    ) -> None:
        self.graph, self.order, self.domain, self.likely = graph, order, domain, likely
        self.states: list[S | None] = [None] * len(graph.successors)
        self.starts: dict[int, S] = {}
        self.in_edges = list(count_in_edges(graph, order) if in_edges is None else in_edges)
        self.joins = [0] * len(graph.successors)
        self.widened = False
        self.visited = [0] * len(graph.successors)
        self.taken: set[int] = set()
        self.covered: dict[int, list[tuple[S, S]]] = {}  # node -> states, each with one above it

    def run(self, starts: Mapping[int, S]) -> None:
        """Iterate until nothing changes, when control may also start at the nodes ``starts``.

        Each node is given once, with the state that holds there.
        """
        graph, position, nodes = self.graph, self.order.position, self.order.nodes
        for node, start in starts.items():
            self.starts[node] = start
            self.in_edges[node] += 1
            old = self.states[node]
            self.states[node] = start if old is None else self.domain.join(node, old, start)
        queue = sorted(position[node] for node in starts)
        queued = set(queue)
        while queue:
            at = heappop(queue)
            queued.discard(at)
            node = nodes[at]
            state = self._recognised(node)
            self.visited[node] += 1
            if self.visited[node] > VISITS:
                raise WcetError(f"the fixed point does not end at node {node}")
            for edge in graph.successors[node]:
                out = self.domain.transfer(edge, state)
                if out is None:
                    continue
                self.taken.add(edge)
                target = graph.targets[edge]
                if not self._arrive(target, out, position[target] <= at):
                    continue
                if position[target] not in queued:
                    queued.add(position[target])
                    heappush(queue, position[target])

    def result(self) -> Fixpoint[S]:
        """The states, checked along every edge; raises WcetError as ``solve`` does."""
        found = self.states
        dead, uncovered = _check(self.graph, self.domain, self.starts, found, self.covered)
        if uncovered is not None:
            raise WcetError(
                f"the fixed point does not hold along the edge {uncovered}",
                hint="this is an error of the analysis, please report it",
            )
        return Fixpoint(tuple(self.states), dead, sum(self.visited), False)

    def _cover(self, node: int, below: S, above: S) -> None:
        """Note that ``above``, now the state of ``node``, covers ``below``."""
        pairs = self.covered.setdefault(node, [])
        pairs[:] = [pair for pair in pairs if pair[1] is above]
        pairs.append((below, above))

    def _recognised(self, node: int) -> S:
        """The state of ``node``, as the likely object if both are equal."""
        state = self.states[node]
        assert state is not None
        likely = None if self.likely is None else self.likely[node]
        if likely is None or likely is state:
            return state
        if self.domain.leq(likely, state) and self.domain.leq(state, likely):
            self.states[node] = likely
            self.covered[node] = [(state, likely)]
            return likely
        return state

    def _arrive(self, node: int, out: S, backwards: bool) -> bool:
        """Join ``out`` into the state of ``node``; returns False if it was covered already."""
        old = self.states[node]
        if old is None:
            self.states[node] = self.domain.join(node, out, out) if backwards else out
            return True
        if self.in_edges[node] == 1 and not backwards:
            self.states[node] = out
            return out != old
        if self.domain.leq(out, old):
            if out is not old:
                self._cover(node, out, old)
            return False
        if backwards and self.joins[node] >= JOINS_BEFORE_WIDENING:
            self.states[node] = self.domain.widen(node, old, out)
            self.widened = True
        else:
            self.joins[node] += backwards
            self.states[node] = self.domain.join(node, old, out)
        return True


def count_in_edges(graph: FlowGraph, order: WeakOrder) -> list[int]:
    """For each node, the number of edges to it from reached nodes."""
    count = [0] * len(graph.successors)
    for node in order.nodes:
        for edge in graph.successors[node]:
            count[graph.targets[edge]] += 1
    return count


def _narrow(
    graph: FlowGraph,
    order: WeakOrder,
    domain: AbstractDomain[S],
    entry: S,
    ascent: AscendingIteration[S],
) -> list[S | None]:
    """One descending pass: every state recomputed from its predecessors, without widening.

    A state that cannot narrow stays the same object, which domains recognise. If the ascent visited
    a node once and no predecessor has narrowed, its state cannot narrow and is not recomputed.
    """
    wide, position = ascent.states, order.position
    states: list[S | None] = [None] * len(graph.successors)
    states[graph.entry] = entry
    entering: list[list[int]] = [[] for _ in graph.successors]
    for node in order.nodes:
        for edge in graph.successors[node]:
            if position[graph.targets[edge]] > position[node]:
                entering[graph.targets[edge]].append(edge)
    for node in order.nodes:
        old = wide[node]
        if old is None:
            continue
        sources = [graph.sources[edge] for edge in entering[node]]
        visited_once = ascent.visited[node] == 1 and not order.is_head(node) and node != graph.entry
        if visited_once and all(states[source] is wide[source] for source in sources):
            states[node] = old
            continue
        for edge, source in zip(entering[node], sources, strict=True):
            _merge(domain, states, node, edge, states[source])
        if order.is_head(node):
            for edge in _backward_edges(graph, order, node):
                _merge(domain, states, node, edge, wide[graph.sources[edge]], backwards=True)
        state = states[node]
        if state is not None and domain.leq(old, state):
            states[node] = old
    return states


def _merge(
    domain: AbstractDomain[S],
    states: list[S | None],
    node: int,
    edge: int,
    source: S | None,
    *,
    backwards: bool = False,
) -> None:
    """Join the state along ``edge`` into the state of ``node``."""
    out = None if source is None else domain.transfer(edge, source)
    if out is not None:
        out = domain.join(node, out, out) if backwards else out
        old = states[node]
        states[node] = out if old is None else domain.join(node, old, out)


def _backward_edges(graph: FlowGraph, order: WeakOrder, head: int) -> list[int]:
    inside = order.nodes[order.position[head] : order.end[head]]
    return [e for n in inside for e in graph.successors[n] if graph.targets[e] == head]


def _check(
    graph: FlowGraph,
    domain: AbstractDomain[S],
    starts: Mapping[int, S],
    states: Sequence[S | None],
    covered: Mapping[int, Sequence[tuple[S, S]]],
) -> tuple[frozenset[int], str | None]:
    """One pass over every edge (rule 5): the dead edges, and an edge that is not covered.

    ``covered``: by node, pairs of states whose comparison is known: the second covers the first.
    """
    for node, start in starts.items():
        known = states[node]
        if known is None or not domain.leq(start, known):
            return frozenset(), f"into {node}"
    dead: list[int] = []
    for node, edges in enumerate(graph.successors):
        state = states[node]
        for edge in edges:
            out = None if state is None else domain.transfer(edge, state)
            if out is None:
                dead.append(edge)
                continue
            to = graph.targets[edge]
            target = states[to]
            if target is None:
                return frozenset(), f"{node} -> {to}"
            if any(out is below and target is above for below, above in covered.get(to, ())):
                continue
            if not domain.leq(out, target):
                return frozenset(), f"{node} -> {to}"
    return frozenset(dead), None
