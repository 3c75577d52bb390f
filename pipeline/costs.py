"""Cycles per node and edge of a supergraph, by cause: the objective of the ILP."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from quoll.assumptions import Assumption

__all__ = ["CostCause", "Costs"]


class CostCause(IntEnum):
    """The cause of cycles; its value indexes the tuples in ``Costs``."""

    ISSUE = 0
    STALL = 1  # waiting for a result or a unit
    BRANCH = 2
    FETCH_MISS = 3
    LOAD_MISS = 4
    STORE = 5
    OTHER = 6  # exception entry, drain at exit, write-backs of maintenance operations
    TLB = 7  # refills and table walks, where the platform charges them


@dataclass(frozen=True, slots=True)
class Costs:
    """``nodes[n][cause]`` and ``edges[e][cause]`` in cycles, for every node and edge index.

    A path costs ``start[cause]`` once and the sum over its nodes and edges; no other charge exists.
    ``start`` holds the cycles of an exception before its first instruction; exit nodes include the
    cycles of leaving.
    """

    nodes: tuple[tuple[int, ...], ...]
    edges: tuple[tuple[int, ...], ...]
    assumptions: tuple[Assumption, ...] = ()
    start: tuple[int, ...] = (0,) * len(CostCause)

    def node_cycles(self, node: int) -> int:
        """All cycles of one execution of ``node``."""
        return sum(self.nodes[node])

    def edge_cycles(self, edge: int) -> int:
        """All cycles of one traversal of ``edge``."""
        return sum(self.edges[edge])
