"""The order for processing a graph from its leaves, the nodes of one level at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

__all__ = ["levels"]

N = TypeVar("N", bound=Hashable)


def levels(nodes: Iterable[N], following: Callable[[N], Iterable[N]]) -> dict[N, int]:
    """The longest path from each node to a leaf, for ``nodes`` and all nodes they reach.

    Edges that close a cycle in a depth-first search are left out, so the successors of a node have
    a lower level along all other edges.
    """
    found: dict[N, int] = {}
    for start in nodes:
        if start in found:
            continue
        path = [(start, iter(following(start)))]
        open_nodes = {start: 0}
        while path:
            node, rest = path[-1]
            for after in rest:
                if after in found:
                    open_nodes[node] = max(open_nodes[node], found[after] + 1)
                elif after not in open_nodes:
                    open_nodes[after] = 0
                    path.append((after, iter(following(after))))
                    break
            else:
                path.pop()
                found[node] = open_nodes.pop(node)
                if path:
                    before = path[-1][0]
                    open_nodes[before] = max(open_nodes[before], found[node] + 1)
    return found
