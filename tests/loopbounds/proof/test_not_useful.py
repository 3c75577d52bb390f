"""A bound that only says how large a word can be is none."""

from __future__ import annotations

import pytest

from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.value_analysis.value_results import analyse
from tests.testing.quoll.building import address, build
from tests.testing.quoll.sketch import assemble

pytestmark = pytest.mark.slow("compiles programs and proves the bounds of their loops")

COUNTED = """
volatile unsigned sink, words;
void main(unsigned n) {{ for (unsigned i = 0; i < {limit}; i++) sink = i; }}
"""
CONSTANT = 1 << 21


def bounded(limit: str, facts: str = "") -> LoopBound:
    return only_loop(Image.load(build(COUNTED.format(limit=limit), optimise="-O1")), facts)


def only_loop(image: Image, facts: str = "") -> LoopBound:
    entry = address(image, "main")
    graph = expand(extract(image, [entry]), entry, image)
    options = BoundOptions(Budget(seconds=20), workers=1)
    stated = locate(parse(facts, "test.facts"), image)
    values = analyse(graph, image, regions=stated.regions, starts=True)
    (bound,) = bound_loops(graph, image, values, stated, options)
    return bound


@pytest.mark.parametrize("limit", ["n >> 2", "n / 8"])
def test_a_word_of_any_size_decides_it(limit: str) -> None:
    bound = bounded(limit)
    assert bound.bound is None
    assert "executions per entry, is too loose: nothing bounds " in str(bound.reason)
    assert bound.reason is not None
    assert "r0" in bound.reason.why
    assert "at most N'" in str(bound.reason)
    assert not bound.failed


def test_small_words_bound_it() -> None:
    assert bounded("(n & 0xffff)").bound in (0xFFFF, 0x10000)


def test_a_delay_loop_is_as_long_as_it_is() -> None:
    assert bounded(str(CONSTANT)).bound in (CONSTANT, CONSTANT + 1)


def test_who_means_it_states_it() -> None:
    bound = bounded("n", "loop prog.c:3 at most 4294967296")
    assert bound.bound is not None
    assert bound.bound >= (1 << 32) - 1


STACK = "region stack from 0x100 to 0x100 is cached\nregister r13 at main points into stack\n"


def test_of_a_stack_pointer_it_is_asked_where_the_stack_is() -> None:
    image = assemble("main: mov r3, sp\n lsr r3, r3, #2\n1: subs r3, r3, #1\n bne 1b\n bx lr")
    bound = only_loop(image)
    assert bound.bound is None
    assert bound.reason is not None
    assert "r13" in bound.reason.why
    assert "say where the stack is" in str(bound.reason)
    assert "is at most M" not in str(bound.reason)
    assert only_loop(image, STACK).bound == 0x40


@pytest.mark.parametrize(
    "text",
    [
        "main: mov r1, sp\n ldr sp, [r0]\n1: subs sp, sp, #4\n str r2, [sp]\n bne 1b\n mov sp, r1\n"
        " bx lr",
        "main: push {lr}\n bl f\n pop {pc}\n.type f, %function\nf: mov r3, sp\n lsr r3, r3, #2\n"
        "1: subs r3, r3, #1\n bne 1b\n bx lr",
    ],
)
def test_a_stack_pointer_is_no_count(text: str) -> None:
    bound = only_loop(assemble(text))
    assert bound.bound is None
    assert "is at most M" not in str(bound.reason)
