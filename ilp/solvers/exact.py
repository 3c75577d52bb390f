"""The linear relaxation in exact fractions: for figures beyond doubles, and as a last resort.

It is the dual simplex method with bounds on all variables. A row ``a x <= b`` has a slack from 0 to
below b + 1 - min(a x), which no counts reach; the slack of an equation is 0. So every variable has
two bounds, and any basis is dual feasible once each variable outside it is at the bound that its
reduced cost prefers. There is no first phase, and a program is infeasible exactly if a variable in
the basis violates a bound and no other variable can repair it. After ``PATIENCE`` steps without
progress the smallest index is chosen (Bland), so that the method terminates.

Values and dual values are fractions, which ``ilp.solvers.certificate`` and the checks of rows
accept like doubles. The bases of these programs are triangular except for a few columns, so each is
factored anew, singletons first, in about the time to read it.

Source: Koberstein, "The dual simplex method, techniques for a fast and stable implementation"
(2005), sections 2.4 and 3.1; Applegate, Cook, Dash and Espinoza, "Exact solutions to linear
programming problems" (2007); Markowitz (1957) for the order of elimination.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from ilp.solvers.integer_program import IntegerProgram
from ilp.solvers.solver_result import SimplexBasis, SolverResult, SolverStatus

__all__ = ["ExactSimplex"]

Vector = dict[int, Fraction]  # non-zero entries, by index
Column = tuple[tuple[int, int], ...]  # (row, coefficient)
ZERO = Fraction(0)
PATIENCE = 50  # steps without progress before Bland's rule prevents cycling
STEPS = 20_000  # steps of one relaxation


@dataclass(frozen=True, slots=True)
class ExactSimplex:
    """The exact solver, for relaxations only: ``ilp.solvers.branch`` searches."""

    preferred: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Name and version: the version of this program."""
        return "exact simplex method"

    def solve(
        self,
        model: IntegerProgram,
        *,
        relaxed: bool,
        seconds: float | None,
        start: SimplexBasis | None = None,
    ) -> SolverResult:
        """See ``ilp.solvers.solver_result.Solver``. An integer program is left unsolved."""
        stopped = SolverResult(SolverStatus.STOPPED, None, None, None)
        if not relaxed:
            return stopped
        if any(most < 0 for most in model.upper):
            return SolverResult(SolverStatus.INFEASIBLE, None, None, None)
        deadline = None if seconds is None else time.monotonic() + seconds
        tableau = SimplexTableau(model)
        tableau.start(start)
        for _ in range(STEPS):
            tableau.compute()
            leaving = tableau.leaving()
            if leaving is None:
                return tableau.result()
            if not tableau.step(leaving):
                return SolverResult(SolverStatus.INFEASIBLE, None, None, None)
            if deadline is not None and time.monotonic() > deadline:
                break
        return stopped


