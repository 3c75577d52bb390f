"""The library of the ``highspy`` wheel: the only file that calls it.

It is called by its C interface. The wheel's Python interface accepts vectors of numpy only, and
loading numpy takes a tenth of a second, longer than solving most programs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ctypes import CDLL, Array, byref, c_char_p, c_double, c_int, c_void_p, sizeof
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
from math import inf, isfinite
from pathlib import Path
from typing import Any

from ilp.solvers.integer_program import IntegerProgram
from ilp.solvers.solver_result import SimplexBasis, SolverResult, SolverStatus
from quoll.errors import SolverError

__all__ = ["ModelVectors", "loaded", "solved", "version"]

# Constants of its header highs_c_api.h:
ERROR, ROWWISE, MAXIMIZE, INTEGER, NO_SOLUTION = -1, 2, -1, 1, 0
OPTIMAL, INFEASIBLE, UNBOUNDED_OR_INFEASIBLE, TIME_LIMIT = 7, 8, 9, 13  # statuses of a run
BASIC, NONBASIC = 1, 4  # variables and rows
NOTHING = float("nan")  # marks entries that the library did not write


@cache
def loaded() -> CDLL:
    """The library itself. Raises SolverError if it is not installed or has another interface."""
    spec = find_spec("highspy")
    folders = () if spec is None else spec.submodule_search_locations or ()
    files = [file for folder in folders for file in sorted(Path(folder).glob("libhighs.so*"))]
    hint = "install the wheel of highspy, or use --solver cbc"
    if not files:
        raise SolverError("the library of HiGHS is not installed", hint=hint)
    try:
        found = CDLL(str(files[0]))
        found.Highs_create.restype = c_void_p
        found.Highs_version.restype = c_char_p
        with _made(found) as highs:
            size: int = found.Highs_getSizeofHighsInt(highs)
    except (OSError, AttributeError) as fault:
        raise SolverError(f"the library of HiGHS cannot be used: {fault}", hint=hint) from fault
    if size != sizeof(c_int):
        raise SolverError(f"the library of HiGHS has integers of {size} bytes", hint=hint)
    return found


def version() -> str:
    """The library's version."""
    text: bytes = loaded().Highs_version()
    return text.decode()


@dataclass(frozen=True, slots=True)
class ModelVectors:
    """A model as the vectors of the C interface, the only input of a forked process."""

    columns: int
    rows: int
    terms: int
    relaxed: bool
    vectors: tuple[Array[Any] | None, ...]  # from the costs to the integer variables
    start: tuple[Array[c_int], Array[c_int]] | None  # of the variables and of the rows

    @staticmethod
    def of(
        model: IntegerProgram, *, relaxed: bool, start: SimplexBasis | None = None
    ) -> ModelVectors:
        """The model without its constant."""
        columns, rows = range(len(model.names)), model.rows
        terms = [term for row in rows for term in row.terms]
        vectors = (
            _doubles(model.objective),
            _doubles([0] * len(columns)),
            _doubles(model.upper),
            _doubles([row.rhs if row.equal else -inf for row in rows]),
            _doubles([row.rhs for row in rows]),
            _integers([0, *accumulate(len(row.terms) for row in rows)]),
            _integers([j for j, _ in terms]),
            _doubles([a for _, a in terms]),
            None if relaxed else _integers([INTEGER] * len(columns)),
        )
        first = (
            None
            if start is None
            else (
                _integers([BASIC if j in start.variables else NONBASIC for j in columns]),
                _integers([NONBASIC if i in start.rows else BASIC for i in range(len(rows))]),
            )
        )
        return ModelVectors(len(columns), len(rows), len(terms), relaxed, vectors, first)


