"""Counts of the concrete execution of an entry."""

from __future__ import annotations

from dataclasses import dataclass

from quoll.assumptions import Assumption

__all__ = ["ExecutionCounts"]


@dataclass(frozen=True, slots=True)
class ExecutionCounts:
    """The one execution of an entry that has no other: counts of each loop, by index.

    ``most``: executions of the header per entry from outside; 0 where it is not entered.
    ``totals``: the most per entry of the loop around it. ``edges``: traversals of each edge of the
    graph. ``last``: the node that the path ends after.
    """

    instructions: int
    most: tuple[int, ...]
    totals: tuple[int, ...]
    edges: tuple[int, ...]
    last: int
    assumed: tuple[Assumption, ...]
