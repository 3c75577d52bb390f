"""The bound of a path is never below its execution on the concrete machine (rules 14 to 17)."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from pipeline.timing import Profile
from tests.pipeline.runs import check, check_warm

WARM_CASES = 6000  # with every access a hit: the pipeline alone
COLD_CASES = 2000  # with caches in any state; many more in tests/campaigns/pipeline.py


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("profile", Profile)
def test_block_times_cover_the_concrete_pipeline(profile: Profile, part: int) -> None:
    """Random programs and paths from idle and busy pipelines."""
    ratios, exact = [], 0
    for seed in range(part, WARM_CASES // 2, 2):
        try:
            case = check_warm(Random(seed), profile)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        ratios.append(case.bound / max(case.concrete, 1))
        exact += case.bound == case.concrete
    if profile is Profile.NOMINAL:
        # A bound that is far above everything would prove nothing.
        assert median(ratios) < 1.05
        assert exact > len(ratios) // 5
    assert exact > 0


@pytest.mark.parametrize("part", range(2))
def test_charges_cover_misses_and_memory(part: int) -> None:
    """Random programs, paths, cache contents, prefetches, outstanding accesses."""
    closest = 10.0
    for seed in range(part, COLD_CASES, 2):
        try:
            case = check(Random(seed), list(Profile)[seed // 2 % 2])
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        closest = min(closest, case.bound / max(case.concrete, 1))
    assert closest < 1.1
