"""The concrete cache: the policies as the manual states them."""

from __future__ import annotations

from random import Random

import pytest

from cache.cache_simulator import FetchUnit, SimulatedCache
from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy

SMALL = CacheGeometry(256, 4, 32)  # two sets of four ways


def test_round_robin_has_one_counter_for_all_sets() -> None:
    cache = SimulatedCache(SMALL, ReplacementPolicy.ROUND_ROBIN, Random(1))
    for line in range(8):
        assert not cache.load(line).hit  # invalid ways first
    assert all(cache.resident(line) for line in range(8))
    cache.load(8)  # evicts some way of set 0 ...
    (gone,) = (line for line in (0, 2, 4, 6) if not cache.resident(line))
    cache.load(9)  # ... and the next way, of set 1
    (next_gone,) = (line for line in (1, 3, 5, 7) if not cache.resident(line))
    assert next_gone // 2 == (gone // 2 + 1) % 4


@pytest.mark.parametrize("policy", ReplacementPolicy)
def test_stores_do_not_allocate_and_dirty_victims_are_written(policy: ReplacementPolicy) -> None:
    cache = SimulatedCache(SMALL, policy, Random(2))
    assert not cache.store(0).hit
    assert not cache.resident(0)
    for line in (0, 2, 4, 6):
        cache.load(line)
        assert cache.store(line).hit
    outcome = cache.load(8)
    assert not outcome.hit
    assert outcome.victim in (0, 2, 4, 6)
    assert cache.clean_all() == 3
    assert cache.clean_all() == 0
    cache.invalidate_all()
    assert not cache.resident(8)


def test_pollution_fills_the_sets() -> None:
    cache = SimulatedCache(SMALL, ReplacementPolicy.RANDOM, Random(3))
    cache.pollute(list(range(100, 140)), 1.0)
    assert sum(cache.resident(line) for line in range(100, 140)) == 8
    assert cache.clean_all() > 0


def test_fetches_run_ahead_and_restart() -> None:
    unit = FetchUnit(SimulatedCache(SMALL, ReplacementPolicy.ROUND_ROBIN, Random(4)))
    unit.redirect(0x10)
    unit.fetch_to(0x14)
    assert unit.log == {0: False}
    unit.fetch_to(0x44)
    assert unit.log == {0: False, 1: False, 2: False}
    unit.redirect(0x20)
    unit.fetch_to(0x24)
    assert unit.log == {1: True}
    assert unit.misses == 3
