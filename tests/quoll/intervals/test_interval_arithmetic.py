"""Each operation on value sets covers the operation on all members."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoll.intervals import interval_arithmetic as ar
from quoll.intervals.interval_comparison import ComparisonOperator, holds, refine
from quoll.intervals.strided_interval import (
    ANY,
    WORD,
    ValueSet,
    join,
    leq,
    meet,
    progression,
    widen,
)
from tests.testing.harness.cases import cases

Binary = tuple[Callable[..., ValueSet], Callable[[int, int, int], int]]


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


BINARY: dict[str, Binary] = {
    "add": (ar.add, lambda x, y, n: x + y),
    "subtract": (ar.subtract, lambda x, y, n: x - y),
    "multiply": (ar.multiply, lambda x, y, n: x * y),
    "and": (ar.bit_and, lambda x, y, n: x & y),
    "or": (ar.bit_or, lambda x, y, n: x | y),
    "xor": (ar.bit_xor, lambda x, y, n: x ^ y),
    "shift left": (ar.shift_left, lambda x, y, n: x << min(y, n)),
    "shift right": (ar.shift_right, lambda x, y, n: x >> min(y, n)),
    "shift right signed": (ar.shift_right_signed, lambda x, y, n: signed(x, n) >> min(y, n)),
}
UNARY: dict[str, Binary] = {
    "negate": (ar.negate, lambda x, _, n: -x),
    "not": (ar.bit_not, lambda x, _, n: ~x),
    "leading zeros": (ar.leading_zeros, lambda x, _, n: n - x.bit_length()),
}
RELATIONS: dict[ComparisonOperator, Callable[[int, int, int], bool]] = {
    ComparisonOperator.EQ: lambda x, y, n: x == y,
    ComparisonOperator.NE: lambda x, y, n: x != y,
    ComparisonOperator.ULT: lambda x, y, n: x < y,
    ComparisonOperator.ULE: lambda x, y, n: x <= y,
    ComparisonOperator.SLT: lambda x, y, n: signed(x, n) < signed(y, n),
    ComparisonOperator.SLE: lambda x, y, n: signed(x, n) <= signed(y, n),
}


def all_sets(bits: int) -> list[ValueSet]:
    """Every strided interval of a small width."""
    words = range(1 << bits)
    return [
        progression(low, high, stride)
        for low in words
        for high in words[low:]
        for stride in range(1, max(2, high - low + 1))
        if (high - low) % stride == 0
    ]


SMALL = all_sets(3)


@st.composite
def sets(draw: st.DrawFn) -> ValueSet:
    """Words as analyses meet them: constants, small ranges, tables, wide and full ranges."""
    low = draw(
        st.one_of(
            st.integers(0, 40),
            st.integers(0, WORD - 1),
            st.integers(WORD - 40, WORD - 1),
            st.integers((WORD >> 1) - 20, (WORD >> 1) + 20),
        )
    )
    stride = draw(st.one_of(st.integers(1, 12), st.sampled_from([16, 256, 1 << 16, 1 << 31])))
    count = draw(st.one_of(st.integers(0, 8), st.integers(0, WORD)))
    return progression(low, min(WORD - 1, low + stride * count), stride)


def member(data: st.DataObject, a: ValueSet) -> int:
    index: int = data.draw(
        st.one_of(st.integers(0, min(3, a.size - 1)), st.integers(0, a.size - 1))
    )
    return a.low + a.stride * index


def canonical(a: ValueSet) -> bool:
    if a.stride == 0:
        return a.low == a.high
    return 0 <= a.low < a.high and (a.high - a.low) % a.stride == 0


def test_small_sets_are_all_there() -> None:
    members = {frozenset(a) for a in SMALL}
    assert (
        len(members)
        == len(SMALL)
        == 8 + sum(sum(1 for s in range(1, d + 1) if d % s == 0) * (8 - d) for d in range(1, 8))
    )


@pytest.mark.slow("many random operands")
def test_generator_varies() -> None:
    seen: set[tuple[bool, bool, bool, bool]] = set()

    @settings(max_examples=300, database=None, derandomize=True)
    @given(sets())
    def collect(a: ValueSet) -> None:
        assert canonical(a)
        seen.add((a.exact is not None, a.stride > 1, a.high >= WORD >> 1, a.size > 1000))

    collect()
    assert len(seen) >= 9


@pytest.mark.parametrize("name", BINARY)
def test_binary_small(name: str) -> None:
    abstract, concrete = BINARY[name]
    for a, b in product(SMALL, SMALL):
        result = abstract(a, b, 3)
        assert canonical(result)
        for x, y in product(a, b):
            assert concrete(x, y, 3) % 8 in result, (a, b, x, y)


@pytest.mark.parametrize("name", UNARY)
def test_unary_small(name: str) -> None:
    abstract, concrete = UNARY[name]
    for a in SMALL:
        result = abstract(a, 3)
        assert canonical(result)
        assert all(concrete(x, 0, 3) % 8 in result for x in a), a


def test_masks_that_change_nothing_small() -> None:
    kept = set_already = 0
    for a, mask in product(SMALL, range(8)):
        if ar.preserves_bits(a, mask, 3):
            assert all(x & mask == x for x in a), (a, mask)
            kept += 1
        if ar.has_bits(a, mask, 3):
            assert all(x | mask == x for x in a), (a, mask)
            set_already += 1
    assert min(kept, set_already) > len(SMALL)
    aligned = ValueSet(0xF0000000, 0xF7FFFE00, 0x200)
    assert ar.preserves_bits(aligned, 0xFFFFFE00)
    assert ar.has_bits(aligned, 0xF0000000)
    assert not ar.preserves_bits(aligned, 0xFFFFFC00)


def test_extends_and_pieces_small() -> None:
    for a in SMALL:
        assert all(signed(x, 3) % 32 in ar.sign_extend(a, 3, 5) for x in a), a
        for low_bit, width in ((0, 1), (0, 2), (1, 1), (1, 2), (2, 1)):
            piece = ar.subpiece(a, low_bit, width)
            assert canonical(piece)
            assert all((x >> low_bit) % (1 << width) in piece for x in a), (a, low_bit, width)


def test_lattice_small() -> None:
    for a, b in product(SMALL, SMALL):
        both, common = join(a, b), meet(a, b)
        assert canonical(both)
        assert leq(a, both)
        assert leq(b, both)
        assert (set() if common is None else set(common)) == set(a) & set(b)
        assert leq(a, b) == (set(a) <= set(b))


def test_join_is_least_small() -> None:
    for a, b in random.Random(1).sample(list(product(SMALL, SMALL)), 1500):
        union = set(a) | set(b)
        above = [c for c in SMALL if union <= set(c)]
        assert all(set(join(a, b)) <= set(c) for c in above)


@pytest.mark.slow("every pair of small operands")
@pytest.mark.parametrize("relation", ComparisonOperator)
def test_comparison_small(relation: ComparisonOperator) -> None:
    concrete = RELATIONS[relation]
    for a, b in product(SMALL, SMALL):
        pairs = [(x, y) for x, y in product(a, b) if concrete(x, y, 3)]
        refined = refine(relation, a, b, 3)
        if refined is None:
            assert not pairs
        else:
            assert canonical(refined[0])
            assert canonical(refined[1])
            assert leq(refined[0], a)
            assert leq(refined[1], b)
            assert all(x in refined[0] and y in refined[1] for x, y in pairs)
        decided = holds(relation, a, b, 3)
        if decided is not None:
            assert (len(pairs) == a.size * b.size) if decided else not pairs


def test_comparison_with_a_constant_is_exact_small() -> None:
    for relation, a, y in product(ComparisonOperator, SMALL, range(8)):
        kept = {x for x in a if RELATIONS[relation](x, y, 3)}
        refined = refine(relation, a, ValueSet(y, y, 0), 3)
        if refined is not None and relation in (
            ComparisonOperator.EQ,
            ComparisonOperator.ULT,
            ComparisonOperator.ULE,
        ):
            assert set(refined[0]) == kept
        if not kept:
            assert refined is None


@pytest.mark.slow("many random operands")
@settings(max_examples=cases(300), derandomize=True)
@given(st.data(), st.sampled_from(sorted(BINARY)), sets(), sets())
def test_binary(data: st.DataObject, name: str, a: ValueSet, b: ValueSet) -> None:
    abstract, concrete = BINARY[name]
    if name.startswith("shift"):
        b = progression(b.low % 40, b.low % 40 + min(b.high - b.low, 6), 1)
    result = abstract(a, b)
    assert canonical(result)
    x, y = member(data, a), member(data, b)
    assert concrete(x, y, 32) % WORD in result
    if a.exact is not None and b.exact is not None:
        assert result.exact is not None


@pytest.mark.slow("many random operands")
@settings(max_examples=cases(80), derandomize=True)
@given(st.data(), st.sampled_from(sorted(UNARY)), sets())
def test_unary(data: st.DataObject, name: str, a: ValueSet) -> None:
    abstract, concrete = UNARY[name]
    assert concrete(member(data, a), 0, 32) % WORD in abstract(a)


@pytest.mark.slow("many random operands")
@settings(max_examples=cases(120), derandomize=True)
@given(st.data(), sets(), st.sampled_from([8, 16]))
def test_extends_and_pieces(data: st.DataObject, a: ValueSet, width: int) -> None:
    x = member(data, a)
    for low_bit in (0, 8, 16):
        piece = ar.subpiece(a, low_bit, width)
        assert canonical(piece)
        assert (x >> low_bit) % (1 << width) in piece
    low = ar.subpiece(a, 0, width)
    assert signed(x % (1 << width), width) % WORD in ar.sign_extend(low, width)


@pytest.mark.slow("many random operands")
@settings(max_examples=cases(300), derandomize=True)
@given(st.data(), st.sampled_from(ComparisonOperator), sets(), sets())
def test_comparison(
    data: st.DataObject, relation: ComparisonOperator, a: ValueSet, b: ValueSet
) -> None:
    x, y = member(data, a), member(data, b)
    truth = RELATIONS[relation](x, y, 32)
    assert holds(relation, a, b) in (None, truth)
    refined = refine(relation, a, b)
    if truth:
        assert refined is not None
        assert x in refined[0]
        assert y in refined[1]


@pytest.mark.slow("many random operands")
@settings(max_examples=cases(120), derandomize=True)
@given(st.data(), sets(), sets())
def test_meet(data: st.DataObject, a: ValueSet, b: ValueSet) -> None:
    common = meet(a, b)
    x = member(data, a)
    assert (common is not None and x in common) == (x in b)
    if common is not None:
        assert canonical(common)
        assert leq(common, a)
        assert leq(common, b)


@pytest.mark.slow("many random operands")
@settings(max_examples=cases(80), derandomize=True)
@given(sets(), st.lists(sets(), min_size=1, max_size=12), st.lists(st.integers(0, WORD - 1)))
def test_widen_covers_and_ends(a: ValueSet, others: list[ValueSet], limits: list[int]) -> None:
    thresholds = sorted(limits)
    steps = 0
    for other in others * 40:
        wider = widen(a, other, thresholds)
        assert canonical(wider)
        assert leq(a, wider)
        assert leq(other, wider)
        steps += wider != a
        a = wider
    assert steps <= 2 * (len(thresholds) + 1) + 33


def test_widen_stops_at_thresholds() -> None:
    assert widen(ValueSet.of(0), ValueSet(0, 4, 4), [10, 40]) == ValueSet(0, 8, 4)
    assert widen(ValueSet(0, 8, 4), ValueSet(0, 12, 4), [10, 40]) == ValueSet(0, 40, 4)
    assert widen(ValueSet.of(9), ValueSet.of(8), [5]) == ValueSet(5, 9, 1)
    assert widen(ValueSet(0, 40, 4), ValueSet(0, 44, 4), []) == ValueSet(0, WORD - 4, 4)


def test_precision_of_common_idioms() -> None:
    index = ValueSet(0, 5, 1)
    assert ar.shift_left(index, ValueSet.of(2)) == ValueSet(0, 20, 4)
    assert ar.add(ar.shift_left(index, ValueSet.of(2)), ValueSet.of(0x8000)) == ValueSet(
        0x8000, 0x8014, 4
    )
    assert ar.bit_and(ANY, ValueSet.of(0xFF)) == ValueSet(0, 255, 1)
    assert ar.bit_and(ANY, ValueSet.of(0x3F0)) == ValueSet(0, 0x3F0, 0x10)
    assert ar.bit_and(ValueSet(0x8001, 0x8011, 8), ValueSet.of(WORD - 8)) == ValueSet(
        0x8000, 0x8010, 8
    )
    assert ar.add(ValueSet(WORD - 8, WORD - 4, 4), ValueSet.of(4)) == ValueSet(0, WORD - 4, 4)
    assert ar.subpiece(ValueSet.of(0x12345678), 8, 8).exact == 0x56
    assert refine(ComparisonOperator.ULE, ANY, ValueSet.of(7)) == (
        ValueSet(0, 7, 1),
        ValueSet.of(7),
    )
    assert refine(ComparisonOperator.SLT, ANY, ValueSet.of(0)) == (
        ValueSet(WORD >> 1, WORD - 1, 1),
        ValueSet.of(0),
    )
