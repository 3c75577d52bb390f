"""The return stack covers each one that executed calls and returns may leave."""

from __future__ import annotations

from random import Random

import pytest

from pipeline.return_stack_simulator import SimulatedReturnStack
from quoll.arm.return_stack import (
    EMPTY,
    UNKNOWN_RETURNS,
    ReturnAddress,
    ReturnStack,
    is_call,
    may_return,
    surely_returns,
)
from tests.testing.cache.graphs import at, pool
from tests.testing.harness.cases import cases

CALL, CALL_BY_REGISTER, MAYBE_CALL, BACK = pool("bl .\nblx r3\nbleq .\nbx lr\n")
CASES = cases(300)


@pytest.mark.parametrize(
    ("text", "may", "surely"),
    [
        ("bx lr", True, True),
        ("pop {r4, pc}", True, True),
        ("ldr pc, [sp], #4", True, True),
        ("ldm sp, {r4, pc}", True, False),  # sp stays as it was
        ("mov pc, lr", True, False),  # the manual does not name it
        ("bxeq lr", False, False),
        ("popne {r4, pc}", False, False),
        ("bx r3", False, False),
        ("ldr pc, [r4]", False, False),
        ("ldm sp!, {r4, pc}^", False, False),  # returns from an exception
        ("bl .", False, False),
        ("add r0, r1, r2", False, False),
    ],
)
def test_the_forms_of_a_return(text: str, may: bool, surely: bool) -> None:
    (insn,) = pool(f"{text}\n")
    assert (may_return(insn), surely_returns(insn)) == (may, surely)


def addresses(*places: int) -> ReturnStack:
    entries = [frozenset((ReturnAddress(at, thumb=False),)) for at in places]
    return ReturnStack((*entries, *([None] * (3 - len(entries)))))


def test_three_calls_are_remembered() -> None:
    stack = UNKNOWN_RETURNS
    for place in (100, 200, 300, 400):
        stack = stack.after(at(CALL, place))
    assert stack == addresses(404, 304, 204)
    for expected in (404, 304, 204):
        assert stack.only() == ReturnAddress(expected, thumb=False)
        stack = stack.after(BACK)
    assert stack.only() is None  # empty, or the first of them again
    assert stack.top == frozenset((ReturnAddress(404, thumb=False), EMPTY))


def test_nothing_is_known_of_entries_of_the_interrupted_program() -> None:
    stack = UNKNOWN_RETURNS.after(at(CALL, 100))
    assert stack == addresses(104)
    assert stack.after(BACK) == ReturnStack((None, None, stack.top and stack.top | {EMPTY}))
    assert UNKNOWN_RETURNS.after(BACK) == UNKNOWN_RETURNS


def test_a_call_that_is_not_executed_pushes_only_on_a_wrong_path() -> None:
    call, stack = at(MAYBE_CALL, 200), addresses(100)
    assert stack.after(call) == addresses(204, 100)
    assert stack.after(call, taken=False) == stack
    either = stack.on_wrong_path(call)
    assert either.top == frozenset(ReturnAddress(place, thumb=False) for place in (100, 204))
    assert either.only() is None


def test_it_covers_what_is_simulated() -> None:
    """Random sequences: the top entry is always one of those that are known, or nothing is."""
    predicted = known = 0
    for seed in range(CASES):
        random = Random(seed)
        real = SimulatedReturnStack(random, [ReturnAddress(4, thumb=False)])
        stack = UNKNOWN_RETURNS
        for place in range(0, 240, 8):
            insn = at(random.choice([CALL, CALL, CALL_BY_REGISTER, MAYBE_CALL, BACK, BACK]), place)
            if may_return(insn):
                top = real.pop()
                if stack.top is not None:
                    assert (top or EMPTY) in stack.top, f"seed {seed}, at {place}"
                    known += 1
                predicted += top is not None
            taken = not insn.conditional or random.random() < 0.5
            if is_call(insn) and taken:
                real.push(ReturnAddress(insn.next, insn.thumb))
            stack = stack.after(insn, taken=taken)
    assert known > CASES
    assert predicted > CASES
