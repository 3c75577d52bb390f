"""A path as an outline: calls and loops inside each other, with counts and cycles by cause.

The stretch of a node is the chain of calls and loops around it: from the root, each context of
its call string, and within it the loops of that context that contain the node, outermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ilp.paths.solution import PathStep, Solution
from pipeline.costs import Cause, Costs
from quoll.cfg.cfg import EdgeKind
from quoll.inlining.supergraph import Supergraph

__all__ = ["Outline", "Stretch", "outline", "spent_at"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What an outline's part is about: a call (``loop`` is None), or a loop of that context."""

    context: int
    loop: int | None


@dataclass(frozen=True, slots=True)
class Outline:
    """A call or loop on a path. ``parts`` are in the order in which the path meets them first.

    ``entries`` is how often it was called or entered, ``rounds`` how often the header of a loop
    executed; ``own`` and ``total`` are cycles by cause, without and with the parts inside.
    """

    stretch: Stretch
    entries: int
    rounds: int
    own: tuple[int, ...]
    total: tuple[int, ...]
    blocks: tuple[tuple[int, int, int], ...]  # (node, executions, cycles), by node
    parts: tuple[Outline, ...]

    @property
    def cycles(self) -> int:
        """All cycles, those of the parts included."""
        return sum(self.total)

    def walk(self) -> Iterator[tuple[tuple[Outline, ...], Outline]]:
        """Every part with those around it, outermost first, before the parts inside it."""
        pending: list[tuple[tuple[Outline, ...], Outline]] = [((), self)]
        while pending:
            around, at = pending.pop()
            yield around, at
            pending += [((*around, at), part) for part in reversed(at.parts)]


@dataclass(slots=True)
class _Tally:
    """What one stretch uses."""

    entries: int = 0
    rounds: int = 0
    own: list[int] = field(default_factory=lambda: [0] * len(Cause))
    blocks: list[tuple[int, int, int]] = field(default_factory=list)
    parts: list[Stretch] = field(default_factory=list)


def outline(
    graph: Supergraph, costs: Costs, solution: Solution, steps: Sequence[PathStep] = ()
) -> Outline:
    """The outline of the counts of a solution, in the order of ``steps`` as far as they go.

    Its cycles are those that the counts add up to. Raises ValueError if there are no counts.
    """
    if not solution.nodes:
        raise ValueError("there are no counts")
    chains = _Chains(graph)
    tallies: dict[Stretch, _Tally] = {}
    for node in dict.fromkeys([*(step.node for step in steps), *range(len(graph.nodes))]):
        if solution.nodes[node]:
            _open(tallies, chains.of(node))
            _charge(graph, costs, solution, tallies[chains.of(node)[-1]], node)
    for loop in graph.loops:
        tally = tallies.get(Stretch(graph.nodes[loop.header].context, loop.index))
        if tally is not None:
            started = int(graph.entry in loop.nodes)
            tally.entries = started + sum(solution.edges[e] for e in loop.entries)
            tally.rounds = solution.nodes[loop.header]
    top = chains.of(graph.entry)
    for stretch in top:
        if stretch.loop is None:
            tallies[stretch].entries += 1
    for e, edge in enumerate(graph.edges):
        if edge.kind is EdgeKind.CALL and solution.edges[e]:
            tallies[Stretch(graph.nodes[edge.dst].context, None)].entries += solution.edges[e]
    return _built(tallies, top[0])


def spent_at(graph: Supergraph, costs: Costs, solution: Solution, node: int) -> list[int]:
    """What all executions of ``node`` cost by cause, the edges out of it included."""
    spent = [solution.nodes[node] * cycles for cycles in costs.nodes[node]]
    for e in graph.successors[node]:
        if solution.edges[e]:
            spent = [a + solution.edges[e] * b for a, b in zip(spent, costs.edges[e], strict=True)]
    if node == graph.entry:
        spent = [a + b for a, b in zip(spent, costs.start, strict=True)]
    return spent


def _charge(graph: Supergraph, costs: Costs, solution: Solution, tally: _Tally, node: int) -> None:
    """Add what all executions of ``node`` cost."""
    spent = spent_at(graph, costs, solution, node)
    tally.own = [a + b for a, b in zip(tally.own, spent, strict=True)]
    tally.blocks.append((node, solution.nodes[node], sum(spent)))


class _Chains:
    """The stretches around each node, outermost first."""

    def __init__(self, graph: Supergraph) -> None:
        self._graph = graph
        self._loops: list[list[int]] = [[] for _ in graph.nodes]  # outer loops come first
        for loop in graph.loops:
            for node in loop.nodes:
                self._loops[node].append(loop.index)
        self._known: dict[int, tuple[Stretch, ...]] = {}

    def of(self, node: int) -> tuple[Stretch, ...]:
        """The chain of ``node``."""
        if node not in self._known:
            graph = self._graph
            within: dict[int, list[int]] = {}
            for loop in self._loops[node]:
                header = graph.nodes[graph.loops[loop].header]
                within.setdefault(header.context, []).append(loop)
            chain: list[Stretch] = []
            at: int | None = graph.nodes[node].context
            while at is not None:
                chain += [Stretch(at, loop) for loop in reversed(within.get(at, []))]
                chain.append(Stretch(at, None))
                at = graph.contexts[at].parent
            self._known[node] = tuple(reversed(chain))
        return self._known[node]


def _open(tallies: dict[Stretch, _Tally], chain: Sequence[Stretch]) -> None:
    """Add the stretches that the path has not met."""
    for position, stretch in enumerate(chain):
        if stretch not in tallies:
            tallies[stretch] = _Tally()
            if position:
                tallies[chain[position - 1]].parts.append(stretch)


def _built(tallies: dict[Stretch, _Tally], top: Stretch) -> Outline:
    """The finished outline, parts before what they are in."""
    order, pending = [], [top]
    while pending:
        order.append(at := pending.pop())
        pending += tallies[at].parts
    done: dict[Stretch, Outline] = {}
    for at in reversed(order):
        tally = tallies[at]
        parts = tuple(done[part] for part in tally.parts)
        columns = zip(tally.own, *(part.total for part in parts), strict=True)  # by cause
        done[at] = Outline(
            at,
            tally.entries,
            tally.rounds,
            tuple(tally.own),
            tuple(map(sum, columns)),
            tuple(sorted(tally.blocks)),
            parts,
        )
    return done[top]
