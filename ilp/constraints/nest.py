"""The verified loop nest of a supergraph, with the most executions of each node.

IPET bounds cycles only through their loops, and the path builder walks the nest, so both assume
these properties, which ``LoopNest.build`` verifies:

    a loop is entered at its header only, by exactly its entry edges
    loops are nested or disjoint, and a parent comes before its children
    without all back edges the graph is acyclic
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from loopbounds.proof.bound import LoopBound, NoBound, NoBoundKind
from quoll.errors import (
    ControlFlowError,
    MissingKind,
    MissingStatement,
    UnansweredLoop,
    UnboundedLoop,
)
from quoll.graph.closure import closure
from quoll.inlining.supergraph import Supergraph, SuperLoop

__all__ = ["LoopNest", "all_unbounded", "checked_bounds", "topological_order", "totals"]


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The innermost loop of each node, and the most executions of nodes and edges.

    A path may start inside loops (at a preemption point); these are ``started``.
    """

    graph: Supergraph
    bounds: tuple[int, ...]  # per loop: header executions per entry (rule 18)
    innermost: tuple[int | None, ...]  # per node
    started: frozenset[int]
    leaving: tuple[frozenset[int], ...]  # per loop: nodes that reach its outside without its header
    order: tuple[int, ...]  # nodes in topological order, without back edges

    @staticmethod
    def build(graph: Supergraph, bounds: Sequence[int]) -> LoopNest:
        """The verified nest. Raises ControlFlowError naming the loop that is not natural."""
        innermost: list[int | None] = [None] * len(graph.nodes)
        for loop in graph.loops:
            verify_loop(graph, loop)
            for node in loop.nodes:
                if innermost[node] != loop.parent:
                    raise ControlFlowError(
                        "two loops overlap without one containing the other",
                        where=hex(graph.nodes[loop.header].block.addr),
                        hint="give a loop bound to a region with one entry",
                    )
                innermost[node] = loop.index
        order = topological_order(graph)
        started = frozenset(loop.index for loop in graph.loops if graph.entry in loop.nodes)
        exits = frozenset(graph.exits)
        leaving = tuple(leaving_nodes(graph, loop, exits) for loop in graph.loops)
        return LoopNest(graph, tuple(bounds), tuple(innermost), started, leaving, order)

    def passes(self, loop: int, node: int) -> int:
        """Most passes through the body of ``loop`` per entry in which ``node`` executes.

        For the header it is the bound. Another node may execute in one more pass when the path
        starts inside, as the first pass is incomplete; it executes in one pass less when control
        leaves the loop only through the header, which then executes once more than the node.
        """
        header = self.graph.loops[loop].header
        if node == header:
            return self.bounds[loop]
        partial = loop in self.started and header != self.graph.entry
        return max(0, self.bounds[loop] + partial - (node not in self.leaving[loop]))

    def most_node(self, node: int, inside: Callable[[int], bool] = lambda _: True) -> int:
        """Most executions of ``node``: the product of the passes of its enclosing loops.

        Between two executions of a node the header of an enclosing loop executes (the graph is
        reducible). ``inside``, a predicate on header nodes, restricts the product to the loops of a
        region: the result is executions per entry of the region.
        """
        product, loop = 1, self.innermost[node]
        while loop is not None and inside(self.graph.loops[loop].header):
            product *= self.passes(loop, node)
            loop = self.graph.loops[loop].parent
        return product

    def most_edge(self, edge: int) -> int:
        """Most traversals of ``edge`` on one path."""
        e = self.graph.edges[edge]
        return min(self.most_node(e.src), self.most_node(e.dst))

    def most_edges(self) -> list[int]:
        """Most traversals of each edge on one path."""
        most = list(map(self.most_node, range(len(self.graph.nodes))))
        return [min(most[e.src], most[e.dst]) for e in self.graph.edges]

    def chain(self, node: int) -> tuple[int, ...]:
        """The loops around ``node``, innermost first."""
        loops: list[int] = []
        loop = self.innermost[node]
        while loop is not None:
            loops.append(loop)
            loop = self.graph.loops[loop].parent
        return tuple(loops)