def solved(given: ModelVectors, seconds: float | None) -> SolverResult:
    """The result of HiGHS, with one thread so that results are repeatable."""
    lib = loaded()
    with _made(lib) as highs:
        lib.Highs_setBoolOptionValue(highs, b"output_flag", 0)
        lib.Highs_setIntOptionValue(highs, b"threads", 1)
        options = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": 1e-9}
        if seconds is not None:
            options["time_limit"] = seconds
        for option, value in options.items():
            lib.Highs_setDoubleOptionValue(highs, option.encode(), c_double(value))
        size = given.columns, given.rows, given.terms
        form = ROWWISE, MAXIMIZE, c_double(0.0)
        if lib.Highs_passMip(highs, *size, *form, *given.vectors) == ERROR:
            raise SolverError("HiGHS refuses the model", hint="report it (--lp FILE)")
        if given.start is not None:  # HiGHS ignores an invalid basis
            lib.Highs_setBasis(highs, *given.start)
        lib.Highs_run(highs)
        return _result(lib, highs, given)


@contextmanager
def _made(lib: CDLL) -> Iterator[c_void_p]:
    """An empty solver."""
    highs = c_void_p(lib.Highs_create())
    try:
        yield highs
    finally:
        lib.Highs_destroy(highs)


def _basis(lib: CDLL, highs: c_void_p, given: ModelVectors) -> SimplexBasis | None:
    """The last basis of the simplex method; None if there is none."""
    variables, rows = _integers([BASIC] * given.columns), _integers([BASIC] * given.rows)
    if lib.Highs_getBasis(highs, variables, rows) == ERROR:
        return None
    return SimplexBasis(
        frozenset(j for j, status in enumerate(variables) if status == BASIC),
        frozenset(i for i, status in enumerate(rows) if status != BASIC),
    )


def _result(lib: CDLL, highs: c_void_p, given: ModelVectors) -> SolverResult:
    """The status of HiGHS; every variable is bounded, so nothing is unbounded."""
    ended: int = lib.Highs_getModelStatus(highs)
    if ended in (INFEASIBLE, UNBOUNDED_OR_INFEASIBLE):
        return SolverResult(SolverStatus.INFEASIBLE, None, None, None)
    if ended not in (OPTIMAL, TIME_LIMIT):
        raise SolverError(
            f"HiGHS stopped with model status {ended}",
            hint="use --solver cbc, and report this model (--lp FILE)",
        )
    counts = _doubles([NOTHING] * given.columns)
    costs = _doubles([NOTHING] * given.columns)
    sums, multipliers = (_doubles([NOTHING] * given.rows) for _ in range(2))
    lib.Highs_getSolution(highs, counts, costs, sums, multipliers)
    values = tuple(counts) if _has(lib, highs, "primal_solution_status") else None
    duals = tuple(multipliers) if _has(lib, highs, "dual_solution_status") else None
    if given.relaxed:
        reached = _figure(lib, highs, "objective_function_value")
        optimal = SolverResult(
            SolverStatus.OPTIMAL, values, reached, duals, _basis(lib, highs, given)
        )
        return optimal if ended == OPTIMAL else SolverResult(SolverStatus.STOPPED, None, None, None)
    bound = _figure(lib, highs, "mip_dual_bound")
    if ended == OPTIMAL:
        return SolverResult(SolverStatus.OPTIMAL, values, bound, None)
    return SolverResult(SolverStatus.STOPPED, values, bound if isfinite(bound) else None, None)


def _has(lib: CDLL, highs: c_void_p, what: str) -> bool:
    """Whether a vector of the solution is present."""
    status = c_int(NO_SOLUTION)
    lib.Highs_getIntInfoValue(highs, what.encode(), byref(status))
    return status.value != NO_SOLUTION


def _figure(lib: CDLL, highs: c_void_p, what: str) -> float:
    """A figure about the run."""
    figure = c_double(NOTHING)
    lib.Highs_getDoubleInfoValue(highs, what.encode(), byref(figure))
    return figure.value


def _doubles(values: Iterable[float]) -> Array[c_double]:
    vector = array("d", values)
    return (c_double * len(vector)).from_buffer(vector)


def _integers(values: Iterable[int]) -> Array[c_int]:
    vector = array("i", values)
    return (c_int * len(vector)).from_buffer(vector)
