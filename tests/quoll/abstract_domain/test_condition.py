"""Comparisons of words: what remains of an unknown word that is not a constant."""

from __future__ import annotations

import pytest

from quoll.abstract_domain.condition import (
    TermComparison,
    assume,
    decide,
)
from quoll.abstract_domain.terms import MASK, RIGID, describe, plus, union
from quoll.intervals.interval_comparison import ComparisonOperator
from quoll.intervals.strided_interval import ValueSet

WORD = RIGID << 32
EQ, NE = ComparisonOperator.EQ, ComparisonOperator.NE


@pytest.mark.parametrize("excluded", [0, 1, 255, 1 << 31, MASK - 1, MASK])
@pytest.mark.parametrize("offset", [0, 1, 255, MASK])
def test_an_unknown_word_is_any_but_one(excluded: int, offset: int) -> None:
    facts = assume(TermComparison(NE, plus(WORD, offset), excluded), {}, {})
    assert facts is not None
    for word in {0, 1, 254, 255, 256, 1 << 31, MASK - 1, MASK}:
        same = decide(TermComparison(EQ, plus(WORD, offset), word), facts, {})
        assert same is (False if word == excluded else None), hex(word)
    assert assume(TermComparison(EQ, plus(WORD, offset), excluded), facts, {}) is None


def test_a_known_word_joins_without_the_excluded_one() -> None:
    """The word of a register is 0 to 63, or a remembered word that is not 255."""
    facts = assume(TermComparison(NE, WORD, 255), {}, {})
    assert facts is not None
    both = {RIGID: union(describe(WORD, facts), ValueSet(0, 63, 1))}
    assert decide(TermComparison(EQ, WORD, 255), both, {}) is False
    assert decide(TermComparison(EQ, WORD, 63), both, {}) is None