def verify_loop(graph: Supergraph, loop: SuperLoop) -> None:
    """Raise ControlFlowError unless all edges into the loop are its entry and back edges."""
    into_header = set(graph.predecessors[loop.header])
    backs = {e for e in into_header if graph.edges[e].src in loop.nodes}
    if set(loop.backs) != backs or set(loop.entries) != into_header - backs:
        raise ControlFlowError(
            "the edges into a loop header are not its entry and back edges",
            where=hex(graph.nodes[loop.header].block.addr),
        )
    for node in loop.nodes:
        for e in graph.predecessors[node]:
            if node != loop.header and graph.edges[e].src not in loop.nodes:
                raise ControlFlowError(
                    "a loop is entered other than at its header (irreducible control flow)",
                    where=hex(graph.nodes[node].block.addr),
                    hint="exclude the extra entry, or compile the function without jump threading",
                )


def leaving_nodes(graph: Supergraph, loop: SuperLoop, exits: frozenset[int]) -> frozenset[int]:
    """Nodes of ``loop`` that can leave it, or end the path, before its header executes again.

    The header itself is not among them.
    """
    found = {
        n
        for n in loop.nodes
        if n in exits or any(graph.edges[e].dst not in loop.nodes for e in graph.successors[n])
    }
    inside = loop.nodes - {loop.header}

    def before(node: int) -> Iterator[int]:
        sources = (graph.edges[e].src for e in graph.predecessors[node])
        return (source for source in sources if source in inside)

    return frozenset(closure(found & inside, before))


def topological_order(graph: Supergraph) -> tuple[int, ...]:
    """All nodes in topological order, without back edges.

    Raises ControlFlowError for a cycle without a back edge, which no bound limits.
    """
    backs = {e for loop in graph.loops for e in loop.backs}
    following: list[list[int]] = [[] for _ in graph.nodes]
    waiting = [0] * len(graph.nodes)
    for e, edge in enumerate(graph.edges):
        if e not in backs:
            following[edge.src].append(edge.dst)
            waiting[edge.dst] += 1
    order = [n for n, count in enumerate(waiting) if count == 0]
    for node in order:
        for dst in following[node]:
            waiting[dst] -= 1
            if waiting[dst] == 0:
                order.append(dst)
    if len(order) < len(graph.nodes):
        stuck = next(n for n, count in enumerate(waiting) if count)
        raise ControlFlowError(
            "a cycle of the graph belongs to no loop, so nothing bounds it",
            where=hex(graph.nodes[stuck].block.addr),
        )
    return tuple(order)


COUNT = "loop PLACE at most {}"  # a fact


def checked_bounds(
    graph: Supergraph,
    bounds: Sequence[LoopBound],
    place: Callable[[int], str] = hex,
    per_iteration: Callable[[int], int | None] = lambda _: None,
) -> tuple[int, ...]:
    """One number per loop: the least of its bounds.

    Raises UnboundedLoop naming every unbounded loop with its reason and, where ``per_iteration``
    gives them, the cycles of one more iteration (the most in any context); UnansweredLoop if the
    solver failed.
    """
    least: dict[int, int] = {}
    reasons: dict[int, NoBound | None] = {}
    for b in bounds:
        if b.bound is None:
            reasons[b.loop] = b.reason
        else:
            least[b.loop] = min(b.bound, least.get(b.loop, b.bound))
    missing = [loop for loop in graph.loops if loop.index not in least]
    found: dict[int, _Unbounded] = {}
    failures: dict[str, dict[str, None]] = {}  # failure -> loops
    for loop in missing:
        header = graph.nodes[loop.header].block.addr
        reason = reasons.get(loop.index)
        if reason is not None and reason.kind is NoBoundKind.SOLVER_FAILED:
            failures.setdefault(str(reason), {})[place(header)] = None
            continue
        one = found.setdefault(header, _Unbounded(header, place(header)))
        one.reasons.setdefault(reason)
        one.cycles.append(per_iteration(loop.index))
    if missing:
        texts = [f"{', '.join(places)}: {failure}" for failure, places in failures.items()]
        texts += [one.text for one in found.values()]
        facts = [one.missing for one in found.values()]
        count = len(found) + len({at for places in failures.values() for at in places})
        raise _refusal(count, texts, facts, failed=bool(failures))
    return tuple(least[loop.index] for loop in graph.loops)


