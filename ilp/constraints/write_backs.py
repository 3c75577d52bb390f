"""The charged write-backs that find no dirty line, as a variable of the integer program.

The costs of nodes charge a write-back for every miss of a load, and for every execution of an
operation that cleans lines. With the pool of dirty lines (``pipeline.write_backs``), the path costs
``cycles`` less for each of

    r = max(0, sum((charged_n - dirtied_n) * x_n) - every * sum(x_e : e restarts) - start)

write-backs. The objective has -cycles * r, and the row

    sum((charged_n - dirtied_n) * x_n) - every * sum(x_e : e restarts) - r <= start

forces r up, so that a maximum has it at this value. At a price p between 0 and ``cycles`` as the
row's dual value, the path costs p less for each charged write-back, and p more for each dirty line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilp.constraints.flowfacts import FlowCounts, LinearSum
from ilp.constraints.nest import LoopNest
from ilp.solvers.integer_program import LinearRow
from pipeline.costs import WriteBackPool

__all__ = ["ExcessWriteBacks"]


@dataclass(frozen=True, slots=True)
class ExcessWriteBacks:
    """The variable r, its row, its price in ``cycles``, and the most that it may be."""

    variable: int
    row: LinearRow
    cycles: int
    most: int

    @staticmethod
    def of(nest: LoopNest, pool: WriteBackPool | None, variable: int) -> ExcessWriteBacks | None:
        """The variable for the paths of a graph; None if it is 0 on every path."""
        if pool is None:
            return None
        graph = nest.graph
        most = sum(pool.charged(node) * nest.most_node(node) for node in pool.charging)
        if most <= pool.start:
            return None
        counts = FlowCounts(graph)
        changing = sorted(pool.charging | pool.dirtied.keys())
        balance = LinearSum((), 0).plus(
            *(counts.executions([n]).times(pool.balance(n)) for n in changing),
            LinearSum(tuple((e, -pool.every) for e in sorted(pool.restarts)), -pool.start),
        )
        terms = (*balance.terms, (variable, -1))
        row = LinearRow(
            "write-backs",
            "write-backs need dirty lines",
            terms,
            equal=False,
            rhs=-balance.constant,
        )
        return ExcessWriteBacks(variable, row, pool.cycles, most)

    def needed(self, values: Sequence[int]) -> int:
        """The least r for counts, which may be negative: so many dirty lines are left."""
        return sum(a * values[j] for j, a in self.row.terms if j != self.variable) - self.row.rhs

    def prices(self, edges: int) -> list[int]:
        """The price of each edge at the full price of the row."""
        found = [0] * edges
        for j, a in self.row.terms:
            if j < edges:
                found[j] = a * self.cycles
        return found
