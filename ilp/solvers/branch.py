"""Branch and bound in which every bound is certified in exact integers.

A solver's own search may be wrong: CBC 2.10.3 was observed to "preprocess" a program of 16
variables into counts that violate a row. So this module searches itself, over linear relaxations
only. Each subproblem's bound is the certificate of its dual values, and a subproblem is dropped as
infeasible only if that is certified, too: by a bound below 0 of the elastic program

    maximise -sum(s + t)  subject to  rows with slack:  A x - s + t = b,  A x - s <= b

whose maximum is 0 exactly if the rows can be satisfied. The solver proposes; exact arithmetic
certifies every result.

Source: Land and Doig (1960), best bound first; Chinneck, "Feasibility and infeasibility in
optimization" (2008) for elastic programs.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, isfinite

from ilp.solvers.certificate import certified_bound
from ilp.solvers.integer_program import IntegerProgram, LinearRow
from ilp.solvers.solver_result import Figure, SimplexBasis, Solver, SolverResult, SolverStatus

__all__ = [
    "INTEGRAL",
    "SearchResult",
    "at_stake",
    "branch_and_bound",
    "exact_values",
    "proved_empty",
]

INTEGRAL = 1e-5  # a count this near to an integer is rounded, then checked exactly


@dataclass(frozen=True, slots=True)
class SearchResult:
    """``bound`` is proved; ``values`` satisfy every row exactly; None: none were found."""

    bound: int | None  # None: no values satisfy the rows, proved
    values: tuple[int, ...] | None
    subproblems: int


@dataclass(frozen=True, slots=True)
class OpenSubproblem:
    """A subproblem with fractional counts; the largest bound sorts first."""

    bound: int
    number: int
    model: IntegerProgram
    counts: tuple[Figure, ...]
    basis: SimplexBasis | None

    def __lt__(self, other: OpenSubproblem) -> bool:
        return (-self.bound, self.number) < (-other.bound, other.number)


def branch_and_bound(
    model: IntegerProgram, root: SolverResult, solver: Solver, most: int, deadline: float | None
) -> SearchResult | None:
    """The result of the search from the relaxation ``root``; None if the root has no certificate.

    The search stops after ``most`` subproblems or at the deadline (of ``time.monotonic``).
    """
    tree = SearchTree(model, solver)
    first = tree.certified(model, root, None)
    if first is None:
        return None
    tree.add(model, root, first)
    while tree.undecided() and tree.solved < most:
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            break
        tree.branch(None if deadline is None else deadline - now)
    return SearchResult(tree.bound(), tree.best, tree.solved)


class SearchTree:
    """The open subproblems, and the largest bound of the undecided ones."""

    def __init__(self, model: IntegerProgram, solver: Solver) -> None:
        self._model, self._solver = model, solver
        self._open: list[OpenSubproblem] = []
        self._closed: int | None = None  # largest bound of an undecided leaf
        self.best: tuple[int, ...] | None = None
        self.solved = 1

    def reached(self) -> int | None:
        """The objective of the best counts."""
        return None if self.best is None else self._model.value(self.best)

    def bound(self) -> int | None:
        """An upper bound of all counts; None if every subproblem is empty."""
        bounds = (self.reached(), self._closed, self._open[0].bound if self._open else None)
        return max((b for b in bounds if b is not None), default=None)

    def undecided(self) -> bool:
        """Whether branching can still lower the bound."""
        if not self._open:
            return False
        rest = [b for b in (self.reached(), self._closed) if b is not None]
        return self._open[0].bound > max(rest, default=self._open[0].bound - 1)

    def certified(
        self, model: IntegerProgram, result: SolverResult, parent: int | None
    ) -> int | None:
        """The certificate of a relaxation, or its parent's if that is smaller."""
        own = None if result.duals is None else certified_bound(model, result.duals)
        return min((b for b in (own, parent) if b is not None), default=None)

    def add(self, model: IntegerProgram, result: SolverResult, bound: int) -> None:
        """Add a solved relaxation with its certified bound."""
        values = exact_values(model, result)
        if values is not None:
            self.best = max(values, self.best or values, key=self._model.value)
            if self._model.value(values) == bound:
                return
        if result.values is None or not fractional(result.values):
            self._closed = bound if self._closed is None else max(self._closed, bound)
            return
        one = OpenSubproblem(bound, self.solved, model, result.values, result.basis)
        heapq.heappush(self._open, one)

    def branch(self, seconds: float | None) -> None:
        """Split the subproblem with the largest bound."""
        parent = heapq.heappop(self._open)
        j = at_stake(parent.counts, self._model.objective)
        assert j is not None, "only fractional subproblems are open"
        low = floor(parent.counts[j])
        for child in (at_most(parent.model, j, low), at_least(parent.model, j, low + 1)):
            result = self._solver.solve(child, relaxed=True, seconds=seconds, start=parent.basis)
            self.solved += 1
            if result.status is SolverStatus.INFEASIBLE and proved_empty(
                child, self._solver, seconds, parent.basis
            ):
                continue
            bound = self.certified(child, result, parent.bound)
            assert bound is not None, "a parent is certified"
            self.add(child, result, bound)


