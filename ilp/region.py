"""The part of a supergraph below one context, as a supergraph: all that one invocation may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ilp.constraint import Constraint
from ilp.instance import Calls
from pipeline.costs import Costs
from quoll.supergraph import SuperEdge, Supergraph, SuperLoop

__all__ = ["Region", "region_below"]


@dataclass(frozen=True, slots=True)
class Region:
    """``graph`` is the part; ``nodes``, ``edges``, ``loops``: the indices it had in the whole.

    Contexts keep their numbers, so constraints of functions above the region see an invocation
    that began before the path does. A path through the part ends where it leaves the region
    (``leaving``, edges of the whole) or where the whole path ends (``ending``, nodes of the whole).
    """

    graph: Supergraph
    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    loops: tuple[int, ...]
    leaving: tuple[int, ...]
    ending: tuple[int, ...]

    def with_exits(self, nodes: Iterable[int]) -> Supergraph:
        """The part with only these exits, given as nodes of the whole."""
        number = {old: new for new, old in enumerate(self.nodes)}
        return replace(self.graph, exits=tuple(sorted({number[n] for n in nodes})))

    def costs(self, costs: Costs) -> Costs:
        """The costs of the part."""
        return Costs(
            tuple(costs.nodes[n] for n in self.nodes), tuple(costs.edges[e] for e in self.edges)
        )

    def constraint(self, constraint: Constraint) -> Constraint:
        """The constraint on the nodes of the part."""
        number = {old: new for new, old in enumerate(self.nodes)}
        a, b = (
            frozenset(number[n] for n in nodes if n in number)
            for nodes in (constraint.a, constraint.b)
        )
        return Constraint(constraint.fact, a, b, constraint.function, constraint.caller)


def region_below(calls: Calls, context: int, entry: int) -> Region:
    """The part of the graph in ``context`` and below it, entered at node ``entry``."""
    graph = calls.graph
    inside = [calls.below(node.context, context) for node in graph.nodes]
    nodes = tuple(n for n, here in enumerate(inside) if here)
    number = {old: new for new, old in enumerate(nodes)}
    edges = tuple(i for i, e in enumerate(graph.edges) if inside[e.src] and inside[e.dst])
    leaving = tuple(i for i, e in enumerate(graph.edges) if inside[e.src] and not inside[e.dst])
    ending = tuple(n for n in graph.exits if inside[n])
    exits = {graph.edges[i].src for i in leaving} | set(ending)
    loops = tuple(loop.index for loop in graph.loops if inside[loop.header])
    part = [graph.edges[i] for i in edges]
    moved = tuple(SuperEdge(number[e.src], number[e.dst], e.kind) for e in part)
    return Region(
        Supergraph(
            contexts=graph.contexts,
            nodes=tuple(graph.nodes[n] for n in nodes),
            edges=moved,
            successors=adjacency(len(nodes), [e.src for e in moved]),
            predecessors=adjacency(len(nodes), [e.dst for e in moved]),
            entry=number[entry],
            exits=tuple(number[n] for n in sorted(exits)),
            loops=inner_loops(graph, loops, number, edges),
        ),
        nodes,
        edges,
        loops,
        leaving,
        ending,
    )


def adjacency(size: int, ends: list[int]) -> tuple[tuple[int, ...], ...]:
    """Per node, the indices of the edges whose end in ``ends`` it is."""
    lists: list[list[int]] = [[] for _ in range(size)]
    for edge, node in enumerate(ends):
        lists[node].append(edge)
    return tuple(map(tuple, lists))


def inner_loops(
    graph: Supergraph, loops: tuple[int, ...], nodes: dict[int, int], edges: tuple[int, ...]
) -> tuple[SuperLoop, ...]:
    """The loops of the part. One whose header is the entry loses the entry edges from outside."""
    new_loop = {old: new for new, old in enumerate(loops)}
    new_edge = {old: new for new, old in enumerate(edges)}
    moved = []
    for old in loops:
        loop = graph.loops[old]
        moved.append(
            SuperLoop(
                index=new_loop[old],
                header=nodes[loop.header],
                entries=tuple(new_edge[e] for e in loop.entries if e in new_edge),
                backs=tuple(new_edge[e] for e in loop.backs),
                nodes=frozenset(nodes[n] for n in loop.nodes),
                parent=None if loop.parent is None else new_loop.get(loop.parent),
            )
        )
    return tuple(moved)
