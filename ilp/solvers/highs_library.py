"""The library of the ``highspy`` wheel: the only file that calls it.

Loading it takes a tenth of a second, which a run whose programs need no solver does not spend.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import highspy
import numpy as np

from ilp.solvers.answer import Answer, Status
from ilp.solvers.model import Model
from quoll.errors import SolverError

__all__ = ["new_highs", "solved"]


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
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row.terms) for row in model.rows)])
    lp.a_matrix_.index_ = np.array([j for row in model.rows for j, _ in row.terms], dtype=np.int64)
    lp.a_matrix_.value_ = np.array([float(a) for row in model.rows for _, a in row.terms])
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
    values = tuple(solution.col_value) if solution.value_valid else None
    bound = None if relaxed else float(info.mip_dual_bound)
    if status == ended.kOptimal:
        if relaxed:
            duals = tuple(solution.row_dual) if solution.dual_valid else None
            return Answer(Status.OPTIMAL, values, float(info.objective_function_value), duals)
        return Answer(Status.OPTIMAL, values, bound, None)
    if status == ended.kTimeLimit:
        proved = bound if bound is not None and isfinite(bound) else None
        return Answer(Status.STOPPED, None if relaxed else values, proved, None)
    raise SolverError(
        f"HiGHS stopped with status '{highs.modelStatusToString(status)}'",
        hint="use --solver cbc, and report this model (--lp FILE)",
    )
