"""Solvers and the proof of a bound: agreement, lies, interruptions, and every failure of CBC."""

from __future__ import annotations

import os
import time
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilp.solvers import cbc, highs, highs_library
from ilp.solvers.cbc import Cbc, bundled, upper_bound
from ilp.solvers.certificate import certified_bound
from ilp.solvers.highs import Highs
from ilp.solvers.integer_program import IntegerProgram, LinearRow
from ilp.solvers.pulp_problem import PulpSolver, linear_problem, to_lp, to_mps
from ilp.solvers.solve import maximise, rounded_up, solver_named
from ilp.solvers.solver_result import SimplexBasis, Solver, SolverResult, SolverStatus
from quoll.errors import InfeasibleError, SolverError, UsageError
from tests.testing.harness.cases import cases
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.models import brute_force, models
from tests.testing.ilp.reading import maximum

SOLVERS: list[Solver] = [Cbc(), Highs()]


def check_against_brute_force(model: IntegerProgram, solver: Solver) -> None:
    best = brute_force(model)
    if best is None:
        with pytest.raises(InfeasibleError):
            maximise(model, solver)
        return
    proof = maximise(model, solver)
    assert proof.bound == best
    assert proof.attained
    assert proof.values is not None
    assert model.violations(proof.values) == ()
    assert model.value(proof.values) == best


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(80))
@given(models())
def test_highs_finds_the_maximum(model: IntegerProgram) -> None:
    check_against_brute_force(model, InProcess())


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(5))
@given(models())
def test_cbc_finds_the_maximum(model: IntegerProgram) -> None:
    check_against_brute_force(model, Cbc())


@pytest.mark.slow("many random integer programs")
@pytest.mark.parametrize("solver", ["HiGHS", "PULP_CBC_CMD"])
@settings(max_examples=cases(2))
@given(model=models())
def test_solvers_that_pulp_drives_find_the_maximum(solver: str, model: IntegerProgram) -> None:
    check_against_brute_force(model, PulpSolver(solver))


@settings(max_examples=cases(8))
@given(models(8))
def test_pulp_has_the_rows_of_the_model(model: IntegerProgram) -> None:
    problem = linear_problem(model)
    columns = {x.name: x for x in problem.variables()}
    for name, most in zip(model.names, model.upper, strict=True):
        assert name not in columns or (columns[name].lowBound, columns[name].upBound) == (0, most)
    for row in model.rows:
        constraint = problem.get_constraint_by_name(row.name)
        terms = {model.names[j]: a for j, a in row.terms} or {"one": 1}
        assert {x.name: a for x, a in constraint.items()} == terms
        assert constraint.sense == (0 if row.equal else -1)
        assert -constraint.constant == row.rhs + (not row.terms)


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(80))
@given(models(), st.data())
def test_any_multipliers_certify_an_upper_bound(model: IntegerProgram, data: st.DataObject) -> None:
    size = len(model.rows)
    figures = st.floats(-1e3, 1e3, allow_nan=False)
    duals = data.draw(st.lists(figures, min_size=size, max_size=size))
    best = brute_force(model)
    bound = certified_bound(model, duals)
    assert bound is not None
    assert best is None or bound >= best


def test_certificates_are_exact_beyond_64_bits() -> None:
    row = LinearRow("r", "o", ((0, 2**40), (1, 1)), False, 2**40 * 3)
    model = IntegerProgram(("x", "y"), (2**20, 5), (2**45, 1), 7, (row,))
    bound = certified_bound(model, [2.0**5])
    assert bound == 7 + 3 * 2**45
    assert certified_bound(model, (float("nan"),)) is None


