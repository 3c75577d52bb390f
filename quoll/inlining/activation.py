"""One call of a function, with all its callees, as a separate graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quoll.facts.applied import AppliedGuidance
from quoll.inlining.super_loops import super_loops
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperNode

__all__ = ["Activation", "activation"]


@dataclass(frozen=True, slots=True)
class Activation:
    """A call as a graph; ``loops`` and ``nodes`` give the indices in the whole graph."""

    graph: Supergraph
    loops: tuple[int, ...]
    nodes: tuple[int, ...]


def activation(graph: Supergraph, context: int, most: int) -> Activation | None:
    """The call of a context; None for the root.

    None too if it has more than ``most`` nodes, or is entered elsewhere than at its function.
    """
    if graph.contexts[context].parent is None:
        return None
    inside, pending, members = list[int](), [context], list[int]()
    while pending:
        inside.append(pending.pop())
        members += graph.nodes_in[inside[-1]]
        pending += graph.called_in[inside[-1]]
        if len(members) > most:
            return None
    number = {old: new for new, old in enumerate(inside)}
    starts = {
        graph.edges[e].dst
        for n in members
        for e in graph.predecessors[n]
        if graph.nodes[graph.edges[e].src].context not in number
    }
    if len(starts) != 1:
        return None
    called = (graph.contexts[c] for c in inside[1:])
    contexts = (
        replace(graph.contexts[context], parent=None, call_site=None),
        *(replace(c, parent=number[c.parent]) for c in called if c.parent is not None),
    )
    members.sort()
    nodes = tuple(replace(graph.nodes[n], context=number[graph.nodes[n].context]) for n in members)
    return _piece(graph, contexts, nodes, members, starts.pop())


def _piece(
    graph: Supergraph,
    contexts: tuple[Context, ...],
    nodes: tuple[SuperNode, ...],
    members: list[int],
    start: int,
) -> Activation:
    """The subgraph of ``members``, with their ``nodes`` and ``contexts`` in the subgraph."""
    number = {node: i for i, node in enumerate(members)}
    inner = [
        graph.edges[i]
        for node in members
        for i in graph.successors[node]
        if graph.edges[i].dst in number
    ]
    edges = tuple(SuperEdge(number[e.src], number[e.dst], e.kind) for e in inner)
    successors: list[list[int]] = [[] for _ in members]
    predecessors: list[list[int]] = [[] for _ in members]
    for index, edge in enumerate(edges):
        successors[edge.src].append(index)
        predecessors[edge.dst].append(index)
    loops = super_loops(edges, successors, predecessors, number[start])
    return Activation(
        Supergraph(
            contexts,
            nodes,
            edges,
            tuple(map(tuple, successors)),
            tuple(map(tuple, predecessors)),
            number[start],
            tuple(number[n] for n in members if n in graph.exit_nodes),
            loops,
            guidance=AppliedGuidance(replaced=graph.guidance.replaced),
        ),
        tuple(graph.loop_at[members[loop.header]] for loop in loops),
        tuple(members),
    )
