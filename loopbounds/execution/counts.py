"""Counts of the executions of an entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cache.executed.data_misses import DataMisses
from quoll.assumptions import Assumption

__all__ = ["ExecutionCounts", "ExecutionPrefix", "UnfinishedCounts"]


@dataclass(frozen=True, slots=True)
class ExecutionCounts:
    """The counts of the executions of an entry, by index of loop or edge.

    ``most``: executions of the header per entry from outside; 0 where it is not entered.
    ``totals``: the most per entry of the enclosing loop. ``edges``: most traversals of each edge of
    the graph. ``ends``: the last nodes of paths. ``only``: whether there is a single execution,
    so that the counts are reached. Else ``open`` has the loops that an unknown word may end, and
    ``always`` the loops that each entry executes ``most`` times, if the path does not end in it.
    ``misses``: the most misses of each instruction; None: the cache was not followed.
    """

    instructions: int
    most: tuple[int, ...]
    totals: tuple[int, ...]
    edges: tuple[int, ...]
    ends: frozenset[int]
    assumed: tuple[Assumption, ...]
    only: bool = True
    open: frozenset[int] = frozenset()
    always: frozenset[int] = frozenset()
    misses: DataMisses | None = None


@dataclass(frozen=True, slots=True)
class ExecutionPrefix:
    """The first ``instructions`` of an entry, which are the same in all of its executions.

    ``edges``: traversals of each edge of the graph.
    """

    instructions: int
    edges: tuple[int, ...]
    assumed: tuple[Assumption, ...]


@dataclass(frozen=True, slots=True)
class UnfinishedCounts:
    """The counts of executions that were followed together, but not to the end.

    ``most``: as for ``ExecutionCounts``, so far. ``endless``: the loops that need a bound, because
    they are executed too often or reach the same state again and again.
    """

    most: tuple[int, ...]
    endless: frozenset[int] = frozenset()

    def may_end(self, bounds: Mapping[int, int]) -> bool:
        """Whether the executions end earlier, or elsewhere, if no loop exceeds these bounds."""
        return any(self.most[i] > bound or i in self.endless for i, bound in bounds.items())
