"""The bound of a path covers its execution with predicted branches, from any state."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pipeline.block_times import BlockTimer
from pipeline.maxplus import IDLE
from pipeline.timing_model import BranchModel, CoreProfile
from quoll.arm.branch_prediction import BranchPrediction
from quoll.cfg.cfg import Block
from tests.testing.cache.graphs import CODE, at, pool
from tests.testing.harness.cases import cases
from tests.testing.pipeline.predicted import check_fetches, check_loop, check_predicted
from tests.testing.pipeline.runs import timing

CASES = cases(60)
PREDICTORS = [kind for kind in BranchPrediction if kind is not BranchPrediction.OFF]


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


@pytest.mark.parametrize(
    ("prediction", "distance", "wrong"),
    [
        (BranchPrediction.OFF, 64, False),
        (BranchPrediction.OFF, -64, False),
        (BranchPrediction.STATIC, 64, False),
        (BranchPrediction.STATIC, -64, True),
        (BranchPrediction.DYNAMIC, 64, True),
        (BranchPrediction.DYNAMIC, -64, True),
    ],
)
def test_a_branch_that_may_be_predicted_wrong_takes_as_long_as_a_taken_one(
    prediction: BranchPrediction, distance: int, wrong: bool
) -> None:
    """The flags are set in the cycle before it, so that it takes 6 cycles in all."""
    setter, branch = (at(insn, CODE + 4 * i) for i, insn in enumerate(pool("cmp r0, r1\nbeq .\n")))
    block = Block(0, (setter, branch._replace(target=CODE + distance)))
    branches = BranchModel(None, prediction)
    timer = BlockTimer(replace(timing(CoreProfile.NOMINAL), branches=branches), aligned=True)
    time = timer.time(block, (), IDLE)
    assert time.taken is not None
    assert time.taken[0] == 5
    assert time.falls == (time.taken if wrong else (0, time.falls[1]))
