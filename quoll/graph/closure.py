"""The nodes reachable from given nodes of a graph, whose successors are a function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

__all__ = ["closure"]

N = TypeVar("N", bound=Hashable)


def closure(starts: Iterable[N], following: Callable[[N], Iterable[N]]) -> set[N]:
    """``starts``, and all nodes reachable from them along ``following``."""
    reached: set[N] = set()
    pending = list(starts)
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending.extend(following(node))
    return reached
