"""Natural loops of a reducible flow graph and how they nest.

A back edge leads to a node that dominates its source; the loop of a header is everything that
reaches its back edges without passing it (Aho, Sethi, Ullman, section 10.4). Loops of one header
are one loop. A retreating edge that is no back edge makes the graph irreducible:
``quoll.graph.node_splitting`` then splits nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quoll.graph.dominators import dominators, reverse_postorder

__all__ = ["NaturalLoop", "find_loops", "retreating_edges"]


@dataclass(frozen=True, slots=True)
class NaturalLoop:
    """``tails`` are the sources of the back edges; ``parent`` indexes the enclosing loop."""

    header: int
    tails: tuple[int, ...]
    nodes: frozenset[int]
    parent: int | None


def find_loops(successors: Sequence[Sequence[int]], root: int) -> tuple[NaturalLoop, ...]:
    """The loops of the graph reached from ``root``, outer ones before those inside them.

    Retreating edges into nodes that do not dominate their source are not loops here; see
    ``retreating_edges``.
    """
    order = reverse_postorder(successors, root)
    number = {node: i for i, node in enumerate(order)}
    backwards = _backwards(successors, number)
    if not backwards:
        return ()
    tree = dominators(successors, root)
    predecessors: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for after in successors[node]:
            predecessors[after].append(node)
    tails: dict[int, list[int]] = {}
    for node, after in backwards:
        if tree.dominates(after, node):
            tails.setdefault(after, []).append(node)
    bodies = {header: _body(predecessors, header, sources) for header, sources in tails.items()}
    headers = sorted(bodies, key=lambda header: number[header])
    return _nest(headers, bodies, tails)


def _body(predecessors: dict[int, list[int]], header: int, tails: list[int]) -> set[int]:
    body = {header}
    pending = list(tails)
    while pending:
        node = pending.pop()
        if node not in body:
            body.add(node)
            pending.extend(predecessors[node])
    return body


def _nest(
    headers: list[int], bodies: dict[int, set[int]], tails: dict[int, list[int]]
) -> tuple[NaturalLoop, ...]:
    """The nested loops; a header comes after enclosing headers, so its last owner is innermost."""
    owner: dict[int, int] = {}
    loops = []
    for index, header in enumerate(headers):
        body = bodies[header]
        loops.append(
            NaturalLoop(
                header, tuple(sorted(set(tails[header]))), frozenset(body), owner.get(header)
            )
        )
        owner.update(dict.fromkeys(body, index))
    return tuple(loops)


def retreating_edges(successors: Sequence[Sequence[int]], root: int) -> list[tuple[int, int]]:
    """Edges that lead back in some depth-first order, to a node not dominating their source.

    There are none exactly when the graph reached from ``root`` is reducible (Hecht and Ullman).
    """
    order = reverse_postorder(successors, root)
    backwards = _backwards(successors, {node: i for i, node in enumerate(order)})
    if not backwards:
        return []
    tree = dominators(successors, root)
    return [(node, after) for node, after in backwards if not tree.dominates(after, node)]


def _backwards(
    successors: Sequence[Sequence[int]], number: dict[int, int]
) -> list[tuple[int, int]]:
    """Edges that lead back in reverse postorder; none without a cycle."""
    return [
        (node, after)
        for node, at in number.items()
        for after in successors[node]
        if number[after] <= at
    ]
