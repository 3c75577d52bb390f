"""An integer program as a PuLP problem: for users, for files, and for any solver PuLP finds.

``linear_problem`` builds it. PuLP's writers make the text of ``to_lp`` and ``to_mps``, with figures
of twelve digits. ``PulpSolver`` runs the solvers of ``pulp.listSolvers``; their results count only
after ``ilp.solvers.solve`` has certified them in exact integers. CBC and HiGHS have direct
interfaces (``ilp.solvers.cbc``, ``ilp.solvers.highs``), which take a third of the time (docs/ilp.md
has the measurement).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import ClassVar

import pulp

from ilp.solvers.certificate import certified_bound
from ilp.solvers.integer_program import IntegerProgram, LinearRow
from ilp.solvers.solver_result import DIRECT, GRACE, SimplexBasis, SolverResult, SolverStatus
from quoll.errors import SolverError, UsageError
from quoll.processes.children import Died, TimedOut, apart

__all__ = ["PulpSolver", "linear_problem", "to_lp", "to_mps"]

LONGEST = 1 << 16  # characters of a name
Duals = tuple[float, ...]


def linear_problem(model: IntegerProgram, *, relaxed: bool = False) -> pulp.LpProblem:
    """The program as a PuLP problem; ``relaxed``: without integer variables.

    Variables and constraints have the model's names; unused variables are left out. The constant
    becomes the variable ``one``, because PuLP's writers omit constants; a row ``0 <= b`` becomes
    ``one <= b + 1``.
    """
    problem = pulp.LpProblem("ipet", pulp.LpMaximize)
    category = pulp.LpContinuous if relaxed else pulp.LpInteger
    columns = [
        problem.add_variable(name, 0, most, category)
        for name, most in zip(model.names, model.upper, strict=True)
    ]
    one = problem.add_variable("one", 0, 1, category)
    gains = [(x, c) for x, c in zip(columns, model.objective, strict=True) if c]
    problem.setObjective(pulp.LpAffineExpression([*gains, (one, model.constant)]))
    for row in (*model.rows, LinearRow("one", "the constant", (), True, 0)):
        terms = [(columns[j], a) for j, a in row.terms] or [(one, 1)]
        sense = pulp.LpConstraintEQ if row.equal else pulp.LpConstraintLE
        rhs = row.rhs if row.terms else row.rhs + 1
        expression = pulp.LpAffineExpression(terms)
        problem.addConstraint(pulp.LpConstraint(expression, sense, row.name, rhs))
    return problem


def to_lp(model: IntegerProgram) -> str:
    """CPLEX LP format; comments in front name the origin of each row."""
    text = _written(model, lambda problem, path: problem.writeLP(path, max_length=LONGEST))
    return "\n".join([*(f"\\ {row.name}: {row.origin}" for row in model.rows), text])


def to_mps(model: IntegerProgram) -> str:
    """Free MPS format, to be maximised."""
    return _written(model, lambda problem, path: problem.writeMPS(path, with_objsense=True))


def _written(model: IntegerProgram, write: Callable[[pulp.LpProblem, str], object]) -> str:
    with tempfile.TemporaryDirectory(prefix="wcet-") as folder:
        path = Path(folder) / "model"
        write(linear_problem(model), str(path))
        return path.read_text()


@dataclass(frozen=True)
class PulpSolver:
    """A solver by PuLP's name for it, such as ``SCIP_CMD`` or ``GUROBI``.

    Raises UsageError for a name unknown to PuLP, SolverError if the solver is not installed.
    """

    wanted: str
    preferred: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.wanted in _found():
            return
        hint = f"solvers found here: {', '.join((*DIRECT, *_found()))}"
        if self.wanted in pulp.listSolvers():
            raise SolverError(f"the solver {self.wanted} is not installed", hint=hint)
        raise UsageError(f"there is no solver '{self.wanted}'", hint=hint)

    @property
    def name(self) -> str:
        """PuLP's name of the solver, and PuLP's version."""
        return f"{self.wanted} by PuLP {pulp.__version__}"

    def solve(
        self,
        model: IntegerProgram,
        *,
        relaxed: bool,
        seconds: float | None,
        start: SimplexBasis | None = None,
    ) -> SolverResult:
        """As ``Solver.solve``; PuLP gives no dual bound of an integer program."""
        limit = None if seconds is None else seconds + GRACE
        work = partial(solved, self.wanted, model, relaxed=relaxed, seconds=seconds)
        try:
            return apart(work, limit)
        except TimedOut:
            return SolverResult(SolverStatus.STOPPED, None, None, None)
        except (Died, OSError, ValueError, pulp.PulpError) as fault:
            hint = "use --solver highs"
            raise SolverError(f"{self.name} failed: {fault}", hint=hint) from fault


@cache
def _found() -> tuple[str, ...]:
    return tuple(pulp.listSolvers(onlyAvailable=True))


def solved(
    wanted: str, model: IntegerProgram, *, relaxed: bool, seconds: float | None
) -> SolverResult:
    """The result of the solver."""
    problem = linear_problem(model, relaxed=relaxed)
    problem.solve(pulp.getSolver(wanted, mip=not relaxed, msg=False, timeLimit=seconds))
    status = pulp.LpStatus[problem.status]
    if status == "Infeasible":
        return SolverResult(SolverStatus.INFEASIBLE, None, None, None)
    if status != "Optimal":
        return SolverResult(SolverStatus.STOPPED, None, None, None)
    columns = {x.name: x for x in problem.variables()}
    counts = [columns[name].varValue if name in columns else 0.0 for name in model.names]
    values = None if None in counts else tuple(map(float, counts))
    duals = multipliers(model, problem) if relaxed else None
    return SolverResult(SolverStatus.OPTIMAL, values, None, duals)


def multipliers(model: IntegerProgram, problem: pulp.LpProblem) -> Duals | None:
    """Dual values of the rows; solvers disagree about their sign, so the better sign is chosen."""
    rows = [problem.get_constraint_by_name(row.name).pi for row in model.rows]
    if None in rows:
        return None
    duals = tuple(map(float, rows))
    signs = (tuple(-y for y in duals), duals)
    bounds = {certified_bound(model, y): y for y in signs}
    return bounds[min((b for b in bounds if b is not None), default=None)]
