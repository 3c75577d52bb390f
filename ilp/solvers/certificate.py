"""An upper bound proved in exact integers from the dual values of the linear relaxation.

Any multipliers y with y_i >= 0 on the <= rows give, for every solution x of the program,

    c x  =  y (A x) + (c - y A) x  <=  y b + sum_j upper_j * max(0, c_j - (y A)_j)

(weak duality). The solver's y is only a hint: it is rounded to fractions with denominator
``SCALE``, and the right-hand side is computed in integers, so the bound holds whatever the solver
did (Neumaier and Shcherbina, "Safe bounds in linear and mixed-integer linear programming", 2004).
The objective is an integer, so the bound may be rounded down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ilp.solvers.model import Model

__all__ = ["certified_bound"]

SCALE = 720_720  # divisible by 1..16: duals of flow problems are such fractions
SAFE = 2.0**62


def certified_bound(model: Model, duals: npt.NDArray[np.float64]) -> int | None:
    """A proved maximum of the objective, constant included; None if ``duals`` are not finite."""
    scaled = np.rint(duals * SCALE)
    if not np.isfinite(scaled).all():
        return None
    inequality = np.array([not row.equal for row in model.rows], dtype=bool)
    scaled[inequality] = np.maximum(scaled[inequality], 0.0)
    matrix = model.matrix()
    row_of = np.repeat(np.arange(len(model.rows)), np.diff(matrix.start))
    columns = len(model.names)
    magnitude = (
        np.bincount(matrix.column, np.abs(matrix.coefficient * scaled[row_of]), minlength=columns)
        + np.abs(np.array(model.objective, dtype=np.float64)) * SCALE
    )
    largest = max(magnitude.max(initial=0.0), np.abs(scaled).max(initial=0.0))
    exact = np.int64 if largest < SAFE else object
    y = as_integers(scaled, exact)
    reduced = as_integers(np.array(model.objective, dtype=object) * SCALE, exact)
    np.subtract.at(reduced, matrix.column, as_integers(matrix.coefficient, exact) * y[row_of])
    total = sum(int(y[i]) * row.rhs for i, row in enumerate(model.rows) if row.rhs)
    total += sum(int(reduced[j]) * model.upper[j] for j in np.flatnonzero(reduced > 0))
    return model.constant + total // SCALE


def as_integers(values: npt.NDArray[Any], exact: type) -> npt.NDArray[Any]:
    """Integral values as 64-bit or as unlimited integers."""
    if exact is object:
        return np.array([int(v) for v in values], dtype=object)
    return values.astype(np.int64)
