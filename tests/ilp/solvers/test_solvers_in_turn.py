"""After one solver fails, the next one runs; the error if all fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ilp.ipet import build_ipet
from ilp.longest_path import longest_path
from ilp.solvers import highs_library
from ilp.solvers.cbc import Cbc
from ilp.solvers.exact import ExactSimplex
from ilp.solvers.highs import Highs
from ilp.solvers.integer_program import IntegerProgram, LinearRow
from ilp.solvers.solve import maximise
from ilp.solvers.solver_result import Proposal, Solver, SolverResult, SolverStatus
from quoll.errors import InfeasibleError, SolverError
from quoll.facts.fact import FactSource
from tests.testing.ilp.programs import random_case

DEFAULT = Highs(preferred=False)
FACT = FactSource("my.facts", 1, "x <= 1")
ROW = LinearRow("r", "o", ((0, 2), (1, 2)), False, 5)
PAIR = IntegerProgram(("x", "y"), (9, 9), (3, 3), 100, (ROW,))  # at most 106
NOTHING = SolverResult(SolverStatus.STOPPED, None, None, None)


Solve = Callable[..., SolverResult]


def says(answer: SolverResult | None) -> Solve:
    """A method ``solve``: it gives an answer, or an error without one."""

    def solve(self: Solver, model: IntegerProgram, **given: object) -> SolverResult:
        if answer is None:
            raise SolverError(f"{type(self).__name__} stopped with model status 15")
        return answer

    return solve


REFUSES = says(None)
STAYS_AWAY = says(NOTHING)
NO_PATH = says(SolverResult(SolverStatus.INFEASIBLE, None, None, None))
TOO_LOW = says(
    SolverResult(SolverStatus.OPTIMAL, (1.0, 1.0), 4.0, None)
)  # its own counts reach 106


@pytest.mark.slow("waits for solvers that fail")
@pytest.mark.parametrize("solve", [REFUSES, STAYS_AWAY, NO_PATH, TOO_LOW])
def test_the_next_one_is_asked(monkeypatch: pytest.MonkeyPatch, solve: Solve) -> None:
    monkeypatch.setattr(Highs, "solve", solve)
    proof = maximise(PAIR, DEFAULT, 20.0)
    assert (proof.bound, proof.attained, proof.solver) == (106, True, Cbc().name)
    monkeypatch.setattr(Cbc, "solve", solve)
    proof = maximise(PAIR, DEFAULT, 20.0)
    assert (proof.bound, proof.attained, proof.solver) == (106, True, ExactSimplex().name)


def test_a_status_of_highs_that_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 15, "unknown", was the end of a run."""
    monkeypatch.setattr(highs_library, "OPTIMAL", 99)
    with pytest.raises(SolverError, match="HiGHS stopped with model status 7"):
        maximise(PAIR, Highs(), 20.0)  # it was named: nobody else is asked
    assert maximise(PAIR, DEFAULT, 20.0).solver == Cbc().name


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs_library, "loaded", highs_library.loaded.__wrapped__)
    monkeypatch.setattr(highs_library, "find_spec", lambda _: None)
    assert maximise(PAIR, DEFAULT, 20.0).bound == 106


def test_all_that_were_asked_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for solver in (Highs, Cbc, ExactSimplex):
        monkeypatch.setattr(solver, "solve", REFUSES)
    with pytest.raises(SolverError) as error:
        maximise(PAIR, DEFAULT, 20.0)
    for name in ("Highs", "Cbc", "ExactSimplex"):
        assert f"{name} stopped with model status 15" in str(error.value)
    assert error.value.exit_status == 8


