"""Counts of the concrete execution of an entry."""

from __future__ import annotations

from dataclasses import dataclass

from quoll.assumptions import Assumption

__all__ = ["ExecutionCounts", "ExecutionPrefix"]


@dataclass(frozen=True, slots=True)
class ExecutionCounts:
    """The counts of the concrete execution of an entry, by index of loop or edge.

    ``most``: executions of the header per entry from outside; 0 where it is not entered.
    ``totals``: the most per entry of the enclosing loop. ``edges``: traversals of each edge of the
    graph. ``last``: the last node of the path.
    """

    instructions: int
    most: tuple[int, ...]
    totals: tuple[int, ...]
    edges: tuple[int, ...]
    last: int
    assumed: tuple[Assumption, ...]


@dataclass(frozen=True, slots=True)
class ExecutionPrefix:
    """The first ``instructions`` of an entry, which are the same in all of its executions.

    ``edges``: traversals of each edge of the graph.
    """

    instructions: int
    edges: tuple[int, ...]
    assumed: tuple[Assumption, ...]
