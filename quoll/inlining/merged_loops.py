"""The loops of a supergraph: those of each part, with calls that leave it as steps.

Where contexts are shared, the plain graph has cycles that no execution runs: into a shared
context from one call, back to another, and from there to the first. They are no loops. A part has
none of them, because a call that leaves it is one step from the caller to where it returns.
"""

from __future__ import annotations

from collections.abc import Sequence

from quoll.cfg.cfg import EdgeKind
from quoll.graph.loops import find_loops
from quoll.inlining.supergraph import Context, Node, SuperEdge, SuperLoop, parts_of

__all__ = ["loops_of_parts", "steps_of_parts"]


def steps_of_parts(
    contexts: tuple[Context, ...],
    nodes: Sequence[Node],
    edges: Sequence[SuperEdge],
    entry: int,
) -> dict[int, tuple[int, dict[int, list[int]]]]:
    """Per part its entry node, and the steps inside it: node -> nodes, in the order of edges.

    Parts are known by the contexts that head them; those that are never entered are left out.
    """
    part = parts_of(contexts)
    of = [part[node.context] for node in nodes]
    parts: dict[int, tuple[int, dict[int, list[int]]]] = {of[entry]: (entry, {})}
    for edge in edges:
        if edge.kind is EdgeKind.CALL and of[edge.src] != of[edge.dst]:
            parts.setdefault(of[edge.dst], (edge.dst, {}))
    for node, owner in enumerate(of):
        if owner in parts:
            parts[owner][1][node] = []
    for edge in edges:
        src = edge.src if edge.call is None else edge.call
        if of[src] == of[edge.dst] and of[src] in parts:
            following = parts[of[src]][1][src]
            if edge.call is None or edge.dst not in following:
                following.append(edge.dst)
    return dict(sorted(parts.items()))


def loops_of_parts(
    contexts: tuple[Context, ...],
    nodes: Sequence[Node],
    edges: Sequence[SuperEdge],
    predecessors: Sequence[Sequence[int]],
    entry: int,
) -> tuple[SuperLoop, ...]:
    """All loops, part by part, outer ones before those inside them."""
    loops: list[SuperLoop] = []
    for start, steps in steps_of_parts(contexts, nodes, edges, entry).values():
        members = list(steps)
        number = {node: i for i, node in enumerate(members)}
        following = [[number[dst] for dst in steps[node]] for node in members]
        first = len(loops)
        for loop in find_loops(following, number[start]):
            inside = frozenset(members[i] for i in loop.nodes)
            header = members[loop.header]
            inward = predecessors[header]
            backs = tuple(e for e in inward if _origin(edges[e]) in inside)
            loops.append(
                SuperLoop(
                    len(loops),
                    header,
                    tuple(e for e in inward if e not in backs),
                    backs,
                    inside,
                    None if loop.parent is None else first + loop.parent,
                )
            )
    return tuple(loops)


def _origin(edge: SuperEdge) -> int:
    return edge.src if edge.call is None else edge.call
