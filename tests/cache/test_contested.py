"""Lines that other accesses of a loop may evict: a miss per line, and one per eviction."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from cache.cache_simulator import SimulatedCache
from cache.contested import ContestedLines, contested_lines
from cache.data_accesses import DataAccess, DataAccessModel
from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy
from cache.reference import HitClass
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import DATA, DEVICE, pool
from tests.testing.cache.loops import TABLE, loads
from tests.testing.cache.walks import L1, hierarchy

TWICE = "ldr r3, [r4]\nldr r2, [r4]\n"
OTHER = ValueSet.of(DATA + 4096)  # in the set of the table's first line


@pytest.mark.parametrize("other", [None, OTHER, ValueSet(DATA + 4096, DATA + 8188, 4)])
def test_the_access_that_may_evict_is_charged_for_it(other: ValueSet | None) -> None:
    """Two accesses to the table in each iteration, and one that may evict a line of it."""
    found, first = loads(TWICE + "ldr r0, [r1]\n", [TABLE, TABLE, other], 100)
    assert [(r.insn, r.l1) for r in found] == [
        (0, HitClass.FM), (1, HitClass.FM), (2, HitClass.NC), (2, HitClass.NC)
    ]  # fmt: skip
    assert [r.low for r in first] == [DATA, DATA + 32, DATA + 64, DATA + 96]


def test_a_line_of_the_table_alone_counts_with_it() -> None:
    text = "ldr r3, [r4]\nldr r2, [r4]\nldr r0, [r1]\n"
    found, first = loads(text, [TABLE, ValueSet.of(DATA), None], 100)
    assert [r.l1 for r in found] == [HitClass.FM, HitClass.FM, HitClass.NC, HitClass.NC]
    assert len(first) == 4


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("ldr r3, [r4]\nldr r0, [r1]\n", None),
        (TWICE + "ldr r0, [r1]\nldr r0, [r1]\n", None),
        (TWICE + "ldr r0, [r1]\nmcr p15, 0, r0, c7, c6, 0\n", None),
        (TWICE + "vldr d0, [r1]\n", OTHER),
    ],
)
def test_no_gain_or_no_proof(text: str, other: ValueSet | None) -> None:
    """As many evictions as accesses, maintenance, and the vector unit."""
    tables = text.count("[r4]")
    found, _ = loads(text, [*[TABLE] * tables, *[other] * (text.count("\n") - tables)], 100)
    assert {r.l1 for r in found[:tables]} == {HitClass.NC}


@pytest.mark.parametrize("locked", ["ldrex r0, [r1]", "strex r2, r0, [r1]", "swp r0, r2, [r1]"])
def test_a_line_that_an_access_past_l1_may_drop_is_not_persistent(locked: str) -> None:
    """It misses in each iteration; the lines of other sets do not."""
    here, next_line = ValueSet.of(DATA), ValueSet.of(DATA + 32)
    text = f"ldr r3, [r4]\nldr r3, [r4]\n{locked}\n"
    found, _ = loads(text, [here, next_line, here], 100)
    assert [found[0].l1, found[1].l1] == [HitClass.NC, HitClass.FM]


def test_too_few_iterations_for_a_gain() -> None:
    found, first = loads(TWICE + "ldr r0, [r1]\n", [TABLE, TABLE, None], 4)
    assert [r.l1 for r in found] == [HitClass.NC] * 3
    assert first == []


def accesses(text: str, *values: ValueSet | None) -> list[DataAccess]:
    model = DataAccessModel(hierarchy(0))
    found = zip(pool(text), values, strict=True)
    return [access for insn, value in found for access in model.accesses(insn, value)]


def test_what_may_evict() -> None:
    lines = ContestedLines.of([DATA // 32, DATA // 32 + 1], L1)
    text = "ldr r3, [r4]\n" * 6 + "str r3, [r4]\n" + "strex r2, r3, [r4]\n" * 3
    values = [
        ValueSet.of(DATA), OTHER, None, ValueSet.of(DATA + 64), ValueSet.of(DEVICE),
        ValueSet(DATA + 64, DATA + 64 + (1 << 20), 128), None,
        ValueSet.of(DATA), ValueSet.of(DATA + 64), None,
    ]  # fmt: skip
    verdicts = [lines.evicted_by(access) for access in accesses(text, *values)]
    assert verdicts == [False, True, True, False, False, False, False, True, False, True]


def test_lines_are_of_different_sets() -> None:
    first = DATA // 32
    ranges = [(first, first + 1), (first + 1,), (first + 128,), (first + 2, first + 130)]
    assert contested_lines([], ranges, L1) == {first, first + 1}


@pytest.mark.parametrize("policy", ReplacementPolicy)
def test_misses_are_at_most_lines_and_fills_by_others(policy: ReplacementPolicy) -> None:
    """On concrete caches from random contents; both sides are reached."""
    geometry = CacheGeometry(256, 4, 32)  # two sets
    closest: Sequence[int] = []
    for seed in range(60):
        random = Random(seed)
        cache = SimulatedCache(geometry, policy, random)
        cache.pollute(list(range(100, 120)), random.choice([0.0, 1.0]))
        misses, charged = 0, 2
        for _ in range(40):
            line = random.choice([4, 5, *range(6, 24)])
            hit = cache.load(line).hit
            misses += line in (4, 5) and not hit
            charged += line not in (4, 5) and not hit
            assert misses <= charged
        closest = [*closest, charged - misses]
    assert min(closest) < 20