@dataclass(slots=True)
class BasisFactors:
    """A basis as elimination steps: pivots in order, and subtracted rows with their factors."""

    columns: Sequence[Column]  # by position in the basis
    size: int
    _pivots: list[tuple[int, int, Vector]] = field(default_factory=list)  # (row, position, row)
    _steps: list[tuple[int, int, Fraction]] = field(default_factory=list)  # (row, by row, factor)

    def factor(self) -> bool:
        """Whether the columns are independent; then ``solve`` and ``solve_transposed`` work."""
        rows: list[Vector] = [{} for _ in range(self.size)]
        holders: list[set[int]] = [set() for _ in self.columns]  # rows of each position
        for position, column in enumerate(self.columns):
            for i, a in column:
                rows[i][position] = Fraction(a)
                holders[position].add(i)
        single = [p for p, held in enumerate(holders) if len(held) == 1]
        short = [i for i, row in enumerate(rows) if len(row) == 1]
        open_rows, open_positions = set(range(self.size)), set(range(len(self.columns)))
        while open_positions:
            chosen = self._singleton(rows, holders, single, short, open_rows, open_positions)
            if chosen is None:
                chosen = _cheapest(rows, holders, open_rows)
            if chosen is None:
                return False
            i, position = chosen
            row = rows[i]
            open_rows.discard(i)
            open_positions.discard(position)
            self._pivots.append((i, position, row))
            for other in row:
                holders[other].discard(i)
                if len(holders[other]) == 1:
                    single.append(other)
            for k in sorted(holders[position]):
                factor = rows[k][position] / row[position]
                self._steps.append((k, i, factor))
                for other, amount in row.items():
                    new = rows[k].get(other, ZERO) - factor * amount
                    if new:
                        rows[k][other] = new
                        holders[other].add(k)
                    else:
                        rows[k].pop(other, None)
                        holders[other].discard(k)
                        if len(holders[other]) == 1:
                            single.append(other)
                if len(rows[k]) == 1:
                    short.append(k)
        return True

    @staticmethod
    def _singleton(
        rows: Sequence[Vector],
        holders: Sequence[set[int]],
        single: list[int],
        short: list[int],
        open_rows: set[int],
        open_positions: set[int],
    ) -> tuple[int, int] | None:
        """A pivot that changes no other row, or only its own column."""
        while single:
            position = single.pop()
            if position in open_positions and len(holders[position]) == 1:
                return next(iter(holders[position])), position
        while short:
            i = short.pop()
            if i in open_rows and len(rows[i]) == 1:
                return i, next(iter(rows[i]))
        return None

    def solve(self, right: Vector) -> Vector:
        """x by position with ``sum(column * x) = right``."""
        known = dict(right)
        for k, i, factor in self._steps:
            if i in known:
                known[k] = known.get(k, ZERO) - factor * known[i]
        found: Vector = {}
        for i, position, row in reversed(self._pivots):
            value = known.get(i, ZERO)
            for other, a in row.items():
                if other in found:
                    value -= a * found[other]
            if value:
                found[position] = value / row[position]
        return found

    def solve_transposed(self, right: Vector) -> Vector:
        """y by row with ``column y = right`` for each position."""
        left, known = dict(right), dict[int, Fraction]()
        for i, position, row in self._pivots:
            value = left.get(position, ZERO) / row[position]
            if value:
                known[i] = value
                for other, a in row.items():
                    left[other] = left.get(other, ZERO) - value * a
        for k, i, factor in reversed(self._steps):
            if k in known:
                known[i] = known.get(i, ZERO) - factor * known[k]
        return {i: value for i, value in known.items() if value}


def _cheapest(
    rows: Sequence[Vector], holders: Sequence[set[int]], open_rows: set[int]
) -> tuple[int, int] | None:
    """The pivot with the least possible fill-in (Markowitz); None if the open rows are empty."""
    best: tuple[int, int, int] | None = None
    for i in sorted(open_rows, key=lambda i: len(rows[i])):
        if not rows[i]:
            continue
        if best is not None and best[0] <= (len(rows[i]) - 1) ** 2:
            break
        for position in rows[i]:
            fill = (len(rows[i]) - 1) * (len(holders[position]) - 1)
            if best is None or fill < best[0]:
                best = fill, i, position
    return None if best is None else (best[1], best[2])