@pytest.mark.parametrize("solver", SOLVERS, ids=["cbc", "highs"])
def test_counts_above_eight_digits_are_exact(solver: Solver) -> None:
    row = LinearRow("r", "o", ((0, 3), (1, 2)), False, 1_234_567_890_123)
    model = IntegerProgram(("x", "y"), (10**9 + 7, 10**12), (4, 2), 1, (row,))
    proof = maximise(model, solver)
    assert proof.values == (10**9 + 7, (1_234_567_890_123 - 3 * (10**9 + 7)) // 2)
    assert proof.attained


def knapsack(size: int) -> IntegerProgram:
    """A program that needs a search: several dense rows over 0/1 variables."""
    rng = np.random.default_rng(7)
    rows = tuple(
        LinearRow(f"r{i}", "o", tuple((j, int(rng.integers(20, 99))) for j in range(size)), False,
            size * 30)
        for i in range(12)
    )  # fmt: skip
    objective = tuple(int(rng.integers(50, 99)) for _ in range(size))
    return IntegerProgram(tuple(f"x{j}" for j in range(size)), (1,) * size, objective, 0, rows)


@pytest.mark.slow("many integer programs are solved")
@pytest.mark.parametrize("solver", SOLVERS, ids=["cbc", "highs"])
def test_an_interrupted_search_gives_its_bound_labelled(solver: Solver) -> None:
    model = knapsack(200)
    proof = maximise(model, solver, 1.5)
    assert proof.method == "dual bound when the time limit was reached"
    assert not proof.attained
    assert sum(model.objective) > proof.bound
    assert proof.values is None or model.value(proof.values) < proof.bound


@pytest.mark.slow("many integer programs are solved")
def test_both_solvers_agree_on_a_search() -> None:
    model = knapsack(12)
    proofs = [maximise(model, solver) for solver in SOLVERS]
    assert proofs[0].bound == proofs[1].bound
    assert all(p.attained and p.method == "dual bound of the solver's search" for p in proofs)


class Scripted:
    """A solver with given results."""

    name = "Scripted 1"
    preferred = True

    def __init__(self, relaxed: SolverResult, integer: SolverResult) -> None:
        self.answers = {True: relaxed, False: integer}

    def solve(
        self,
        model: IntegerProgram,
        *,
        relaxed: bool,
        seconds: float | None,
        start: SimplexBasis | None = None,
    ) -> SolverResult:
        return self.answers[relaxed]


ROW = LinearRow("r", "o", ((0, 2), (1, 2)), False, 5)
PAIR = IntegerProgram(("x", "y"), (9, 9), (3, 3), 100, (ROW,))
NOTHING = SolverResult(SolverStatus.STOPPED, None, None, None)


def optimal(values: list[float], bound: float | None) -> SolverResult:
    return SolverResult(SolverStatus.OPTIMAL, tuple(values), bound, None)


def test_a_bound_below_its_own_counts_is_an_error() -> None:
    with pytest.raises(SolverError, match="claims a maximum of 104 cycles, but its counts reach"):
        maximise(PAIR, Scripted(NOTHING, optimal([1, 1], 4.0)))


def test_a_certificate_stands_against_a_bound_below_the_counts() -> None:
    relaxation = SolverResult(SolverStatus.OPTIMAL, (1.25, 1.25), 7.5, (1.5,))
    split = SolverResult(SolverStatus.STOPPED, None, None, None)

    class Twice(Scripted):
        def solve(
            self,
            model: IntegerProgram,
            *,
            relaxed: bool,
            seconds: float | None,
            start: SimplexBasis | None = None,
        ) -> SolverResult:
            return split if relaxed and len(model.rows) > 1 else self.answers[relaxed]

    proof = maximise(PAIR, Twice(relaxation, optimal([1, 1], 4.0)))
    assert (proof.bound, proof.values, proof.attained) == (107, (1, 1), False)


def test_counts_that_break_a_row_are_not_believed() -> None:
    proof = maximise(PAIR, Scripted(NOTHING, optimal([2, 1], 9.0)))
    assert (proof.bound, proof.values, proof.attained) == (109, None, False)


def test_a_bound_above_the_counts_is_reported_and_not_called_attained() -> None:
    proof = maximise(PAIR, Scripted(NOTHING, optimal([1, 1], 7.4)))
    assert (proof.bound, proof.values, proof.attained) == (108, (1, 1), False)


def test_a_search_over_many_counts_is_not_believed_to_the_cycle() -> None:
    """A reduced cost of 1e-7 is none for a solver: of 10^9 executions it is 100 cycles."""
    many = IntegerProgram(("x", "y"), (10**9, 9), (3, 3), 100, (ROW,))
    proof = maximise(many, Scripted(NOTHING, optimal([1, 1], 6.0)))
    assert (proof.bound, proof.values, proof.attained) == (206, (1, 1), False)


def test_fractional_counts_are_not_rounded_into_place() -> None:
    proof = maximise(PAIR, Scripted(NOTHING, optimal([1.3, 1.0], 7.0)))
    assert (proof.bound, proof.values) == (107, None)


def test_a_solver_that_ends_and_proves_nothing_is_an_error() -> None:
    with pytest.raises(SolverError, match="proved no bound"):
        maximise(PAIR, Scripted(NOTHING, optimal([1, 1], None)), 1.0)


def test_a_solver_stopped_at_once_leaves_the_maxima_of_the_counts() -> None:
    proof = maximise(PAIR, Scripted(NOTHING, NOTHING), 1.0)
    assert (proof.bound, proof.values, proof.attained) == (100 + 9 * 3 + 9 * 3, None, False)
    assert proof.method == "every edge as often as its loops allow, as the time limit was reached"


@pytest.mark.parametrize(
    ("bound", "expected"),
    [(4.0, 4), (4.0000004, 4), (3.9999999, 4), (4.001, 5), (-2.5, -2), (1e12 + 0.5, 10**12 + 1)],
)
def test_dual_bounds_are_rounded_up(bound: float, expected: int) -> None:
    assert rounded_up(bound) == expected


def program(tmp_path: Path, text: str) -> Cbc:
    path = tmp_path / "cbc"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Cbc(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kill -9 $$", "killed by signal 9"),
        ("echo out of luck; exit 3", "failed: out of luck"),
        ("exit 0", "failed: it printed nothing"),
        ("echo read with 0 errors", "failed: read with 0 errors"),
        ("echo read with 2 errors; echo Optimal >$7", "failed: read with 2 errors"),
        ('echo read with 0 errors; for f; do l=$f; done; echo "What" >"$l"', "failed: What"),
        ('echo read with 0 errors; for f; do l=$f; done; echo "Optimal" >"$l"', "no solution"),
    ],
)
def test_what_cbc_may_do_instead_of_solving(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        maximise(PAIR, program(tmp_path, text))


def test_a_solution_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    body = f"""{bundled()} "$@" || exit 1
for f; do before=$mid; mid=$last; last=$f; done
head -c 40 "$before" >{tmp_path}/cut; cat {tmp_path}/cut >"$before" """
    with pytest.raises(SolverError, match="cut off"):
        maximise(PAIR, program(tmp_path, body))


@pytest.mark.slow("many integer programs are solved")
@pytest.mark.parametrize("text", ["sleep 1000", "sleep 1000 & wait", "while :; do :; done"])
def test_cbc_is_ended_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A script whose own child kept the pipe open was waited for without end."""
    monkeypatch.setattr(cbc, "GRACE", 0.5)
    begun = time.monotonic()
    proof = maximise(PAIR, program(tmp_path, text), 0.5)
    assert "time limit was reached" in proof.method
    assert time.monotonic() - begun < 60  # it would sleep for 1000


@pytest.mark.slow("many integer programs are solved")
def test_highs_is_ended_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ran in this process, which nothing could end."""
    monkeypatch.setattr(highs, "GRACE", 0.5)
    monkeypatch.setattr(highs_library, "solved", lambda *_, **__: time.sleep(1000))
    begun = time.monotonic()
    proof = maximise(PAIR, Highs(), 0.5)
    assert "time limit was reached" in proof.method
    assert time.monotonic() - begun < 60  # it would sleep for 1000


def test_highs_that_crashes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs_library, "solved", lambda *_, **__: os.kill(os.getpid(), 9))
    with pytest.raises(SolverError, match="HiGHS failed: killed by signal 9"):
        maximise(PAIR, Highs(), 5.0)


