"""Strongly connected components: sets of nodes that reach each other.

Source: Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["components"]


def components(roots: Iterable[int], successors: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """The components reachable from ``roots``, each after the components that it reaches.

    Each lists first the node where the search entered it; the search takes roots and successors in
    the given order, without recursion, because graphs are deep.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    found: list[list[int]] = []
    for root in roots:
        if root in index:
            continue
        path = [(root, iter(successors(root)))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while path:
            node, following = path[-1]
            for target in following:
                if target not in index:
                    index[target] = low[target] = len(index)
                    open_nodes.append(target)
                    is_open.add(target)
                    path.append((target, iter(successors(target))))
                    break
                if target in is_open and index[target] < low[node]:
                    low[node] = index[target]
            else:
                path.pop()
                if path and low[node] < low[path[-1][0]]:
                    low[path[-1][0]] = low[node]
                if low[node] == index[node]:
                    component = [open_nodes.pop()]
                    while component[-1] != node:
                        component.append(open_nodes.pop())
                    component.reverse()
                    is_open.difference_update(component)
                    found.append(component)
    return found
