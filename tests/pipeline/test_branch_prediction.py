"""The bound of a path covers its execution with predicted branches, from any state."""

from __future__ import annotations

from random import Random

import pytest

from quoll.arm.branch_prediction import BranchPrediction
from tests.testing.harness.cases import cases
from tests.testing.pipeline.predicted import check_fetches, check_loop, check_predicted

CASES = cases(60)
PREDICTORS = [BranchPrediction.STATIC, BranchPrediction.DYNAMIC]


@pytest.mark.slow("simulates many executions instruction by instruction")
@pytest.mark.parametrize("prediction", PREDICTORS)
def test_charges_cover_predicted_branches(prediction: BranchPrediction) -> None:
    """Histories of other programs and of these branches; fetches on wrong paths."""
    wrong = 0
    for seed in range(CASES):
        try:
            wrong += check_predicted(Random(seed), prediction).stalls
            wrong += check_fetches(seed, prediction).stalls
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert wrong > CASES


@pytest.mark.parametrize("distance", [4096, 4096 + 32, 64, 20 * 4])
@pytest.mark.parametrize("nested", [True, False])
def test_a_branch_that_is_mispredicted_in_each_iteration(distance: int, nested: bool) -> None:
    """A loop whose branch is never taken; code at its target may compete with the loop's."""
    case = check_loop(distance, nested=nested)
    assert case.concrete * 1.05 < case.bound <= 4 * case.concrete
