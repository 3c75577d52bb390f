"""HiGHS, the library of the ``highspy`` wheel: the only file that calls it.

It runs in a process of its own, which is ended when it does not keep its limit, or with this one;
if it crashes, that is an error as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import highspy
import numpy as np

from ilp.solvers.answer import GRACE, Answer, Status
from ilp.solvers.model import Model
from quoll.errors import SolverError
from quoll.processes.children import Died, TimedOut, apart

__all__ = ["Highs"]


@dataclass(frozen=True, slots=True)
class Highs:
    """The solver of the ``highspy`` wheel; ``asked_first`` as in ``ilp.solvers.answer.Solver``."""

    asked_first: bool = True

    @property
    def name(self) -> str:
        """Name and version."""
        return f"HiGHS {new_highs().version()}"

    def solve(self, model: Model, *, relaxed: bool, seconds: float | None) -> Answer:
        """See ``ilp.solvers.answer.Solver``."""
        limit = None if seconds is None else seconds + GRACE
        try:
            return apart(partial(solved, model, relaxed=relaxed, seconds=seconds), limit)
        except TimedOut:
            return Answer(Status.STOPPED, None, None, None)
        except Died as death:
            raise SolverError(
                f"HiGHS failed: {death}",
                hint="if memory ran out, analyse fewer entries at a time, or use --solver cbc",
            ) from death


def solved(model: Model, *, relaxed: bool, seconds: float | None) -> Answer:
    """What HiGHS answers, with one thread so that answers are repeatable."""
    highs = new_highs()
    options: dict[str, bool | int | float] = {
        "output_flag": False,
        "threads": 1,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": 1e-9,
    }
    if seconds is not None:
        options["time_limit"] = seconds
    for option, value in options.items():
        highs.setOptionValue(option, value)
    if highs.passModel(lp_of(model, relaxed=relaxed)) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refuses the model", hint="report it (--lp FILE)")
    highs.run()
    return read_answer(highs, relaxed=relaxed)


def new_highs() -> highspy.Highs:
    """An empty solver; the library's constructor carries no types."""
    make: Callable[[], highspy.Highs] = highspy.Highs
    return make()


def lp_of(model: Model, *, relaxed: bool) -> highspy.HighsLp:
    """The model in HiGHS's form, without its constant."""
    matrix = model.matrix()
    rhs = np.array([row.rhs for row in model.rows], dtype=np.float64)
    equal = np.array([row.equal for row in model.rows], dtype=bool)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.names), len(model.rows)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.array(model.objective, dtype=np.float64)
    lp.col_lower_ = np.zeros(len(model.names))
    lp.col_upper_ = np.array(model.upper, dtype=np.float64)
    lp.row_lower_ = np.where(equal, rhs, -highspy.kHighsInf)
    lp.row_upper_ = rhs
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
    lp.a_matrix_.start_ = matrix.start
    lp.a_matrix_.index_ = matrix.column
    lp.a_matrix_.value_ = matrix.coefficient
    if not relaxed:
        lp.integrality_ = [highspy.HighsVarType.kInteger] * len(model.names)
    return lp


def read_answer(highs: highspy.Highs, *, relaxed: bool) -> Answer:
    """What HiGHS ended with; every variable is bounded, so nothing is unbounded."""
    status = highs.getModelStatus()
    ended = highspy.HighsModelStatus
    if status in (ended.kInfeasible, ended.kUnboundedOrInfeasible):
        return Answer(Status.INFEASIBLE, None, None, None)
    solution, info = highs.getSolution(), highs.getInfo()
    values = np.array(solution.col_value) if solution.value_valid else None
    bound = None if relaxed else float(info.mip_dual_bound)
    if status == ended.kOptimal:
        if relaxed:
            duals = np.array(solution.row_dual) if solution.dual_valid else None
            return Answer(Status.OPTIMAL, values, float(info.objective_function_value), duals)
        return Answer(Status.OPTIMAL, values, bound, None)
    if status == ended.kTimeLimit:
        proved = bound if bound is not None and np.isfinite(bound) else None
        return Answer(Status.STOPPED, None if relaxed else values, proved, None)
    raise SolverError(
        f"HiGHS stopped with status '{highs.modelStatusToString(status)}'",
        hint="use --solver cbc, and report this model (--lp FILE)",
    )
