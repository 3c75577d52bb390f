"""The certified search: right with a right solver, and never wrong with a wrong one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilp.solvers.branch import (
    INTEGRAL,
    SearchResult,
    at_stake,
    branch_and_bound,
    elastic_program,
    exact_values,
)
from ilp.solvers.cbc import Cbc
from ilp.solvers.highs import Highs
from ilp.solvers.integer_program import IntegerProgram, LinearRow
from ilp.solvers.solver_result import SimplexBasis, Solver, SolverResult, SolverStatus
from tests.testing.harness.cases import cases
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.models import brute_force, models


def searched(model: IntegerProgram, solver: Solver, most: int = 1000) -> SearchResult | None:
    root = solver.solve(model, relaxed=True, seconds=None)
    return branch_and_bound(model, root, solver, most, None)


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(60))
@given(models(5))
def test_the_search_finds_the_maximum(model: IntegerProgram) -> None:
    best = brute_force(model)
    search = searched(model, InProcess())
    if search is None:
        assert best is None
        return
    assert search.bound == best
    assert (search.values is None) == (best is None)
    assert search.values is None or model.value(search.values) == best


class Liar:
    """Answers of a real solver, some of them replaced by nonsense."""

    name = "Liar"
    preferred = True

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.lies = 0

    def solve(
        self,
        model: IntegerProgram,
        *,
        relaxed: bool,
        seconds: float | None,
        start: SimplexBasis | None = None,
    ) -> SolverResult:
        honest = InProcess().solve(model, relaxed=relaxed, seconds=seconds)
        if self.rng.random() < 0.6:
            return honest
        self.lies += 1
        kind = self.rng.randrange(4)
        values = tuple(self.rng.choice((0.0, 0.5, 1.0, 2.7)) for _ in model.names)
        duals = tuple(self.rng.uniform(-5, 5) for _ in model.rows)
        if kind == 0:
            return SolverResult(SolverStatus.INFEASIBLE, None, None, None)
        if kind == 1:
            return SolverResult(SolverStatus.OPTIMAL, values, 0.0, honest.duals)
        if kind == 2:
            return SolverResult(SolverStatus.OPTIMAL, honest.values, -1e9, duals)
        return SolverResult(SolverStatus.STOPPED, None, None, None)


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(80))
@given(models(5), st.integers(0, 1000))
def test_no_lie_of_a_solver_makes_a_bound_too_low(model: IntegerProgram, seed: int) -> None:
    best = brute_force(model)
    search = searched(model, Liar(seed), 60)
    if search is None or best is None:
        return
    assert search.bound is not None
    assert search.bound >= best
    assert search.values is None or model.violations(search.values) == ()


def test_a_count_beyond_its_limit_does_not_raise_it() -> None:
    """A wrong solver's; branching at it keeps the limit in both subproblems."""
    model = IntegerProgram(("x",), (0,), (1,), 0, ())
    root = SolverResult(SolverStatus.OPTIMAL, (2.7,), 3.0, ())
    search = branch_and_bound(model, root, Highs(), 10, None)
    assert search is not None
    assert (search.bound, search.values) == (0, (0,))


def test_what_costs_most_is_decided_first() -> None:
    assert at_stake((0.5, 0.9, 1.0), (1, 100, 1000)) == 1
    assert at_stake((0.5, 0.5, 0.5), (0, -7, 7)) == 1
    assert at_stake((0.9, 0.6), (0, 0)) == 1
    assert at_stake((1.0, 2.0 + INTEGRAL / 2), (5, 5)) is None


@pytest.mark.slow("many random integer programs")
def test_the_liar_does_lie() -> None:
    row = LinearRow("r", "o", ((0, 2), (1, 2), (2, 2)), False, 3)
    model = IntegerProgram(("x", "y", "z"), (1, 1, 1), (3, 4, 5), 0, (row,))
    liars = [Liar(seed) for seed in range(50)]
    bounds = {s.bound for s in (searched(model, liar, 60) for liar in liars) if s is not None}
    assert sum(liar.lies for liar in liars) > 50
    assert min(b for b in bounds if b is not None) == 5
    assert len(bounds) > 1


@pytest.mark.slow("many integer programs are solved")
@pytest.mark.parametrize("solver", [Cbc(), Highs()], ids=["cbc", "highs"])
def test_a_search_that_is_cut_off_keeps_a_proved_bound(solver: Solver) -> None:
    rows = tuple(
        LinearRow(f"r{i}", "o", tuple((j, 7 + (i * j) % 5) for j in range(12)), False, 40)
        for i in range(4)
    )
    model = IntegerProgram(
        tuple(f"x{j}" for j in range(12)), (1,) * 12, tuple(range(9, 21)), 0, rows
    )
    best = brute_force(model)
    assert best is not None
    searches = [searched(model, solver, most) for most in (1, 3, 9, 400)]
    bounds = [s.bound for s in searches if s is not None and s.bound is not None]
    assert len(bounds) == 4
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > best
    assert bounds[-1] == best


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(30))
@given(models(3))
def test_the_elastic_program_measures_violation(model: IntegerProgram) -> None:
    elastic = elastic_program(model)
    answer = InProcess().solve(elastic, relaxed=True, seconds=None)
    assert answer.status is SolverStatus.OPTIMAL
    relaxed = InProcess().solve(model, relaxed=True, seconds=None)
    assert answer.bound is not None
    assert (answer.bound < -1e-7) == (relaxed.status is SolverStatus.INFEASIBLE)


def test_values_are_taken_only_if_exact() -> None:
    row = LinearRow("r", "o", ((0, 1),), False, 1)
    model = IntegerProgram(("x",), (3,), (1,), 0, (row,))
    for value, expected in (
        (1.0, (1,)),
        (1.0 + 1e-7, (1,)),
        (0.5, None),
        (2.0, None),
        (-1.0, None),
    ):
        answer = SolverResult(SolverStatus.OPTIMAL, (value,), None, None)
        assert exact_values(model, answer) == expected
    assert (
        exact_values(model, SolverResult(SolverStatus.OPTIMAL, (float("nan"),), None, None)) is None
    )
    assert exact_values(model, SolverResult(SolverStatus.STOPPED, None, None, None)) is None