def test_a_library_that_is_missing_or_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(highs_library, "loaded", highs_library.loaded.__wrapped__)
    monkeypatch.setattr(highs_library, "find_spec", lambda _: None)
    with pytest.raises(SolverError, match="HiGHS is not installed"):
        maximise(PAIR, Highs())
    (tmp_path / "highspy").mkdir()
    (tmp_path / "highspy/__init__.py").touch()
    monkeypatch.setattr(
        highs_library, "find_spec", lambda name: PathFinder.find_spec(name, [str(tmp_path)])
    )
    library = tmp_path / "highspy/libhighs.so.1"
    library.write_text("no library")
    with pytest.raises(SolverError, match=r"cannot be used: .*libhighs\.so\.1"):
        maximise(PAIR, Highs())


@pytest.mark.parametrize("rows", [(), (0,), (0, 1, 7)])
@pytest.mark.parametrize("variables", [(), (1,), (0, 1), (5, 6, 7)])
def test_a_start_that_is_none_changes_no_maximum(
    variables: tuple[int, ...], rows: tuple[int, ...]
) -> None:
    start = SimplexBasis(frozenset(variables), frozenset(rows))
    answer = InProcess().solve(PAIR, relaxed=True, seconds=None, start=start)
    assert answer.bound == 7.5


