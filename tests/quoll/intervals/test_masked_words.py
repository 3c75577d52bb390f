"""Each operation on masked words covers the operation on all members, exhaustively."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import product

import pytest

from quoll.intervals import masked_words as mw
from quoll.intervals.masked_words import MaskedWords, Words, masked
from quoll.intervals.strided_interval import ANY, ValueSet, progression

BINARY: dict[str, tuple[Callable[..., Words], Callable[[int, int], int]]] = {
    "and": (mw.bit_and, lambda x, y: x & y),
    "or": (mw.bit_or, lambda x, y: x | y),
    "xor": (mw.bit_xor, lambda x, y: x ^ y),
}
SHIFTS: dict[str, tuple[Callable[..., Words], Callable[[int, int, int], int]]] = {
    "left": (mw.shift_left, lambda x, n, ones: x << n & ones),
    "right": (mw.shift_right, lambda x, n, ones: x >> n),
}


def intervals(bits: int) -> set[ValueSet]:
    words = range(1 << bits)
    return {progression(a, b, s) for a in words for b in words[a:] for s in range(1, 1 << bits)}


@cache
def every_set(bits: int) -> tuple[tuple[Words, frozenset[int]], ...]:
    """All that ``masked`` makes, each with its members."""
    found: dict[Words, frozenset[int]] = {}
    for mask, members in product(range(1 << bits), intervals(bits)):
        words = frozenset(x for x in range(1 << bits) if x & mask in members)
        if words:
            made = masked(mask, members, bits)
            assert {x for x in range(1 << bits) if x in made} == words, (mask, members)
            found[made] = words
    return tuple(found.items())


def test_the_sets_are_many_and_most_are_no_intervals() -> None:
    kinds = [type(words) for words, _ in every_set(4)]
    assert kinds.count(MaskedWords) > 300
    assert kinds.count(ValueSet) == len(intervals(4))


def test_a_field_that_says_nothing_is_any_word() -> None:
    assert masked(0x3FF, ValueSet(0, 0x3FF, 1)) is ANY
    assert masked(0xFFFF_FFFF, ValueSet(1, 9, 1)) == ValueSet(1, 9, 1)


@pytest.mark.slow("many random values")
@pytest.mark.parametrize("name", BINARY)
def test_binary_operations_cover_all_pairs(name: str) -> None:
    operation, concrete = BINARY[name]
    for (a, xs), (b, ys) in product(every_set(3), repeat=2):
        result = operation(a, b, 3)
        assert all(concrete(x, y) in result for x in xs for y in ys), (a, b, result)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_cover_all_members(name: str) -> None:
    operation, concrete = SHIFTS[name]
    for (a, xs), amount in product(every_set(4), range(7)):
        result = operation(a, amount, 4)
        assert {concrete(x, amount, 15) for x in xs} <= members(result), (a, amount, result)


def members(words: Words) -> set[int]:
    return {x for x in range(16) if x in words}


def test_not_and_hull_cover_all_members() -> None:
    for a, xs in every_set(4):
        assert {15 - x for x in xs} == members(mw.bit_not(a, 4)), a
        assert xs <= members(mw.hull(a, 4)), a
        if isinstance(a, MaskedWords) and not any(m & ~a.mask for m in a.members):
            assert (min(xs), max(xs)) == (mw.hull(a, 4).low, mw.hull(a, 4).high), a


@pytest.mark.slow("many random values")
def test_the_order_is_inclusion_and_a_join_is_an_upper_bound() -> None:
    for (a, xs), (b, ys) in product(every_set(3), repeat=2):
        if mw.covers(a, b, 3):
            assert ys <= xs, (a, b)
        both = mw.join_words(a, b, 3)
        assert all(x in both for x in xs | ys), (a, b, both)
        assert mw.covers(both, a, 3), (a, b, both)
        assert mw.covers(both, b, 3), (a, b, both)
    assert all(mw.covers(a, a, 4) for a, _ in every_set(4))


@pytest.mark.slow("many random values")
def test_a_join_of_joins_covers_all_that_was_joined() -> None:
    """The fixed point relies on it: a join covers the parts of the sets that it joins."""
    rng, made = random.Random(1), [words for words, _ in every_set(3)]
    for _ in range(20_000):
        a, b, c = (rng.choice(made) for _ in range(3))
        first = mw.join_words(a, b, 3)
        last = mw.join_words(first, c, 3)
        assert all(mw.covers(last, one, 3) for one in (a, b, c, first)), (a, b, c, last)


NUMBER = masked(0x3FF, ValueSet(0, 1019, 1))
RAW, ENABLED, FREE = (masked(8, ValueSet.of(bit)) for bit in (8, 8, 0))
ROTATED = mw.bit_or(ValueSet(0, 40 << 16, 1 << 16), ValueSet(0, 40, 1))


@pytest.mark.parametrize(
    ("made", "exact"),
    [
        (mw.bit_and(NUMBER, ValueSet.of(0x3FF)), ValueSet(0, 1019, 1)),
        (mw.shift_right(mw.shift_left(NUMBER, 22), 22), ValueSet(0, 1019, 1)),
        (mw.bit_and(RAW, ENABLED), RAW),
        (mw.bit_and(RAW, mw.bit_not(FREE)), RAW),
        (mw.bit_and(ROTATED, ValueSet.of(255)), ValueSet(0, 40, 1)),
    ],
)
def test_fields_of_interrupt_controllers_are_exact(made: Words, exact: Words) -> None:
    """An interrupt number, shifted or masked; a raw bit with its enable bit; ``uxtb`` of a ror."""
    assert made == exact
