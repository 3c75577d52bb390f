"""Subgraphs of a supergraph as supergraphs: an invocation of a context, an iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ilp.constraints.constraint import Constraint
from ilp.constraints.instance import CallStructure
from pipeline.costs import Costs
from quoll.inlining.supergraph import SuperEdge, Supergraph, SuperLoop

__all__ = ["GraphRegion", "iteration_of", "region_below"]


@dataclass(frozen=True, slots=True)
class GraphRegion:
    """``graph`` is the subgraph; ``nodes``, ``edges``, ``loops``: its indices in the whole graph.

    Contexts retain their numbers, so that constraints of functions above the region see an
    invocation that began before the path. A path through the subgraph ends where it leaves the
    region (``leaving``, edges of the whole graph) or where the whole path ends (``ending``, nodes
    of the whole graph).
    """

    graph: Supergraph
    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    loops: tuple[int, ...]
    leaving: tuple[int, ...]
    ending: tuple[int, ...]

    def with_exits(self, nodes: Iterable[int]) -> Supergraph:
        """The subgraph with only these exits, given as nodes of the whole graph."""
        number = {old: new for new, old in enumerate(self.nodes)}
        return replace(self.graph, exits=tuple(sorted({number[n] for n in nodes})))

    def costs(self, costs: Costs) -> Costs:
        """The costs of the subgraph."""
        return Costs(
            tuple(costs.nodes[n] for n in self.nodes), tuple(costs.edges[e] for e in self.edges)
        )

    def constraint(self, constraint: Constraint) -> Constraint:
        """The constraint on the nodes of the subgraph."""
        number = {old: new for new, old in enumerate(self.nodes)}
        a, b = (
            frozenset(number[n] for n in nodes if n in number)
            for nodes in (constraint.a, constraint.b)
        )
        weights = tuple((number[n], w) for n, w in constraint.weights if n in number)
        return replace(constraint, a=a, b=b, weights=weights)


def region_below(calls: CallStructure, context: int, entry: int) -> GraphRegion:
    """The subgraph of one invocation of ``context``, from its node ``entry``."""
    graph = calls.graph
    inside = [calls.below(node.context, context) for node in graph.nodes]
    loops = tuple(loop.index for loop in graph.loops if inside[loop.header])
    return region_of(graph, inside, entry, loops, frozenset())


def iteration_of(graph: Supergraph, loop: int) -> GraphRegion:
    """One pass through the body of a loop, from its header; its back edges leave the region."""
    whole = graph.loops[loop]
    inside = [False] * len(graph.nodes)
    for n in whole.nodes:
        inside[n] = True
    loops: dict[int, None] = {}
    for inner in graph.loops:  # outer loops come first
        if inner.parent == loop or inner.parent in loops:
            loops[inner.index] = None
    return region_of(graph, inside, whole.header, tuple(loops), frozenset(whole.backs))


def region_of(
    graph: Supergraph,
    inside: Sequence[bool],
    entry: int,
    loops: tuple[int, ...],
    without: frozenset[int],
) -> GraphRegion:
    """The nodes ``inside`` and the edges between them, except ``without``."""
    nodes = tuple(n for n, here in enumerate(inside) if here)
    number = {old: new for new, old in enumerate(nodes)}
    out = [i for n in nodes for i in graph.successors[n]]
    edges = tuple(sorted(i for i in out if inside[graph.edges[i].dst] and i not in without))
    leaving = tuple(sorted(i for i in out if not inside[graph.edges[i].dst] or i in without))
    ending = tuple(n for n in graph.exits if inside[n])
    exits = {graph.edges[i].src for i in leaving} | set(ending)
    renumbered = tuple(
        SuperEdge(number[e.src], number[e.dst], e.kind) for e in (graph.edges[i] for i in edges)
    )
    subgraph = Supergraph(
        contexts=graph.contexts,
        nodes=tuple(graph.nodes[n] for n in nodes),
        edges=renumbered,
        successors=adjacency(len(nodes), [e.src for e in renumbered]),
        predecessors=adjacency(len(nodes), [e.dst for e in renumbered]),
        entry=number[entry],
        exits=tuple(number[n] for n in sorted(exits)),
        loops=inner_loops(graph, loops, number, edges),
    )
    return GraphRegion(subgraph, nodes, edges, loops, leaving, ending)


def adjacency(size: int, endpoints: list[int]) -> tuple[tuple[int, ...], ...]:
    """Per node, the indices of the edges for which ``endpoints`` gives this node."""
    lists: list[list[int]] = [[] for _ in range(size)]
    for edge, node in enumerate(endpoints):
        lists[node].append(edge)
    return tuple(map(tuple, lists))


def inner_loops(
    graph: Supergraph, loops: tuple[int, ...], nodes: dict[int, int], edges: tuple[int, ...]
) -> tuple[SuperLoop, ...]:
    """The loops of the subgraph.

    A loop whose header is the entry loses its entry edges from outside.
    """
    new_loop = {old: new for new, old in enumerate(loops)}
    new_edge = {old: new for new, old in enumerate(edges)}
    renumbered = []
    for old in loops:
        loop = graph.loops[old]
        renumbered.append(
            SuperLoop(
                index=new_loop[old],
                header=nodes[loop.header],
                entries=tuple(new_edge[e] for e in loop.entries if e in new_edge),
                backs=tuple(new_edge[e] for e in loop.backs),
                nodes=frozenset(nodes[n] for n in loop.nodes),
                parent=None if loop.parent is None else new_loop.get(loop.parent),
            )
        )
    return tuple(renumbered)
