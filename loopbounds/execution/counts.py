"""Counts of the concrete execution of an entry."""

from __future__ import annotations

from dataclasses import dataclass

from quoll.assumptions import Assumption

__all__ = ["ExecutionCounts"]


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
