"""Counts in one integer against lists of counts."""

from __future__ import annotations

from random import Random

from loopbounds.execution.packed_counts import PackedCounts, count_of, one_of
from tests.testing.harness.cases import cases

COUNTS = (0, 0, 1, 2, 1000, (1 << 31) - 1)


def packed(counts: list[int]) -> int:
    return sum(one_of(index) * count for index, count in enumerate(counts))


def test_random_counts() -> None:
    for seed in range(cases(400)):
        random = Random(seed)
        size = random.choice([0, 1, 2, 7, 40])
        counts = PackedCounts(size)
        one, other = (random.choices(COUNTS, k=size) for _ in range(2))
        greatest = counts.most(packed(one), packed(other))
        assert counts.values(greatest) == tuple(map(max, one, other))
        reset = [index for index in range(size) if random.random() < 0.3]
        left = packed(one) & counts.others(reset)
        assert counts.values(left) == tuple(0 if i in reset else c for i, c in enumerate(one))
        assert all(count_of(packed(one), i) == c for i, c in enumerate(one))
