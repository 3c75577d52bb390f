"""Strongly connected components.

For supergraphs, which are successor lists of up to millions of nodes; networkx serves graphs of the
size of a function. Source: Tarjan, "Depth-First Search and Linear Graph Algorithms" (1972), without
recursion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["components"]


def components(
    successors: Sequence[Sequence[int]], nodes: Iterable[int] | None = None
) -> list[list[int]]:
    """The components of the graph, or of its part on ``nodes``, each after those it leads to.

    Nodes ascend within a component.
    """
    inside = set(range(len(successors)) if nodes is None else nodes)
    found: list[list[int]] = []
    number: dict[int, int] = {}
    position: dict[int, int] = {}  # in open_
    low: dict[int, int] = {}
    open_: list[int] = []
    closed: set[int] = set()
    for root in sorted(inside):
        if root in number:
            continue
        number[root] = low[root] = len(number)
        position[root] = len(open_)
        open_.append(root)
        stack = [(root, iter(successors[root]))]
        while stack:
            node, following = stack[-1]
            for after in following:
                if after not in inside:
                    continue
                if after not in number:
                    number[after] = low[after] = len(number)
                    position[after] = len(open_)
                    open_.append(after)
                    stack.append((after, iter(successors[after])))
                    break
                if after not in closed:
                    low[node] = min(low[node], number[after])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
                if low[node] == number[node]:
                    component = open_[position[node] :]
                    del open_[position[node] :]
                    found.append(sorted(component))
                    closed.update(component)
    return found
