"""Lines with and without numbers: aging, staying, and lines found between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.lines import ANY_SET, NO_LINES, AccessedLines, CacheLines, CacheLinesBuilder

SYMBOL = 2000
OTHER = 2001
WAY = 128 * 32


def builder(capacity: int = 1) -> CacheLinesBuilder:
    return CacheLinesBuilder(NO_LINES, 32, 128, capacity)


def bytes_from(symbol: int, *spans: tuple[int, int], sets: int = ANY_SET) -> AccessedLines:
    return AccessedLines(None, symbol, spans, sets)


@pytest.mark.parametrize(
    ("known", "asked", "there"),
    [
        ([(0, 4)], (0, 4), True),
        ([(0, 4)], (4, 8), False),  # the line may end in between
        ([(0, 4), (32, 36)], (16, 20), True),  # one of two lines that touch
        ([(0, 4), (34, 36)], (16, 20), True),  # bytes 3 and 34: 31 apart
        ([(0, 4), (36, 40)], (16, 20), False),  # 33 apart: there may be a line in between
        ([(0, 32)], (8, 16), True),
        ([(0, 16), (16, 32)], (8, 24), True),
        ([(0, 4), (8, 12)], (8, 16), False),
        ([(-4, 0)], (-4, 0), True),
    ],
)
def test_bytes_between(known: list[tuple[int, int]], asked: tuple[int, int], there: bool) -> None:
    lines = builder()
    for span in known:
        lines.add(bytes_from(SYMBOL, span))
    assert (lines.age(bytes_from(SYMBOL, asked)) is not None) is there
    assert lines.age(bytes_from(OTHER, asked)) is None


@pytest.mark.parametrize(
    ("access", "stays"),
    [
        (AccessedLines((7,)), False),
        (AccessedLines((7, 8, 9)), False),
        (AccessedLines(None), False),
        (bytes_from(OTHER, (0, 4)), False),
        (bytes_from(SYMBOL, (64, 68)), True),  # another line of another set
        (bytes_from(SYMBOL, (WAY - 96, WAY - 92)), True),
        (bytes_from(SYMBOL, (WAY - 28, WAY - 24)), False),
        (bytes_from(SYMBOL, (WAY, WAY + 4)), False),
    ],
)
def test_what_may_evict_bytes_from_a_symbol(access: AccessedLines, stays: bool) -> None:
    lines = builder()
    lines.add(bytes_from(SYMBOL, (0, 4)))
    lines.make_older(access, 1)
    assert (lines.age(bytes_from(SYMBOL, (0, 4))) is not None) is stays


EVEN = sum(1 << n for n in range(0, 128, 2))


@pytest.mark.parametrize(
    ("access", "stays"),
    [
        (AccessedLines((7,), sets=1 << 7), True),
        (AccessedLines((6,), sets=1 << 6), False),
        (AccessedLines((6, 7), sets=3 << 6), False),
        (AccessedLines(None, sets=EVEN << 1), True),
        (AccessedLines(None, sets=EVEN), False),
        (AccessedLines(None), False),
        (bytes_from(OTHER, (0, 4), sets=EVEN << 1), True),
        (bytes_from(OTHER, (0, 4), sets=EVEN), False),
    ],
)
def test_only_what_may_be_in_its_set_evicts_bytes_from_a_symbol(
    access: AccessedLines, *, stays: bool
) -> None:
    lines = builder()
    lines.add(bytes_from(SYMBOL, (0, 4), sets=EVEN))
    lines.add(AccessedLines((6,), sets=1 << 6))
    lines.make_older(access, 1)
    assert (lines.age(bytes_from(SYMBOL, (0, 4))) is not None) is stays
    assert (lines.age(AccessedLines((6,))) is not None) is (stays or 6 in (access.lines or ()))


def test_what_is_known_of_the_set_of_a_line_adds_up_and_is_lost_where_paths_meet() -> None:
    a, b = builder(), builder()
    a.add(bytes_from(SYMBOL, (0, 4), sets=0b1100))
    a.add(bytes_from(SYMBOL, (0, 8), sets=0b0110))
    assert a.build().symbols == {SYMBOL: ((0, 8, 0, 0b0100),)}
    b.add(bytes_from(SYMBOL, (0, 8), sets=0b0010))
    assert a.build().join(b.build()).symbols == {SYMBOL: ((0, 8, 0, 0b0110),)}


def test_ages_by_set() -> None:
    lines = builder(2)
    lines.add(AccessedLines((5,)))
    lines.add(AccessedLines((6,)))
    lines.make_older(AccessedLines((5 + 128,)), 2)
    assert [lines.age(AccessedLines((n,))) for n in (5, 6)] == [1, 0]
    lines.make_older(AccessedLines((5 + 128,)), 1)  # was younger itself: nothing moves
    assert lines.age(AccessedLines((5,))) == 1
    lines.make_older(AccessedLines((5, 6)), 2)  # either: each stays as old as it was
    assert [lines.age(AccessedLines((n,))) for n in (5, 6)] == [1, 0]
    lines.make_older(AccessedLines(None), 2)
    assert [lines.age(AccessedLines((n,))) for n in (5, 6)] == [None, 1]


def test_joins_keep_what_both_know_at_the_higher_age() -> None:
    a, b = builder(4), builder(4)
    for lines in (a, b):
        lines.add(AccessedLines((5,)))
        lines.add(bytes_from(SYMBOL, (0, 8)))
    b.make_older(AccessedLines(None), 4)
    b.add(AccessedLines((6,)))
    b.add(bytes_from(SYMBOL, (4, 12)))
    joined = a.build().join(b.build())
    assert joined.sets == {5: ((5, 1),)}
    assert joined.symbols == {SYMBOL: ((0, 8, 0, ANY_SET),)}
    assert joined == b.build().join(a.build())


def test_symbols_change_along_edges() -> None:
    lines = builder()
    lines.add(bytes_from(SYMBOL, (8, 12)))
    after = lines.build().renamed({OTHER: SYMBOL << 32 | 4})
    assert after.symbols == {OTHER: ((4, 8, 0, ANY_SET),)}
    back = after.renamed({SYMBOL: OTHER << 32 | (-4 & 0xFFFFFFFF)})
    assert back == lines.build()
    assert lines.build().renamed({}).symbols == {}


TARGETS = st.one_of(
    st.builds(lambda n: AccessedLines((n,)), st.sampled_from([7, 8, 7 + 128, 7 + 256])),
    st.builds(
        lambda symbol, low, size, sets: bytes_from(symbol, (low, low + size), sets=sets),
        st.sampled_from([SYMBOL, OTHER]),
        st.sampled_from([-4, 0, 28, WAY]),
        st.sampled_from([4, 8]),
        st.sampled_from([ANY_SET, EVEN, 3 << 7]),
    ),
)


@st.composite
def some_lines(draw: st.DrawFn) -> CacheLines:
    lines = builder(capacity=3)
    for target in draw(st.lists(TARGETS, max_size=6)):
        lines.make_older(target, draw(st.integers(1, 3)))
        if draw(st.booleans()):
            lines.add(target)
    return lines.build()


@given(some_lines(), some_lines())
def test_what_covers_what_is_told_as_by_joining(a: CacheLines, b: CacheLines) -> None:
    assert a.covered_by(b) is (a.join(b) == b)
    assert a.covered_by(a.join(b))
    assert b.covered_by(a.join(b))


def test_what_was_built_does_not_change_any_more() -> None:
    lines = builder()
    lines.add(AccessedLines((7,)))
    before = lines.build()
    assert lines.build() == before
    lines.add(AccessedLines((8,)))
    lines.make_older(AccessedLines((7 + 128,)), 1)
    assert before == CacheLines({7: ((7, 0),)}, {})
    assert lines.build() == CacheLines({8: ((8, 0),)}, {})