class SimplexTableau:
    """A basis of a model, and its tableau. Variables after the model's are slacks."""

    def __init__(self, model: IntegerProgram) -> None:
        self._model, self._size = model, len(model.rows)
        count = len(model.names)
        columns: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self._upper = list(model.upper)
        for i, row in enumerate(model.rows):
            least = 0
            for j, a in row.terms:
                columns[j].append((i, a))
                least += min(a, 0) * model.upper[j]
            columns.append([(i, 1)])
            self._upper.append(0 if row.equal else max(row.rhs - least, 0) + 1)
        self._columns: list[Column] = [tuple(column) for column in columns]
        self._costs = (*model.objective, *[0] * self._size)
        self._basis = list(range(count, count + self._size))
        self._high: set[int] = set()  # variables at their upper bound, outside the basis
        self._factors = BasisFactors((), 0)
        self._values: Vector = {}  # by position in the basis
        self._duals: Vector = {}  # by row
        self._reduced: Vector = {}  # by variable outside the basis
        self._best: Fraction | None = None  # the least objective so far
        self._idle = 0  # steps since it fell

    def start(self, basis: SimplexBasis | None) -> None:
        """Begin at ``basis``, or at all slacks if ``basis`` is None or invalid."""
        slacks = list(self._basis)
        count = len(self._model.names)
        if basis is not None:
            chosen = sorted(j for j in basis.variables if j < count)
            chosen += [count + i for i in range(self._size) if i not in basis.rows]
            if len(chosen) == self._size:
                self._basis = chosen
        if not self._factored():
            self._basis = slacks
            self._factored()

    def _factored(self) -> bool:
        self._factors = BasisFactors([self._columns[j] for j in self._basis], self._size)
        return self._factors.factor()

    def compute(self) -> None:
        """Dual values, reduced costs, bounds of the other variables, and values of the basis."""
        costs = {p: Fraction(c) for p, j in enumerate(self._basis) if (c := self._costs[j])}
        self._duals = self._factors.solve_transposed(costs)
        inside = set(self._basis)
        self._reduced = {}
        left: Vector = {i: Fraction(row.rhs) for i, row in enumerate(self._model.rows) if row.rhs}
        for j, column in enumerate(self._columns):
            if j in inside:
                continue
            reduced = Fraction(self._costs[j])
            for i, a in column:
                if i in self._duals:
                    reduced -= a * self._duals[i]
            self._reduced[j] = reduced
            if reduced > 0 or (not reduced and j in self._high):
                self._high.add(j)
                for i, a in column:
                    left[i] = left.get(i, ZERO) - a * self._upper[j]
            else:
                self._high.discard(j)
        self._values = self._factors.solve(left)
        objective = Fraction(sum(self._costs[j] * self._upper[j] for j in self._high - inside))
        for position, value in self._values.items():
            objective += self._costs[self._basis[position]] * value
        self._idle += 1
        if self._best is None or objective < self._best:
            self._best, self._idle = objective, 0

    def leaving(self) -> int | None:
        """The position whose variable violates a bound most; against cycling the first one."""
        worst: tuple[Fraction, int] | None = None
        for position, j in enumerate(self._basis):
            value = self._values.get(position, ZERO)
            beyond = -value if value < 0 else value - self._upper[j]
            if beyond <= 0:
                continue
            if self._idle > PATIENCE:
                if worst is None or j < self._basis[worst[1]]:
                    worst = beyond, position
            elif worst is None or beyond > worst[0]:
                worst = beyond, position
        return None if worst is None else worst[1]

    def step(self, position: int) -> bool:
        """Exchange the variable at ``position``; False if no other one can repair its bound."""
        low = self._values.get(position, ZERO) < 0
        row = self._factors.solve_transposed({position: Fraction(1)})
        best: tuple[Fraction, int] | None = None
        for j, reduced in self._reduced.items():
            if not self._upper[j]:
                continue
            change = sum((a * row[i] for i, a in self._columns[j] if i in row), ZERO)
            if not change or (change < 0) != (low != (j in self._high)):
                continue
            ratio = abs(reduced / change)
            if best is None or (ratio, j) < best:
                best = ratio, j
        if best is None:
            return False
        leaving = self._basis[position]
        if low:
            self._high.discard(leaving)
        else:
            self._high.add(leaving)
        self._basis[position] = best[1]
        self._high.discard(best[1])
        assert self._factored(), "an exchange over a nonzero element keeps the basis regular"
        return True

    def result(self) -> SolverResult:
        """The optimum."""
        count = len(self._model.names)
        values = [Fraction(self._upper[j]) if j in self._high else ZERO for j in range(count)]
        for position, j in enumerate(self._basis):
            if j < count:
                values[j] = self._values.get(position, ZERO)
        inside = frozenset(self._basis)
        rows = frozenset(i for i in range(self._size) if count + i not in inside)
        basis = SimplexBasis(frozenset(j for j in inside if j < count), rows)
        duals = tuple(self._duals.get(i, ZERO) for i in range(self._size))
        return SolverResult(SolverStatus.OPTIMAL, tuple(values), None, duals, basis)