def test_where_nobody_answers_the_longest_path_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the constraints: they only take paths away."""
    case = random_case(0)
    ipet = build_ipet(case.graph, case.costs, case.bounds)
    proposal = longest_path(ipet)
    assert proposal is not None
    exits = tuple((j, 1) for j, name in enumerate(ipet.model.names) if name.startswith("end."))
    clash = LinearRow("fact", "my.facts:1", exits, False, 0, FACT)
    model = ipet.model.with_rows([clash])
    for solver in (Highs, Cbc, ExactSimplex):
        monkeypatch.setattr(solver, "solve", REFUSES)
    proof = maximise(model, DEFAULT, 20.0, proposal)
    assert proof.bound == ipet.model.value(proposal.values)
    assert (proof.values, proof.attained) == (None, False)
    assert "constraints left out; Highs stopped with model status 15" in proof.method


@pytest.mark.slow("many integer programs are solved")
def test_a_claim_that_there_is_no_path_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    at_least = LinearRow("fact", "my.facts:1", ((0, -1),), False, -10, FACT)
    model = PAIR.with_rows([at_least])
    with pytest.raises(InfeasibleError, match=r"my\.facts:1"):
        maximise(model, DEFAULT, 20.0)
    monkeypatch.setattr(Highs, "solve", REFUSES)
    with pytest.raises(InfeasibleError, match=r"my\.facts:1"):
        maximise(model, DEFAULT, 20.0)


def test_a_search_that_dies_leaves_what_its_relaxations_prove(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ilp.solvers.solve.SUBPROBLEMS", 1)
    solve = Cbc.solve

    def only_relaxed(self: Cbc, model: IntegerProgram, **given: Any) -> SolverResult:
        if not given["relaxed"]:
            raise SolverError("CBC was killed by signal 9")
        return solve(self, model, **given)

    monkeypatch.setattr(Cbc, "solve", only_relaxed)
    proof = maximise(PAIR, Cbc(), 20.0)
    assert (proof.bound, proof.attained) == (107, False)
    assert proof.method.endswith("of the relaxation; CBC was killed by signal 9")


@pytest.mark.parametrize("power", [15, 18, 20, 25])
@pytest.mark.parametrize("solver", [DEFAULT, Highs(), Cbc()], ids=["default", "highs", "cbc"])
def test_counts_and_coefficients_of_many_digits(solver: Highs | Cbc, power: int) -> None:
    """A nest of that many iterations, whose two branches conflict per iteration."""
    n = 10**power
    rows = (
        LinearRow("loop", "loop bound", ((0, 1), (1, 1), (2, 1)), False, n),
        LinearRow("conflict", "my.facts:1", ((0, 1), (1, 1)), False, n, FACT),
        LinearRow("total", "total", ((2, n), (0, -1)), False, 0),
        LinearRow("at most", "my.facts:2", ((0, 3),), False, 2 * n + 1, FACT),
    )
    model = IntegerProgram(("x", "y", "z"), (n, n, n), (7, 5, 3 * n), 11, rows)
    a = (2 * n + 1) // 3
    best = max(7 * x + 5 * (n - x - x // n) + 3 * n * (x // n) + 11 for x in (0, a))
    proof = maximise(model, solver, 60.0)
    assert proof.bound == best
    assert proof.attained
    free = replace(model, rows=(rows[0],))
    assert maximise(free, solver, 60.0, Proposal((0, 0, n), (0,), "a guess")).bound == (
        n * max(7, 5, 3 * n) + 11
    )


@pytest.mark.parametrize("power", [9, 12, 14, 15])
def test_coefficients_that_doubles_hold_and_solvers_do_not(power: int) -> None:
    """HiGHS refuses figures above 10^15; below, a half is lost in the tolerances of all solvers."""
    n = 4 * 10**power
    rows = (
        LinearRow("loop", "loop bound", ((1, 1), (0, 1 - n)), False, 0),
        LinearRow("entry", "flow", ((0, 1),), True, 1),
        LinearRow("conflict", "my.facts:1", ((1, 1), (2, n)), False, n, FACT),
        LinearRow("half", "my.facts:2", ((1, 2), (2, 1)), False, 2 * n - 1, FACT),
    )
    model = IntegerProgram(("entry", "back", "once"), (1, n, 1), (1, 2, n), 0, rows)
    best = 1 + 2 * (n - 1)
    assert not model.inexact()
    proof = maximise(model, DEFAULT, 20.0)
    assert (proof.bound, proof.attained) == (best, True)
    if power == 15:
        with pytest.raises(SolverError, match="HiGHS refuses the model"):
            maximise(model, Highs(), 20.0)
