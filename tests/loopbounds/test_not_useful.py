"""A bound that only says how large a word can be is none."""

from __future__ import annotations

import pytest

from loopbounds.bounds import BoundOptions, bound_loops
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.prove import Budget
from quoll.extraction.extract import extract
from quoll.facts import parse
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.values.values import analyse
from tests.testing.quoll.building import address, build

COUNTED = """
volatile unsigned sink, words;
void main(unsigned n) {{ for (unsigned i = 0; i < {limit}; i++) sink = i; }}
"""
CONSTANT = 1 << 21


def bounded(limit: str, facts: str = "") -> LoopBound:
    image = Image.load(build(COUNTED.format(limit=limit), optimise="-O1"))
    entry = address(image, "main")
    graph = expand(extract(image, [entry]), entry, image)
    options = BoundOptions(Budget(seconds=20), workers=1)
    stated = parse(facts, "test.facts")
    (bound,) = bound_loops(graph, image, analyse(graph, image), stated, options)
    return bound


@pytest.mark.parametrize("limit", ["n >> 2", "n / 8"])
def test_a_word_of_any_size_decides_it(limit: str) -> None:
    bound = bounded(limit)
    assert bound.bound is None
    assert "times at most is proved, and not usefully bounded: nothing bounds " in bound.reason
    assert "r0" in bound.why
    assert "at most N'" in bound.reason
    assert not bound.failed


def test_small_words_bound_it() -> None:
    assert bounded("(n & 0xffff)").bound in (0xFFFF, 0x10000)


def test_a_delay_loop_is_as_long_as_it_is() -> None:
    assert bounded(str(CONSTANT)).bound in (CONSTANT, CONSTANT + 1)


def test_who_means_it_states_it() -> None:
    bound = bounded("n", "loop prog.c:3 at most 4294967296")
    assert bound.bound is not None
    assert bound.bound >= (1 << 32) - 1
