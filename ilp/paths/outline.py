"""A path as an outline: nested calls and loops, with counts and cycles by cause.

The chain of a node has the calls and loops around it: from the root, each context of its call
string, and within it the loops of that context that contain the node, outermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ilp.paths.solution import IlpSolution, PathStep
from pipeline.costs import CostCause, Costs
from quoll.cfg.cfg import EdgeKind
from quoll.inlining.supergraph import Supergraph

__all__ = ["PathOutline", "PathSection", "outline", "spent_at"]


@dataclass(frozen=True, slots=True)
class PathSection:
    """The subject of an outline: a call (``loop`` is None), or a loop of that context."""

    context: int
    loop: int | None


@dataclass(frozen=True, slots=True)
class PathOutline:
    """A call or loop on a path. ``children`` are in the order of their first entry on the path.

    ``entries``: number of calls or entries; ``iterations``: executions of a loop's header; ``own``
    and ``total``: cycles by cause, without and with the children.
    """

    stretch: PathSection
    entries: int
    iterations: int
    own: tuple[int, ...]
    total: tuple[int, ...]
    blocks: tuple[tuple[int, int, int], ...]  # (node, executions, cycles), by node
    children: tuple[PathOutline, ...]

    @property
    def cycles(self) -> int:
        """All cycles, children included."""
        return sum(self.total)

    def walk(self) -> Iterator[tuple[tuple[PathOutline, ...], PathOutline]]:
        """Every section before its children, each with its enclosing sections, outermost first."""
        pending: list[tuple[tuple[PathOutline, ...], PathOutline]] = [((), self)]
        while pending:
            around, at = pending.pop()
            yield around, at
            pending += [((*around, at), child) for child in reversed(at.children)]


@dataclass(slots=True)
class _SectionTally:
    """The cost of one section."""

    entries: int = 0
    iterations: int = 0
    own: list[int] = field(default_factory=lambda: [0] * len(CostCause))
    blocks: list[tuple[int, int, int]] = field(default_factory=list)
    children: list[PathSection] = field(default_factory=list)


def outline(
    graph: Supergraph,
    costs: Costs,
    solution: IlpSolution,
    steps: Sequence[PathStep] = (),
    *,
    loops: bool = True,
) -> PathOutline:
    """The outline of the counts of a solution, in the order of ``steps`` as far as they go.

    Its cycles are the sum over the counts. Without ``loops``, it is a tree of calls. Raises
    ValueError if there are no counts.
    """
    if not solution.nodes:
        raise ValueError("there are no counts")
    costs = costs.on_path(solution.nodes, solution.edges, solution.calls)
    chains = _SectionChains(graph, loops=loops)
    tallies: dict[PathSection, _SectionTally] = {}
    for node in dict.fromkeys([*(step.node for step in steps), *range(len(graph.nodes))]):
        if solution.nodes[node]:
            _open(tallies, chains.of(node))
            _charge(graph, costs, solution, tallies[chains.of(node)[-1]], node)
    for loop in graph.loops:
        tally = tallies.get(PathSection(graph.nodes[loop.header].context, loop.index))
        if tally is not None:
            started = int(graph.entry in loop.nodes)
            tally.entries = started + sum(solution.edges[e] for e in loop.entries)
            tally.iterations = solution.nodes[loop.header]
    top = chains.of(graph.entry)
    for stretch in top:
        if stretch.loop is None:
            tallies[stretch].entries += 1
    for e, edge in enumerate(graph.edges):
        if edge.kind is EdgeKind.CALL and solution.edges[e]:
            tallies[PathSection(graph.nodes[edge.dst].context, None)].entries += solution.edges[e]
    return _built(tallies, top[0])


def spent_at(graph: Supergraph, costs: Costs, solution: IlpSolution, node: int) -> list[int]:
    """The cycles of all executions of ``node`` by cause, its outgoing edges included.

    ``costs``: of this path (``Costs.on_path``).
    """
    spent = [solution.nodes[node] * cycles for cycles in costs.nodes[node]]
    for e in graph.successors[node]:
        if solution.edges[e]:
            spent = [a + solution.edges[e] * b for a, b in zip(spent, costs.edges[e], strict=True)]
    spent[CostCause.OTHER] -= costs.less.get(node, 0)
    if node == graph.entry:
        spent = [a + b for a, b in zip(spent, costs.start, strict=True)]
    return spent


def _charge(
    graph: Supergraph, costs: Costs, solution: IlpSolution, tally: _SectionTally, node: int
) -> None:
    """Add the cycles of all executions of ``node``."""
    spent = spent_at(graph, costs, solution, node)
    tally.own = [a + b for a, b in zip(tally.own, spent, strict=True)]
    tally.blocks.append((node, solution.nodes[node], sum(spent)))


class _SectionChains:
    """The sections around each node, outermost first."""

    def __init__(self, graph: Supergraph, *, loops: bool) -> None:
        self._graph = graph
        self._loops: list[list[int]] = [[] for _ in graph.nodes]  # outer loops come first
        for loop in graph.loops if loops else ():
            for node in loop.nodes:
                self._loops[node].append(loop.index)
        self._known: dict[int, tuple[PathSection, ...]] = {}

    def of(self, node: int) -> tuple[PathSection, ...]:
        """The chain of ``node``."""
        if node not in self._known:
            graph = self._graph
            within: dict[int, list[int]] = {}
            for loop in self._loops[node]:
                header = graph.nodes[graph.loops[loop].header]
                within.setdefault(header.context, []).append(loop)
            chain: list[PathSection] = []
            at: int | None = graph.nodes[node].context
            while at is not None:
                chain += [PathSection(at, loop) for loop in reversed(within.get(at, []))]
                chain.append(PathSection(at, None))
                at = graph.contexts[at].parent
            self._known[node] = tuple(reversed(chain))
        return self._known[node]


def _open(tallies: dict[PathSection, _SectionTally], chain: Sequence[PathSection]) -> None:
    """Add the sections that the path has not entered before."""
    for position, stretch in enumerate(chain):
        if stretch not in tallies:
            tallies[stretch] = _SectionTally()
            if position:
                tallies[chain[position - 1]].children.append(stretch)


def _built(tallies: dict[PathSection, _SectionTally], top: PathSection) -> PathOutline:
    """The finished outline, children before their parents."""
    order, pending = [], [top]
    while pending:
        order.append(at := pending.pop())
        pending += tallies[at].children
    done: dict[PathSection, PathOutline] = {}
    for at in reversed(order):
        tally = tallies[at]
        children = tuple(done[child] for child in tally.children)
        columns = zip(tally.own, *(child.total for child in children), strict=True)  # by cause
        done[at] = PathOutline(
            at,
            tally.entries,
            tally.iterations,
            tuple(tally.own),
            tuple(map(sum, columns)),
            tuple(sorted(tally.blocks)),
            children,
        )
    return done[top]
