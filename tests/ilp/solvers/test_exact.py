"""The simplex method in fractions, and bounds whose figures no double holds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilp.solvers.branch import proved_empty
from ilp.solvers.certificate import certified_bound
from ilp.solvers.exact import ExactSimplex
from ilp.solvers.highs import Highs
from ilp.solvers.integer_program import IntegerProgram, LinearRow
from ilp.solvers.solve import maximise
from ilp.solvers.solver_result import SimplexBasis, SolverStatus
from quoll.errors import InfeasibleError
from quoll.facts.fact import FactSource
from tests.testing.harness.cases import cases
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.models import brute_force, models

LARGE = st.integers(0, 80).map(lambda power: 2**power) | st.integers(0, 25).map(lambda n: 10**n)


@st.composite
def large_models(draw: st.DrawFn) -> IntegerProgram:
    """Small programs with figures of any size beside small figures."""
    size = draw(st.integers(1, 3))
    reach = draw(st.lists(LARGE, min_size=size, max_size=size))  # of one step of each variable
    rows = []
    for i in range(draw(st.integers(0, 4))):
        figures = draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size))
        whole = draw(LARGE)
        terms = tuple((j, a * whole * reach[j] + b) for j, (a, b) in enumerate(
            (a, draw(st.integers(-2, 2))) for a in figures
        ))  # fmt: skip
        rhs = draw(st.integers(-3, 12)) * whole * draw(st.sampled_from(reach))
        fact = FactSource("f", i, "") if draw(st.booleans()) else None
        kept = tuple((j, a) for j, a in terms if a)
        rows.append(LinearRow(f"r{i}", "o", kept, False, rhs + draw(st.integers(-2, 2)), fact))
    costs = draw(st.lists(st.integers(-3, 20), min_size=size, max_size=size))
    objective = tuple(c * draw(LARGE) + draw(st.integers(-2, 2)) for c in costs)
    upper = tuple(draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)))
    return IntegerProgram(tuple(f"x{j}" for j in range(size)), upper, objective, 3, tuple(rows))


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(60))
@given(large_models())
def test_the_maximum_with_figures_of_any_size(model: IntegerProgram) -> None:
    """The judge tries every point."""
    best = brute_force(model)
    if best is None:
        with pytest.raises(InfeasibleError):
            maximise(model, ExactSimplex())
        return
    proof = maximise(model, ExactSimplex())
    assert (proof.bound, proof.attained) == (best, True)
    assert proof.values is not None
    assert model.violations(proof.values) == ()
    assert model.value(proof.values) == best


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(12))
@given(large_models())
def test_the_default_chain_has_it_too(model: IntegerProgram) -> None:
    best = brute_force(model)
    if best is None:
        with pytest.raises(InfeasibleError):
            maximise(model, Highs(preferred=False))
        return
    assert maximise(model, Highs(preferred=False)).bound == best


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(60))
@given(models(5))
def test_relaxations_are_those_of_highs(model: IntegerProgram) -> None:
    exact = ExactSimplex().solve(model, relaxed=True, seconds=None)
    other = InProcess().solve(model, relaxed=True, seconds=None)
    assert exact.status is other.status
    if exact.status is SolverStatus.INFEASIBLE:
        assert proved_empty(model, ExactSimplex(), None)
        return
    assert exact.values is not None
    assert exact.duals is not None
    reached = sum(c * x for c, x in zip(model.objective, exact.values, strict=True))
    assert other.bound == pytest.approx(float(reached))
    for row in model.rows:
        left = sum(a * exact.values[j] for j, a in row.terms)
        assert left == row.rhs if row.equal else left <= row.rhs
    assert certified_bound(model, exact.duals) == model.constant + reached // 1


@settings(max_examples=cases(40))
@given(models(5), st.data())
def test_any_start_has_the_same_maximum(model: IntegerProgram, data: st.DataObject) -> None:
    variables = data.draw(st.frozensets(st.integers(0, len(model.names) + 1)))
    rows = data.draw(st.frozensets(st.integers(0, len(model.rows) + 1)))
    cold = ExactSimplex().solve(model, relaxed=True, seconds=None)
    warm = ExactSimplex().solve(
        model, relaxed=True, seconds=None, start=SimplexBasis(variables, rows)
    )
    assert warm.status is cold.status
    if cold.values is not None and warm.values is not None:
        gains = [
            sum((c * Fraction(x) for c, x in zip(model.objective, at, strict=True)), Fraction())
            for at in (cold.values, warm.values)
        ]
        assert gains[0] == gains[1]


def test_equal_steps_do_not_go_on_for_ever() -> None:
    """Every vertex but one of an assignment is degenerate."""
    size = 5
    rows = []
    for i in range(size):
        line = tuple((i * size + j, 1) for j in range(size))
        column = tuple((j * size + i, 1) for j in range(size))
        rows += [
            LinearRow(f"in{i}", "o", line, True, 1),
            LinearRow(f"out{i}", "o", column, True, 1),
        ]
    costs = tuple((3 * i + 5 * i * j) % 7 for i in range(size) for j in range(size))
    names = tuple(f"x{n}" for n in range(size * size))
    model = IntegerProgram(names, (1,) * len(names), costs, 0, tuple(rows))
    assert maximise(model, ExactSimplex()).bound == maximise(model, InProcess()).bound
