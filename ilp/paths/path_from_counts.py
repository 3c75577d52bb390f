"""An execution order for the counts of a solution.

The counts are a multigraph in which every node except for the two ends has as many incoming as
outgoing traversals, so it has an Eulerian trail. Any trail has the same cycles, but an execution
must also respect each loop's bound at each entry (rule 18), so the trail is built along the loop
nest. At the level of one loop, with inner loops contracted to single nodes, the counts without the
back edges are a flow in an acyclic graph. The flow is decomposed into *passes*, each from the
header to a back edge, to an edge that leaves the loop, or to the end of the path. One visit of the
loop consists of passes that end in back edges, as many as the bound allows, and of one that leaves.
All passes of a loop begin at its header, so they can follow each other in any order, and the greedy
division among visits always succeeds: the loop's row leaves at most bound - 1 back edges per visit.

Passes have multiplicities, so the work is linear in the graph and in the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ilp.constraints.nest import LoopNest
from ilp.paths.solution import PathStep
from quoll.errors import SolverError

__all__ = ["MOST_STEPS", "Order", "build_path"]

MOST_STEPS = 20_000_000  # longer paths are not listed
ROOT = -1  # the level outside all loops
END = -1  # the edge taken at the end of the path

Order = Callable[[list[int]], int]  # chooses among the remaining edges out of a node


@dataclass(slots=True)
class LoopPass:
    """Edges taken at one level of the nest, in order, and the number of remaining equal passes.

    ``start``: a node, or ``-2 - loop`` for a contracted inner loop.
    """

    start: int
    edges: tuple[int, ...]
    left: int


@dataclass(slots=True)
class LoopLevel:
    """One loop, or the code outside all loops: its passes by their last edge."""

    first: LoopPass | None = None  # the pass from the start of the path, if not at the header
    again: list[LoopPass] = field(default_factory=list)  # end in a back edge
    leaving: dict[int, list[LoopPass]] = field(default_factory=dict)  # by their last edge


def first_choice(edges: list[int]) -> int:
    """The default order: the edge that the graph lists first."""
    return edges[0]


def build_path(
    nest: LoopNest, edges: Sequence[int], last: int, order: Order = first_choice
) -> tuple[PathStep, ...]:
    """The steps of a path that traverses each edge ``edges[e]`` times and ends at ``last``.

    Every ``order`` gives a path. Raises SolverError if the counts are not a flow from the entry to
    ``last`` that the path can follow, or the path has more than ``MOST_STEPS`` steps.
    """
    length = sum(edges) + 1
    if length > MOST_STEPS:
        raise SolverError(
            f"the worst path has {length} steps, too many to write out",
            hint="a loop bound is probably far too large",
        )
    steps = tuple(walk(nest, FlowDecomposition(nest, edges, last, order).levels()))
    if len(steps) != length:
        raise SolverError(
            f"of the {length} steps that the counts add up to, a path can follow only {len(steps)}"
        )
    return steps


class FlowDecomposition:
    """Decomposes the flow of every level into passes."""

    def __init__(self, nest: LoopNest, edges: Sequence[int], last: int, order: Order) -> None:
        self._nest, self._graph, self._order = nest, nest.graph, order
        self._out: dict[int, dict[int, list[int]]] = {ROOT: {}}
        self._left: dict[int, dict[int, int]] = {ROOT: {}}
        for e, count in enumerate(edges):
            if count:
                edge = self._graph.edges[e]
                self._add(edge.src, e, count, frozenset((*nest.chain(edge.dst), ROOT)))
        self._add(last, END, 1, frozenset())

    def _add(self, src: int, e: int, count: int, around: frozenset[int]) -> None:
        """Add edge ``e`` at each level that it crosses.

        These are the innermost loop around its source, and further loops outwards, up to the first
        one that is also ``around`` its destination.
        """
        at = src
        for level in (*self._nest.chain(src), ROOT):
            self._out.setdefault(level, {}).setdefault(at, []).append(e)
            self._left.setdefault(level, {})[e] = count
            if level in around:
                return
            at = -2 - level

    def levels(self) -> dict[int, LoopLevel]:
        """The passes of every level on the path."""
        levels = {level: LoopLevel() for level in self._out}
        self._begin(levels)
        for level, passes in levels.items():
            top = first_at(self._nest, self._header(level), level)
            while any(self._left[level][e] for e in self._out[level].get(top, ())):
                one = self._peel(level, top)
                if self._goes_back(level, one.edges[-1]):
                    passes.again.append(one)
                else:
                    passes.leaving.setdefault(one.edges[-1], []).append(one)
        return levels

    def _begin(self, levels: dict[int, LoopLevel]) -> None:
        """Peel the path before the first header, where it starts inside loops.

        At each level that is one pass, which continues with the last edge of the level inside it.
        """
        forced = None
        for level in (*self._nest.chain(self._graph.entry), ROOT):
            start = first_at(self._nest, self._graph.entry, level)
            if forced is None and start == first_at(self._nest, self._header(level), level):
                continue
            one = self._peel(level, start, single=True, forced=forced)
            levels[level].first = one
            forced = None if self._goes_back(level, one.edges[-1]) else one.edges[-1]

    def _peel(
        self, level: int, start: int, *, single: bool = False, forced: int | None = None
    ) -> LoopPass:
        """One pass, removed from the flow as often as its edges allow, or once if ``single``."""
        left, edges, at = self._left[level], list[int](), start
        while not edges or not self._exits(level, edges[-1]):
            choices = [e for e in self._out[level].get(at, ()) if left[e]]
            if not edges and forced is not None:
                choices = [forced]
            if not choices:
                raise SolverError("the counts are not a flow: an edge leads to where none leaves")
            edges.append(choices[0] if len(choices) == 1 else self._order(choices))
            if edges[-1] != END:
                at = first_at(self._nest, self._graph.edges[edges[-1]].dst, level)
        count = 1 if single else min(left[e] for e in edges)
        for e in edges:
            left[e] -= count
        return LoopPass(start, tuple(edges), count)

    def _header(self, level: int) -> int:
        return self._graph.entry if level == ROOT else self._graph.loops[level].header

    def _exits(self, level: int, e: int) -> bool:
        """Whether a pass ends with ``e``: at a back edge, out of the loop, or with the path."""
        if e == END or level == ROOT:
            return e == END
        loop, dst = self._graph.loops[level], self._graph.edges[e].dst
        return dst == loop.header or dst not in loop.nodes

    def _goes_back(self, level: int, e: int) -> bool:
        """Whether ``e``, the last edge of a pass, is a back edge."""
        return e != END and self._graph.edges[e].dst == self._graph.loops[level].header


def first_at(nest: LoopNest, node: int, level: int) -> int:
    """``node``, or ``-2 - loop`` for the outermost loop around it that is inside ``level``."""
    inner = None
    for loop in nest.chain(node):
        if loop == level:
            break
        inner = loop
    return node if inner is None else -2 - inner


def walk(nest: LoopNest, levels: dict[int, LoopLevel]) -> Iterator[PathStep]:
    """The steps of the path. Visits of loops nest like calls, on an explicit stack.

    Equal steps are one object: a path of millions of steps then takes eight bytes for each.
    """
    known: dict[tuple[int, int], PathStep] = {}
    stack = [visit(nest, levels[ROOT], ROOT, END)]
    while stack:
        move = next(stack[-1], None)
        if move is None:
            stack.pop()
            continue
        at, e = move
        if at < END:
            loop = -2 - at
            stack.append(visit(nest, levels[loop], loop, e))
        else:
            if move not in known:
                known[move] = PathStep(at, None if e == END else e)
            yield known[move]


def visit(nest: LoopNest, level: LoopLevel, loop: int, leave: int) -> Iterator[tuple[int, int]]:
    """The moves (place, edge taken) of one visit that leaves ``loop`` by edge ``leave``.

    A contracted loop's visit makes the moves out of it.
    """
    if level.first is not None:
        first, level.first = level.first, None
        yield from moves(nest, loop, first)
        if first.edges[-1] == leave:
            return
    repeat = 0 if loop == ROOT else nest.bounds[loop] - 1
    while repeat > 0 and level.again:
        one = level.again[-1]
        used = min(repeat, one.left)
        repeat -= used
        one.left -= used
        if not one.left:
            level.again.pop()
        for _ in range(used):
            yield from moves(nest, loop, one)
    remaining = level.leaving.get(leave)
    if not remaining:
        raise SolverError("the counts are not a flow: a loop is left more often than entered")
    one = remaining[-1]
    one.left -= 1
    if not one.left:
        remaining.pop()
    yield from moves(nest, loop, one)


def moves(nest: LoopNest, level: int, one: LoopPass) -> Iterator[tuple[int, int]]:
    """The moves of one pass."""
    at = one.start
    for e in one.edges:
        yield at, e
        if e != END:
            at = first_at(nest, nest.graph.edges[e].dst, level)