@dataclass(frozen=True, slots=True)
class _Unbounded:
    """A loop without a bound in one or more contexts, each with its reason and cycles."""

    header: int
    place: str
    reasons: dict[NoBound | None, None] = field(default_factory=dict)
    cycles: list[int | None] = field(default_factory=list)

    @property
    def why(self) -> str:
        """The reason in the first context; the number of contexts with others."""
        return self._said(str)

    def _said(self, words: Callable[[NoBound], str]) -> str:
        first, *others = self.reasons
        text = "not bounded" if first is None else words(first)
        if first is None or first.header != self.place:
            text = f"{self.place}: {text}"
        more = f"; for {len(others)} more reason{'s' if len(others) > 1 else ''} in other contexts"
        return text + (more if others else "")

    @property
    def text(self) -> str:
        """The reason, with the cycles of one more iteration."""
        return self.why + per_element(self.cycles)

    @property
    def missing(self) -> MissingStatement:
        """The fact that bounds the loop."""
        kind = MissingKind.LOOPS
        fact, provisional = COUNT.format("N"), COUNT.format("1")
        why = self._said(attrgetter("without_fact"))
        return MissingStatement(self.header, kind, why, fact, provisional, most(self.cycles))


def _refusal(
    count: int, texts: Sequence[str], facts: Sequence[MissingStatement], *, failed: bool
) -> UnboundedLoop:
    """The error about ``count`` loops; ``failed``: because a solver failed."""
    return (UnansweredLoop if failed else UnboundedLoop)(
        f"{count} loop{'s have' if count > 1 else ' has'} no bound: " + "; ".join(texts),
        hint="state in a facts file: loop PLACE at most N; or, for a bound as a function of n, "
        "loop PLACE at most n + 1",
        paragraphs=texts,
        missing=facts,
    )


def all_unbounded(errors: Sequence[UnboundedLoop]) -> UnboundedLoop:
    """One error about the loops of several, each loop once."""
    facts = {one.addr: one for error in errors for one in error.missing}
    texts = dict.fromkeys(text for error in errors for text in error.paragraphs)
    failed = any(isinstance(error, UnansweredLoop) for error in errors)
    return _refusal(len(texts), tuple(texts), tuple(facts.values()), failed=failed)


def per_element(cycles: Sequence[int | None]) -> str:
    """The text of the cost of one more iteration, if it is known for all contexts of a loop."""
    known = most(cycles)
    return "" if known is None else f"; unbounded because of this loop: {known} cycles per element"


def most(cycles: Sequence[int | None]) -> int | None:
    """The largest number of cycles; None if one is unknown."""
    known = [c for c in cycles if c is not None]
    return max(known) if known and len(known) == len(cycles) else None


def totals(graph: Supergraph, bounds: Sequence[LoopBound]) -> dict[int, int]:
    """Totals over the enclosing loop, if the graph still contains that loop."""
    found: dict[int, int] = {}
    for b in bounds:
        parent = graph.loops[b.loop].parent
        if b.total is None or parent is None:
            continue
        if graph.nodes[graph.loops[parent].header].block.addr == b.around:
            found[b.loop] = min(b.total, found.get(b.loop, b.total))
    return found