def proved_empty(
    model: IntegerProgram, solver: Solver, seconds: float | None, start: SimplexBasis | None = None
) -> bool:
    """Whether a certificate proves that no counts satisfy the rows."""
    if any(most < 0 for most in model.upper):
        return True
    elastic = elastic_program(model)
    duals = solver.solve(elastic, relaxed=True, seconds=seconds, start=start).duals
    bound = None if duals is None else certified_bound(elastic, duals)
    return bound is not None and bound < 0


def fractional(values: Sequence[Figure]) -> list[int]:
    """The variables with values that are no integers."""
    return [j for j, x in enumerate(values) if not integral(x)]


def integral(x: Figure) -> bool:
    """Whether a value is an integer; for a double, whether it is near to one."""
    if isinstance(x, Fraction):
        return x.denominator == 1
    return abs(x - round(x)) <= INTEGRAL


def at_stake(values: Sequence[Figure], objective: Sequence[int]) -> int | None:
    """The fractional variable whose distance from an integer costs most; the first one if equal.

    An edge of an expensive choice decides more than a free edge that is farther from an integer.
    """

    def cycles(j: int) -> Fraction:
        fraction = Fraction(values[j])
        return abs(fraction - round(fraction)) * (1 + abs(objective[j]))

    return max(fractional(values), key=cycles, default=None)


def exact_values(model: IntegerProgram, result: SolverResult) -> tuple[int, ...] | None:
    """The values as integers if they are integral and satisfy every row exactly."""
    if result.values is None or not all(
        isinstance(x, Fraction) or isfinite(x) for x in result.values
    ):
        return None
    if fractional(result.values):
        return None
    values = tuple(map(round, result.values))
    return None if model.violations(values) else values


def at_most(model: IntegerProgram, j: int, most: int) -> IntegerProgram:
    """The subproblem in which variable ``j`` is at most ``most``; its limit never grows."""
    limit = min(most, model.upper[j])  # a wrong solver's count may exceed it
    return replace(model, upper=(*model.upper[:j], limit, *model.upper[j + 1 :]))


def at_least(model: IntegerProgram, j: int, least: int) -> IntegerProgram:
    """The subproblem in which variable ``j`` is at least ``least``."""
    name = f"branch{len(model.rows)}.{model.names[j]}"
    return model.with_rows([LinearRow(name, "branch", ((j, -1),), equal=False, rhs=-least)])


def elastic_program(model: IntegerProgram) -> IntegerProgram:
    """The program that minimises the total violation of the rows."""
    rows: list[LinearRow] = []
    upper: list[int] = []
    first = len(model.names)
    for row in model.rows:
        reach = abs(row.rhs) + sum(abs(a) * model.upper[j] for j, a in row.terms)
        slack = [(first + len(upper), -1)]
        upper.append(reach)
        if row.equal:
            slack.append((first + len(upper), 1))
            upper.append(reach)
        rows.append(replace(row, terms=(*row.terms, *slack)))
    names = (*model.names, *(f"slack{i}" for i in range(len(upper))))
    objective = (*[0] * first, *[-1] * len(upper))
    return IntegerProgram(names, (*model.upper, *upper), tuple(objective), 0, tuple(rows))
