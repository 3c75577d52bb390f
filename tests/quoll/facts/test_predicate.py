"""Predicates over words of memory: their text, their meaning, and the ranges that follow."""

from __future__ import annotations

from random import Random

import pytest

from quoll.errors import FactsError
from quoll.facts.predicate import MemoryWord, Predicate
from quoll.intervals.strided_interval import progression
from tests.testing.harness.cases import cases
from tests.testing.quoll.predicates import PLACES, located, random_predicate


def holds(text: str, **words: int) -> bool:
    def read(word: MemoryWord) -> int:
        return words[word.place] & (1 << 8 * word.size) - 1

    return located(text).fact.predicate.holds(read)


def test_words_are_unsigned_unless_signed_is_said() -> None:
    assert holds("a > 7", a=0xFFFFFFFF)
    assert not holds("signed a > 7", a=0xFFFFFFFF)
    assert holds("signed byte a = -1", a=0x1FF)
    assert holds("byte a = 255", a=0x1FF)
    assert holds("signed half a < 0", a=0x8000)
    assert holds("a = -1", a=0xFFFFFFFF)


def test_and_binds_tighter_than_or() -> None:
    text = "a = 1 or a = 2 and b = 3"
    assert holds(text, a=1, b=0)
    assert holds(text, a=2, b=3)
    assert not holds(text, a=2, b=0)


def test_sums_and_masks() -> None:
    assert holds("a + b + 1 = 0", a=0xFFFFFFFE, b=1)
    assert holds("a & 0xf0 = 0x10", a=0xA1F)
    assert holds("7 >= a + b", a=3, b=4)


@pytest.mark.parametrize(
    "text",
    ["a", "a <", "<= 3", "3 <= 4", "a <= 3 and", "a <= 3 b = 4", "a & b = 0", "byte a & 0x100 = 1",
     "a & 0 = 0", "a <= 0x100000000", "(a = 1)", "+4 = 1", "a ~ 3", "a = 1 or or b = 2"],
)  # fmt: skip
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(FactsError):
        located(text)


@pytest.mark.parametrize("seed", range(cases(40)))
def test_ranges_cover_the_words_of_every_memory_with_the_predicate(seed: int) -> None:
    random = Random(seed)
    one = located(random_predicate(random))
    predicate: Predicate = one.fact.predicate
    again = located(str(predicate)).fact.predicate
    assert again == predicate
    ranges = one.ranges()
    for _ in range(60):
        bytes_ = {
            at + i: random.choice((0, 1, 7, 8, 255, random.randrange(256)))
            for at in PLACES.values()
            for i in range(4)
        }

        def read(word: MemoryWord, content: dict[int, int] = bytes_) -> int:
            at = PLACES[word.place]
            return sum(content[at + i] << 8 * i for i in range(word.size))

        if predicate.holds(read):
            for (address, size), known in ranges.items():
                value = sum(bytes_[address + i] << 8 * i for i in range(size))
                assert known is not None, predicate
                assert value in known, (str(predicate), value, known)


def test_ranges_of_one_word_meet() -> None:
    assert str(located("a+4 <= 7").ranges()[PLACES["a+4"], 4]) == str(progression(0, 7, 1))
    assert located("a <= 7 and a > 7").ranges() == {(PLACES["a"], 4): None}
    assert located("a & 0x3 = 0 and a < 9").ranges()[PLACES["a"], 4] is not None
