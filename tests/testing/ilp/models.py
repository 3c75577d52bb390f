"""Small integer programs, and their maximum over all integer points."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from ilp.solvers.integer_program import IntegerProgram, LinearRow
from quoll.facts.fact import FactSource


def models(most_variables: int = 4) -> st.SearchStrategy[IntegerProgram]:
    """Small programs, feasible or not, with negative coefficients and equalities."""

    @st.composite
    def build(draw: st.DrawFn) -> IntegerProgram:
        size = draw(st.integers(1, most_variables))
        upper = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
        rows = []
        for i in range(draw(st.integers(0, 4))):
            figures = draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size))
            terms = tuple((j, a) for j, a in enumerate(figures) if a)
            fact = FactSource("f", i, "") if draw(st.booleans()) else None
            equal = draw(st.booleans()) and draw(st.booleans())
            rows.append(LinearRow(f"r{i}", "o", terms, equal, draw(st.integers(-6, 20)), fact))
        objective = draw(st.lists(st.integers(-3, 20), min_size=size, max_size=size))
        names = tuple(f"x{j}" for j in range(size))
        constant = draw(st.integers(0, 9))
        return IntegerProgram(names, tuple(upper), tuple(objective), constant, tuple(rows))

    return build()


def brute_force(model: IntegerProgram) -> int | None:
    """The maximum over all integer points."""
    points = itertools.product(*(range(u + 1) for u in model.upper))
    return max((model.value(p) for p in points if not model.violations(p)), default=None)
