"""An upper bound proved in exact integers from the dual values of the linear relaxation.

Any multipliers y with y_i >= 0 on the <= rows give, for every solution x of the program,

    c x  =  y (A x) + (c - y A) x  <=  y b + sum_j upper_j * max(0, c_j - (y A)_j)

(weak duality). The solver's y is only a hint: it is rounded to fractions with denominator
``SCALE``, and the right-hand side is computed in integers, so the bound holds whatever the solver
did (Neumaier and Shcherbina, "Safe bounds in linear and mixed-integer linear programming", 2004).
The objective is an integer, so the bound may be rounded down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ilp.solvers.model import Model

__all__ = ["certified_bound", "weak_duality"]

SCALE = 720_720  # divisible by 1..16: duals of flow problems are such fractions
SAFE = 2**62


def certified_bound(model: Model, duals: npt.NDArray[np.float64]) -> int | None:
    """A proved maximum of the objective, constant included; None if ``duals`` are not finite."""
    scaled = np.rint(duals * SCALE)
    if not np.isfinite(scaled).all():
        return None
    inequality = np.array([not row.equal for row in model.rows], dtype=bool)
    scaled[inequality] = np.maximum(scaled[inequality], 0.0)
    return weak_duality(model, [int(y) for y in scaled], SCALE)


def weak_duality(model: Model, multipliers: Sequence[int], scale: int) -> int:
    """The bound by ``multipliers`` / ``scale``, one for each row, none below 0 on a <= row."""
    lengths = [len(row.terms) for row in model.rows]
    row_of = np.repeat(np.arange(len(lengths)), np.array(lengths, dtype=np.int64))
    columns = np.array([j for row in model.rows for j, _ in row.terms], dtype=np.int64)
    figures = [a for row in model.rows for _, a in row.terms]
    often = int(np.bincount(columns).max(initial=0))
    largest = often * greatest(figures) * greatest(multipliers) + scale * greatest(model.objective)
    exact = np.int64 if largest < SAFE else object
    y = np.array(multipliers, dtype=exact)
    reduced = np.array([c * scale for c in model.objective], dtype=exact)
    np.subtract.at(reduced, columns, np.array(figures, dtype=exact) * y[row_of])
    total = sum(int(y[i]) * row.rhs for i, row in enumerate(model.rows) if row.rhs)
    total += sum(int(reduced[j]) * model.upper[j] for j in np.flatnonzero(reduced > 0))
    return model.constant + total // scale


def greatest(figures: Sequence[int]) -> int:
    """The greatest magnitude, at least 1."""
    return max(map(abs, figures), default=1) or 1
