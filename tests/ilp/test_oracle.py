"""IPET against the search over all paths, on thousands of random programs."""

from __future__ import annotations

import pytest

from ilp.solvers.cbc import Cbc
from ilp.solvers.solver_result import Solver
from tests.testing.harness.cases import cases
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.judging import Tally, judge
from tests.testing.ilp.programs import PAIRS

RARE = ("cut and solved again", "repeated, not realisable")  # outcomes


@pytest.mark.slow("many integer programs are solved")
@pytest.mark.parametrize(
    ("solver", "first", "number", "rare"),
    [(InProcess(), 0, cases(150), RARE), (Cbc(), 22_000, cases(25), ())],
    ids=["highs", "cbc"],
)
def test_the_bound_is_the_longest_allowed_path(
    solver: Solver, first: int, number: int, rare: tuple[str, ...]
) -> None:
    tally = Tally()
    for seed in range(first, first + number):
        try:
            judge(seed, solver, tally)
        except AssertionError as error:
            raise AssertionError(f"case {seed}: {error}") from error
    seen = tally.seen
    assert seen["exact"] > number * 0.6, tally
    assert seen["repeated"] > number * 0.05, tally
    assert seen["exact, infeasible"] < number * 0.2, tally
    assert seen["certified search"] > number * 0.02, tally
    assert seen["write-backs without a line"] > number * 0.02, tally
    assert seen["options of calls"] > 0 or number < 100, tally
    for form in (
        "ConflictFact in",
        "ConsistentFact in",
        "AtMostFact in",
        "AtMostFact",
        "LinearFact in",
        "LinearFact",
        "RequireFact",
    ):
        assert seen[form] > number * 0.03, tally
    for outcome in rare:
        assert seen[outcome] > 0, tally


def test_a_program_that_cbc_alone_gets_wrong() -> None:
    """With its integer preprocessing, CBC 2.10.3 answers this one with counts that break a row."""
    judge(5_000_620, Cbc(), Tally(), PAIRS)
