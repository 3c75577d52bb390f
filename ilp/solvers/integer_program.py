"""An integer program as a value: the input of every solver, and the reference for every check.

    maximise    constant + sum(objective[j] * x[j])
    subject to  sum(a * x[j] for (j, a) in row.terms)  <= or =  row.rhs      for every row
                0 <= x[j] <= upper[j], x[j] integer                          for every j

All figures are integers, so a result can be checked without rounding (rule 23).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quoll.facts.fact import FactSource

__all__ = ["EXACT", "IntegerProgram", "LinearRow"]

EXACT = 2**53  # every integer up to here fits into a double


@dataclass(frozen=True, slots=True)
class LinearRow:
    """``sum(a * x[j]) = rhs`` if ``equal``, else ``<= rhs``; variables are distinct."""

    name: str
    origin: str  # the equation's family, or the fact's place and text
    terms: tuple[tuple[int, int], ...]  # (variable, coefficient)
    equal: bool
    rhs: int
    fact: FactSource | None = None  # rows without a fact describe the program and cannot conflict

    def holds(self, values: Sequence[int]) -> bool:
        """Whether integer ``values`` satisfy the row."""
        total = sum(a * values[j] for j, a in self.terms)
        return total == self.rhs if self.equal else total <= self.rhs


@dataclass(frozen=True, slots=True)
class IntegerProgram:
    """An integer program; ``names``, ``upper`` and ``objective`` have one item per variable."""

    names: tuple[str, ...]
    upper: tuple[int, ...]
    objective: tuple[int, ...]
    constant: int
    rows: tuple[LinearRow, ...]

    def value(self, values: Sequence[int]) -> int:
        """The objective at integer ``values``."""
        return self.constant + sum(c * x for c, x in zip(self.objective, values, strict=True) if x)

    def violations(self, values: Sequence[int]) -> tuple[str, ...]:
        """The violations of integer ``values``: names of rows, and of variables out of range."""
        rows = [row.name for row in self.rows if not row.holds(values)]
        ranges = zip(self.names, values, self.upper, strict=True)
        return (*rows, *(name for name, x, most in ranges if not 0 <= x <= most))

    def without_facts(self, retained: frozenset[FactSource] = frozenset()) -> IntegerProgram:
        """The model without the rows of user facts, except those in ``retained``."""
        return replace(
            self, rows=tuple(row for row in self.rows if row.fact is None or row.fact in retained)
        )

    def with_rows(self, rows: Sequence[LinearRow]) -> IntegerProgram:
        """The model with more rows."""
        return replace(self, rows=(*self.rows, *rows))

    def inexact(self) -> str:
        """The figures that are too large for a double; empty if none is."""
        for name, cycles, most in zip(self.names, self.objective, self.upper, strict=True):
            if max(abs(cycles), 1) * most >= EXACT:
                return f"'{name}' may contribute {cycles} x {most} cycles, which is more than 2^53"
        for row in self.rows:
            if any(abs(a) >= EXACT for _, a in row.terms) or abs(row.rhs) >= EXACT:
                return f"row '{row.name}' ({row.origin}) has a figure above 2^53"
        return ""
