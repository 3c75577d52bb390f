"""Invariants as terms mean the same as the predicates on concrete words."""

from __future__ import annotations

from random import Random

import pytest

from loopbounds.slicing.stated_words import about, invariant_term
from loopbounds.terms.bit_vectors import TRUE, const, eq, sym
from loopbounds.terms.evaluate import compile_terms
from quoll.facts.predicate import MemoryWord
from tests.testing.harness.cases import cases
from tests.testing.quoll.predicates import PLACES, located, random_predicate


@pytest.mark.parametrize("seed", range(cases(30)))
def test_a_term_is_true_exactly_if_the_predicate_holds(seed: int) -> None:
    random = Random(seed)
    one = located(random_predicate(random))
    words = {word: sym(f"{word.place}_{word.size}", 8 * word.size)
             for word in one.fact.predicate.words}  # fmt: skip
    order = list(dict.fromkeys(words.values()))
    decide = compile_terms([invariant_term(one, words.__getitem__)], order)
    for _ in range(40):
        content = {place: random.choice((0, 1, 7, 8, 255, 256, random.getrandbits(32), 0xFFFFFFFF))
                   for place in PLACES}  # fmt: skip

        def read(word: MemoryWord, content: dict[str, int] = content) -> int:
            return content[word.place] & (1 << 8 * word.size) - 1

        known = {symbol: read(word) for word, symbol in words.items()}
        assert decide([known[s] for s in order])[0] == one.fact.predicate.holds(read), str(one)


def test_invariants_of_related_words_belong_together() -> None:
    a, b, c, d = (sym(name, 32) for name in "abcd")
    first, second, third = eq(a, b), eq(b, c), eq(d, const(1, 32))
    assert about({a}, [second, third, first, TRUE]) == [first, second]
    assert about({d}, [first, second, third]) == [third]
