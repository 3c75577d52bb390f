"""Accesses to one of several lines in a loop: a miss per line, charged at the loop's entry."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from cache.policy import ReplacementPolicy
from cache.reference import AccessStream, HitClass, RangeUse
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import DATA, FOREIGN
from tests.testing.cache.loops import TABLE, loads
from tests.testing.cache.walks import hierarchy

LRU = replace(hierarchy(0), policy=ReplacementPolicy.LRU)


def test_a_table_is_charged_once_per_line() -> None:
    found, first = loads("ldr r3, [r4]\n", [TABLE])
    assert [r.l1 for r in found] == [HitClass.FM]
    assert [r.low for r in first] == [DATA, DATA + 32, DATA + 64, DATA + 96]


@pytest.mark.parametrize(("rounds", "l1"), [(4, HitClass.NC), (5, HitClass.FM)])
def test_it_gains_from_more_accesses_than_lines(rounds: int, l1: HitClass) -> None:
    found, first = loads("ldr r3, [r4]\n", [TABLE], rounds)
    assert [r.l1 for r in found] == [l1]
    assert len(first) == (4 if l1 is HitClass.FM else 0)


def test_accesses_to_the_same_lines_share_their_charges() -> None:
    """Two to the table, one to a part of it, and one to a single line."""
    values = [TABLE, ValueSet(DATA + 4, DATA + 120, 4), ValueSet(DATA, DATA + 60, 4)]
    text = "ldr r3, [r4]\n" * 4
    found, first = loads(text, [*values, ValueSet.of(DATA + 96)])
    assert {r.l1 for r in found} == {HitClass.FM}
    assert sorted(r.low or 0 for r in first) == [DATA, DATA + 32, DATA + 64, DATA + 96]


def test_few_executions_of_many_accesses_gain_together() -> None:
    found, first = loads("ldr r3, [r4]\n" * 3, [TABLE] * 3, 2)
    assert {r.l1 for r in found} == {HitClass.FM}
    assert len(first) == 4


def test_a_list_of_two_lines_is_two_accesses() -> None:
    text = "ldm r4, {r0-r3, r5-r8}\n"
    found, first = loads(text, [ValueSet(DATA + 16, DATA + 80, 32)], 4)
    assert [r.l1 for r in found] == [HitClass.FM, HitClass.FM]
    assert len(first) == 4


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("ldr r3, [r4]\nldr r3, [r4]\n", [TABLE, None]),
        ("ldr r3, [r4]\nldr r3, [r4]\n", [TABLE, ValueSet.of(DATA + 4096)]),
        ("ldr r3, [r4]\nmcr p15, 0, r0, c7, c6, 0\n", [TABLE]),
        ("ldr r3, [r4]\nvldr d0, [r4]\n", [TABLE, ValueSet.of(DATA)]),
        ("ldr r3, [r4]\n", [ValueSet(FOREIGN, FOREIGN + 124, 4)]),
        ("ldr r3, [r4]\n", [ValueSet(DATA, DATA + 4096, 4)]),
        ("ldrex r3, [r4]\n", [TABLE]),
        ("swp r3, r2, [r4]\n", [TABLE]),
    ],
)
def test_what_is_charged_each_time(text: str, values: list[ValueSet | None]) -> None:
    """An unknown address, a competing line, maintenance, the vector unit, memory that may be
    uncached, lines that compete with each other, and accesses that need not fill.
    """
    found, first = loads(text, values, 1000)
    assert found[0].l1 is HitClass.NC
    assert len(first) <= 1  # of another line alone


def test_ways_hold_lines_that_compete_only_under_policies_with_an_order() -> None:
    text = "ldr r3, [r4]\nldr r3, [r4]\n"
    for caches, l1 in ((hierarchy(0), HitClass.NC), (LRU, HitClass.FM)):
        values = [TABLE, ValueSet.of(DATA + 4096)]
        assert loads(text, values, 1000, caches)[0][0].l1 is l1


@pytest.mark.parametrize(("size", "l1"), [(16384, HitClass.FM), (16388, HitClass.NC)])
def test_a_large_table_fits_where_all_ways_of_a_set_persist(size: int, l1: HitClass) -> None:
    table = ValueSet(DATA, DATA + size - 4, 4)
    found, first = loads("ldr r3, [r4]\n", [table], 1000, LRU)
    assert [r.l1 for r in found] == [l1]
    assert len(first) == (512 if l1 is HitClass.FM else 0)
    assert loads("ldr r3, [r4]\n", [table], 1000)[0][0].l1 is HitClass.NC, "one-way"


def test_a_stream_counts_with_the_lines_that_it_passes() -> None:
    """In a nest: 10 times 16 words of 4 bytes, 2 + 11/8 lines each time at the most."""
    stream = AccessStream(1, 32, 4, 4, (1,))
    iterations = {0: 10, 1: 16}
    assert RangeUse((0, 1)).misses(iterations) == 160
    assert RangeUse((0, 1), stream).misses(iterations) == Fraction(160 * 4 + 10 * 56, 32)
    assert RangeUse((0, 1), stream).misses({0: 10}) is None
