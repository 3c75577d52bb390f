"""Dominators of a flow graph given as successor lists over 0..n-1.

Supergraphs have up to millions of nodes. Source: Cooper, Harvey and Kennedy, "A
Simple, Fast Dominance Algorithm" (2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Dominators", "dominators", "reverse_postorder"]

UNREACHED = -1


@dataclass(frozen=True, slots=True)
class Dominators:
    """``idom[n]`` is the immediate dominator of ``n``: itself for the root, -1 if unreached."""

    idom: tuple[int, ...]
    _enter: tuple[int, ...]  # interval numbering of the dominator tree
    _leave: tuple[int, ...]

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path from the root to ``b`` passes ``a``; both must be reached."""
        return self._enter[a] <= self._enter[b] and self._leave[b] <= self._leave[a]


def reverse_postorder(successors: Sequence[Sequence[int]], root: int) -> list[int]:
    """The nodes reached from ``root``, each before its successors except along back edges."""
    seen = bytearray(len(successors))
    seen[root] = 1
    order: list[int] = []
    stack = [(root, iter(successors[root]))]
    while stack:
        node, following = stack[-1]
        for after in following:
            if not seen[after]:
                seen[after] = 1
                stack.append((after, iter(successors[after])))
                break
        else:
            stack.pop()
            order.append(node)
    order.reverse()
    return order


def dominators(successors: Sequence[Sequence[int]], root: int) -> Dominators:
    """Immediate dominators of all nodes reachable from ``root``."""
    order = reverse_postorder(successors, root)
    number = [UNREACHED] * len(successors)
    for i, node in enumerate(order):
        number[node] = i
    before: list[list[int]] = [[] for _ in order]
    for i, node in enumerate(order):
        for after in successors[node]:
            before[number[after]].append(i)
    idom = _iterate(before)
    tree = [UNREACHED] * len(successors)
    for i, node in enumerate(order):
        tree[node] = order[idom[i]]
    enter, leave = _intervals(idom)
    return Dominators(
        tuple(tree),
        tuple(enter[number[n]] if number[n] >= 0 else UNREACHED for n in range(len(successors))),
        tuple(leave[number[n]] if number[n] >= 0 else UNREACHED for n in range(len(successors))),
    )


def _iterate(before: list[list[int]]) -> list[int]:
    """Immediate dominators by reverse-postorder number; node 0 is the root."""
    idom = [UNREACHED] * len(before)
    idom[0] = 0
    changed = True
    while changed:
        changed = False
        for node in range(1, len(before)):
            best = UNREACHED
            for other in before[node]:
                if idom[other] == UNREACHED:
                    continue
                best = other if best == UNREACHED else _meet(idom, best, other)
            if idom[node] != best:
                idom[node] = best
                changed = True
    return idom


def _meet(idom: list[int], a: int, b: int) -> int:
    """The nearest common ancestor in the current tree."""
    while a != b:
        while a > b:
            a = idom[a]
        while b > a:
            b = idom[b]
    return a


def _intervals(idom: list[int]) -> tuple[list[int], list[int]]:
    """Positions at which a walk of the tree enters and leaves each node."""
    size = [1] * len(idom)
    for node in range(len(idom) - 1, 0, -1):
        size[idom[node]] += size[node]
    enter = [0] * len(idom)
    free = [1] * len(idom)
    for node in range(1, len(idom)):
        parent = idom[node]
        enter[node] = enter[parent] + free[parent]
        free[parent] += size[node]
    return enter, [enter[node] + size[node] - 1 for node in range(len(idom))]
