"""A dual bound, proved in exact integers from the dual values of the linear relaxation.

Any multipliers y with y_i >= 0 on the <= rows give, for every solution x of the program,

    c x  =  y (A x) + (c - y A) x  <=  y b + sum_j upper_j * max(0, c_j - (y A)_j)

(weak duality). The solver's y is only a hint: it is rounded to fractions with denominator
``SCALE``, unless it consists of fractions, and the right-hand side is computed in integers, so that
the bound holds even if the solver is wrong (Neumaier and Shcherbina, "Safe bounds in linear and
mixed-integer linear programming", 2004). The objective is an integer, so the bound may be rounded
down.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite, lcm

from ilp.solvers.integer_program import IntegerProgram
from ilp.solvers.solver_result import Figure

__all__ = ["certified_bound", "weak_duality"]

SCALE = 720_720  # divisible by 1..16: the duals of flow problems have such denominators


def certified_bound(model: IntegerProgram, duals: Sequence[Figure]) -> int | None:
    """A proved maximum of the objective, constant included; None if ``duals`` are not finite."""
    exact = (y.denominator for y in duals if isinstance(y, Fraction))
    scale = lcm(SCALE, *exact)
    scaled = [y * scale for y in duals]
    if not all(isinstance(y, Fraction) or isfinite(y) for y in scaled):
        return None
    whole = zip(model.rows, map(round, scaled), strict=True)
    return weak_duality(model, [y if row.equal else max(y, 0) for row, y in whole], scale)


def weak_duality(model: IntegerProgram, multipliers: Sequence[int], scale: int) -> int:
    """The bound by ``multipliers`` / ``scale``, one for each row, at least 0 on a <= row."""
    reduced = [c * scale for c in model.objective]
    total = 0
    for row, y in zip(model.rows, multipliers, strict=True):
        if y:
            total += y * row.rhs
            for j, a in row.terms:
                reduced[j] -= a * y
    total += sum(c * most for c, most in zip(reduced, model.upper, strict=True) if c > 0)
    return model.constant + total // scale
