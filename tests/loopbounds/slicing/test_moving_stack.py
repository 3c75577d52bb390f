"""Loops that move sp: a word of the frame is another one in each iteration."""

from __future__ import annotations

from functools import partial

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.counting import Program, load
from tests.testing.quoll.building import build

BACKGROUNDS = (0, 1, 5, 7, 200)  # content of untouched memory
STEPS = 4000  # of an execution: some do not end, and bounds are some hundreds
PATTERN = (3, 0, 9, 1, 4, 77, 2, 250)  # or by word
READS = st.sampled_from(["ldrb r1, [sp]", "ldrb r1, [sp, #4]", "ldrb r1, [sp, #8]"])
WORK = st.lists(
    st.sampled_from(
        [
            "strb r1, [sp]",
            "strb r1, [sp, #4]",
            "sub r1, r1, #1",
            "and r1, r1, #7",
            "ldrb r1, [sp]",
            "cmp r1, #2\n subeq sp, sp, #4",
            "add sp, sp, #4",
            "push {r1}",
        ]
    ),
    min_size=1,
    max_size=5,
)
MOVES = st.sampled_from(["sub sp, sp, #4", "sub sp, sp, #8", "push {r1}", "add sp, sp, #4"])
MOVED = ["ldrb r1, [sp]", "sub r1, r1, #1", "strb r1, [sp]", "sub sp, sp, #4"]
FOLLOWED = ["ldrb r1, [sp]", "sub r1, r1, #1", "push {r1}"]


def program(body: list[str]) -> Program:
    """``body`` until r1 is 0 at its end."""
    lines = "\n ".join(body)
    source = f""".text
.globl main
.type main, %function
main:
 mov r3, sp
 sub sp, sp, #256
 and r1, r0, #15
 str r1, [sp]
 str r1, [sp, #4]
again:
 {lines}
 cmp r1, #0
 bne again
 mov sp, r3
 bx lr
.size main, . - main
"""
    return load(build(source, language="asm"))


def repeated(pattern: tuple[int, ...], addr: int) -> int:
    return pattern[addr // 4 % len(pattern)]


def check(body: list[str]) -> int | None:
    """The bound, which no execution exceeds."""
    code = program(body)
    (bound,) = code.bounds(options=BoundOptions(Budget(seconds=20), workers=1))
    patterns: list[tuple[int, ...]] = [*((n,) for n in BACKGROUNDS), PATTERN]
    for pattern in patterns:
        background = partial(repeated, pattern)
        for argument in (0, 1, 2, 7, 15):
            (count,) = code.counts((argument,), background, STEPS).values()
            assert bound.bound is None or count <= bound.bound, (body, bound)
    return bound.bound


@pytest.mark.slow("NuSMV proves each bound")
def test_a_counter_is_not_followed_to_where_it_is_not() -> None:
    """Each iteration counts another byte down by one."""
    assert check(MOVED) is None


def test_a_counter_that_is_pushed_is_followed() -> None:
    """Each iteration pushes the next value below the last."""
    code = program(FOLLOWED)
    (bound,) = code.bounds()
    assert bound.bound == 256
    counts = [next(iter(code.counts((n,)).values())) for n in range(16)]
    assert max(counts) <= 256


@pytest.mark.slow("many random loop models, with proofs by NuSMV")
@settings(max_examples=cases(5), deadline=None)
@given(READS, WORK, MOVES)
def test_random_bodies(read: str, work: list[str], move: str) -> None:
    """No execution exceeds a bound, for any initial words on the stack."""
    check([read, *work, move])


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("moves", [1, 2])
def test_words_that_come_from_far_below(moves: int) -> None:
    """Memory below sp at the start of the loop holds any word."""
    assert check(["sub sp, sp, #4"] * moves + ["ldrb r1, [sp]"]) is None
