"""From counts to one execution order where calls share contexts.

The counts inside a part of the graph are those of all invocations of it together. They are taken
apart part by part: with calls of other parts as single steps, the counts of a part are a flow from
its entry to its returns, and ``ilp.paths.path`` makes of it a walk that comes back to the entry
once per invocation. Any invocation can stand for any other, since all begin and all end alike: so a
call takes the next one that is left. The path ends within one call of every part on the way down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ilp.constraints.nest import LoopNest
from ilp.paths.path import MOST_STEPS, Order, build_path
from ilp.paths.solution import PathStep
from quoll.cfg.cfg import EdgeKind
from quoll.errors import SolverError
from quoll.graph.loops import find_loops
from quoll.inlining.supergraph import Node, SuperEdge, Supergraph, SuperLoop

__all__ = ["build_path_of_parts"]


@dataclass(frozen=True, slots=True)
class _Move:
    """What one edge of a part's graph stands for: edges of the whole.

    ``call`` enters another part; with ``back`` it returns along one of these, else the path ends
    there. Otherwise ``plain`` is an edge of the part, or a return to a caller (None, None).
    """

    plain: int | None = None
    call: int | None = None
    back: tuple[int, ...] = ()


@dataclass(slots=True)
class _Part:
    """The part's own graph: its nodes, then one that stands for all callers."""

    nodes: list[int]
    edges: list[SuperEdge] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    moves: list[_Move] = field(default_factory=list)
    last: int | None = None  # where the path ends, if it does so in this part or below

    def add(self, src: int, dst: int, count: int, move: _Move) -> None:
        """An edge that is traversed ``count`` times."""
        if count:
            self.edges.append(SuperEdge(src, dst, EdgeKind.TAKEN))
            self.counts.append(count)
            self.moves.append(move)


def build_path_of_parts(
    nest: LoopNest, edges: Sequence[int], last: int, order: Order
) -> tuple[PathStep, ...]:
    """As ``ilp.paths.path.build_path``, for graphs with shared contexts."""
    if sum(edges) >= MOST_STEPS:
        raise SolverError(
            f"the worst path has {sum(edges) + 1} steps, too many to write out",
            hint="a loop bound is probably far too large",
        )
    return tuple(_Unfolding(nest, edges, last, order).steps())