def test_a_missing_solver_is_named(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"missing: .*/nothing"):
        maximise(PAIR, Cbc(tmp_path / "nothing"))


@pytest.mark.slow("many integer programs are solved")
def test_paths_with_spaces_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a b  c"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    os.symlink(bundled(), folder / "the solver")
    assert maximise(PAIR, Cbc(folder / "the solver")).bound == 106
    assert [p.name for p in folder.iterdir()] == ["the solver"]


def test_solvers_are_known_by_name() -> None:
    assert solver_named("cbc").name == "CBC 2.10.3"
    assert solver_named("highs").name.startswith("HiGHS 1.")
    assert solver_named("HiGHS").name.startswith("HiGHS by PuLP 3.")
    with pytest.raises(UsageError, match="cbc, highs, PULP_CBC_CMD"):
        solver_named("glpk")
    with pytest.raises(SolverError, match="CPLEX_CMD is not installed") as missing:
        solver_named("CPLEX_CMD")
    assert missing.value.exit_status == 8


def test_cbc_prints_its_bound_with_three_digits() -> None:
    assert upper_bound("Result - Stopped\nUpper bound:      2404.927\n") == pytest.approx(2404.928)
    assert upper_bound("Upper bound:   1.5e+06\n") == pytest.approx(1.5e6, abs=0.01)
    assert upper_bound("Objective value: 3\n") is None


@pytest.mark.slow("many random integer programs")
@settings(max_examples=cases(8))
@given(models())
def test_both_text_formats_mean_the_model(
    tmp_path_factory: pytest.TempPathFactory, model: IntegerProgram
) -> None:
    best = brute_force(model)
    folder = tmp_path_factory.mktemp("text")
    for name, text in (("m.lp", to_lp(model)), ("m.mps", to_mps(model))):
        (folder / name).write_text(text)
        found = maximum(folder / name)
        assert best == (None if found is None else round(found)), text


def test_lp_text_reads_like_the_equations() -> None:
    row = LinearRow("loop0", "loop bound 4 at 0x8010", ((0, 1), (1, -3)), False, 2)
    text = to_lp(IntegerProgram(("x0", "x1"), (4, 1), (7, 0), 5, (row,)))
    assert text.splitlines() == [
        "\\ loop0: loop bound 4 at 0x8010",
        "\\* ipet *\\",
        "Maximize",
        "OBJ: 5 one + 7 x0",
        "Subject To",
        "loop0: x0 - 3 x1 <= 2",
        "one: one = 1",
        "Bounds",
        " 0 <= x0 <= 4",
        "Generals",
        "x0",
        "Binaries",
        "one",
        "x1",
        "End",
    ]