class _Unfolding:
    def __init__(self, nest: LoopNest, edges: Sequence[int], last: int, order: Order) -> None:
        self._nest, self._graph, self._counts, self._order = nest, nest.graph, edges, order
        self._last = last
        self._parts = self._split()
        self._ending: list[int] = []  # calls that are open when the path ends
        self._find_ending()
        self._runs = {
            part: self._invocations(part, of) for part, of in self._parts.items() if of.edges
        }

    def _split(self) -> dict[int, _Part]:
        graph, counts = self._graph, self._counts
        parts = {part: _Part([]) for part in graph.part}
        number: dict[int, int] = {}
        for node in range(len(graph.nodes)):
            members = parts[graph.part_of(node)].nodes
            number[node] = len(members)
            members.append(node)
        self._number = number
        backs: dict[tuple[int, int, int], list[int]] = {}
        for e, edge in enumerate(graph.edges):
            src, dst = graph.part_of(edge.src), graph.part_of(edge.dst)
            if src == dst:
                parts[src].add(number[edge.src], number[edge.dst], counts[e], _Move(plain=e))
            elif edge.call is None:
                callers = len(parts[dst].nodes)
                parts[dst].add(callers, number[edge.dst], counts[e], _Move())
            else:
                callers = len(parts[src].nodes)
                parts[src].add(number[edge.src], callers, counts[e], _Move())
                backs.setdefault((edge.call, edge.dst, src), []).append(e)
        self._calls = {
            (edge.src, graph.part_of(edge.dst)): e
            for e, edge in enumerate(graph.edges)
            if graph.origin(e) is None
        }
        for (call, after, part), back in backs.items():
            count = sum(counts[e] for e in back)
            move = _Move(call=self._calls[call, part], back=tuple(back))
            parts[graph.part_of(call)].add(number[call], number[after], count, move)
        return parts

    def _find_ending(self) -> None:
        """From the part in which the path ends up to the root, the call that does not return."""
        graph, counts = self._graph, self._counts
        returned = dict.fromkeys(self._calls.values(), 0)
        for of in self._parts.values():
            for count, move in zip(of.counts, of.moves, strict=True):
                if move.call is not None:
                    returned[move.call] += count
        open_ = {part: e for (_, part), e in self._calls.items() if counts[e] > returned[e]}
        part, node = graph.part_of(self._last), self._last
        while True:
            self._parts[part].last = self._number[node]
            if part == graph.part_of(graph.entry):
                return
            if part not in open_:
                raise SolverError("the counts are not a flow: the path ends in a call that returns")
            self._ending.append(open_[part])
            node = graph.edges[open_[part]].src
            part = graph.part_of(node)

    def _invocations(self, part: int, of: _Part) -> Iterator[list[tuple[int, _Move | None]]]:
        """The invocations of a part as moves; the one in which the path ends comes last.

        None is the end of the path.
        """
        root = part == self._graph.part_of(self._graph.entry)
        callers = len(of.nodes)
        entry = self._number[self._graph.entry] if root else callers
        last = callers if of.last is None else of.last
        graph = self._graph_of(of, entry, last)
        bounds = [self._bound(of, loop) for loop in graph.loops]
        run: list[tuple[int, _Move | None]] = []
        for step in build_path(LoopNest.build(graph, bounds), of.counts, last, self._order):
            if step.node == callers:
                if run:
                    yield run
                run = []
            else:
                move = None if step.edge is None else of.moves[step.edge]
                run.append((of.nodes[step.node], move))
        if run:
            yield run

    def _graph_of(self, of: _Part, entry: int, last: int) -> Supergraph:
        size = len(of.nodes) + 1
        successors: list[list[int]] = [[] for _ in range(size)]
        predecessors: list[list[int]] = [[] for _ in range(size)]
        for e, edge in enumerate(of.edges):
            successors[edge.src].append(e)
            predecessors[edge.dst].append(e)
        following = [[of.edges[e].dst for e in out] for out in successors]
        loops = []
        for i, loop in enumerate(find_loops(following, entry)):
            inward = predecessors[loop.header]
            backs = tuple(e for e in inward if of.edges[e].src in loop.nodes)
            entries = tuple(e for e in inward if of.edges[e].src not in loop.nodes)
            loops.append(SuperLoop(i, loop.header, entries, backs, loop.nodes, loop.parent))
        blocks = [self._graph.nodes[n].block for n in of.nodes]
        return Supergraph(
            self._graph.contexts[:1],
            tuple(Node(0, block) for block in (*blocks, blocks[0])),
            tuple(of.edges),
            tuple(map(tuple, successors)),
            tuple(map(tuple, predecessors)),
            entry,
            (last,),
            tuple(loops),
        )

    def _bound(self, of: _Part, loop: SuperLoop) -> int:
        """That of the loop with the same header; all invocations of a part are a loop too."""
        if loop.header == len(of.nodes):
            return sum(of.counts[e] for e in loop.backs) + 1
        header = of.nodes[loop.header]
        return next(
            self._nest.bounds[known.index] for known in self._graph.loops if known.header == header
        )

    def steps(self) -> Iterator[PathStep]:
        """The path. Calls nest on an explicit stack."""
        graph = self._graph
        root = graph.part_of(graph.entry)
        if not self._parts[root].edges:
            self._runs[root] = iter([[(graph.entry, None)]])
        nothing: tuple[int, ...] = ()
        stack = [(self._next(root), nothing)]
        while stack:
            moves, back = stack[-1]
            node, move = next(moves, (None, None))
            if node is None:
                stack.pop()
            elif move is None and not self._ending:
                yield PathStep(node, None)
                return
            elif move is None:
                call = self._ending.pop()
                yield PathStep(node, call)
                stack.append((self._last_of(graph.part_of(graph.edges[call].dst)), nothing))
            elif move.plain is not None:
                yield PathStep(node, move.plain)
            elif move.call is not None:
                yield PathStep(node, move.call)
                part = graph.part_of(graph.edges[move.call].dst)
                stack.append((self._next(part), move.back))
            else:
                yield PathStep(node, self._way_back(node, back))
                stack.pop()

    def _next(self, part: int) -> Iterator[tuple[int, _Move | None]]:
        run = next(self._runs.get(part, iter(())), None)
        if run is None:
            raise SolverError("the counts are not a flow: a shared context is entered too often")
        return iter(run)

    def _last_of(self, part: int) -> Iterator[tuple[int, _Move | None]]:
        """The invocation in which the path ends."""
        found: list[tuple[int, _Move | None]] | None = None
        for run in self._runs.get(part, ()):
            found = run
        if found is None:
            raise SolverError("the counts are not a flow: the path ends in no invocation")
        return iter(found)

    def _way_back(self, node: int, back: tuple[int, ...]) -> int:
        for e in back:
            if self._graph.edges[e].src == node:
                return e
        raise SolverError("the counts are not a flow: an invocation does not return to its call")
