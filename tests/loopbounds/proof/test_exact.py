"""Bounds that are called exact: some execution reaches them, for any code before the loop."""

from __future__ import annotations

from functools import partial

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build


def at_words(word: int, addr: int) -> int:
    """Memory in which every aligned word's first byte is ``word``, and all others are 0."""
    return 0 if addr % 4 else word


COUNT = "count: subs r0, r0, #1\n  bpl count\nout: bx lr\n"
ODD = "even: add r1, r1, #2\n  tst r1, #1\n  bne even\n"
WAYS = {  # to the loop, and the bound if it is exact
    "a chain of conditions, the last one first": (
        "and r0, r0, #15; cmp r0, r1; bhi out; cmp r1, r2; bhi out; cmp r2, r3; bhi out; "
        "cmp r3, #5; bhi out",
        None,
    ),
    "conditions about other words": (
        "and r0, r0, #15; cmp r2, r3; bhi out; cmp r3, #5; bhi out",
        16,
    ),
    "a condition far away": (
        "and r0, r0, #15; cmp r0, #5; bhi out; " + "cmp r1, #9; beq out; " * 70,
        6,
    ),
    "a loop that may not end": (f"and r0, r0, #15; mov r1, r0\n{ODD}", None),
    "a loop that may not end, of no influence": (f"mov r1, r0\n{ODD}  mov r0, #7", 8),
    "a word from memory": ("ldr r0, [r1]; and r0, r0, #15", 16),
    "a word that was looked at before": (
        "ldr r0, [r1]; cmp r0, #5; bhi out; ldr r0, [r1]; and r0, r0, #15",
        None,
    ),
    "twice the same word": (
        "ldr r0, [r1]; ldr r2, [r1]; and r0, r0, #15; and r2, r2, #15; sub r0, r0, r2",
        None,
    ),
    "a word that was written before": (
        "mov r2, #3; str r2, [r1]; ldr r0, [r1]; and r0, r0, #15",
        None,
    ),
}
ARGUMENTS = [
    (r0, r1, r2, r3) for r0 in (0, 3, 5, 15) for r1 in (4, 100) for r2 in (5, 64) for r3 in (5, 9)
]


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("way", WAYS)
def test_what_is_called_exact_some_execution_reaches(way: str) -> None:
    body, exact = WAYS[way]
    code = load(build(f".global main\nmain: {body}\n{COUNT}", language="asm"))
    bounds = code.bounds(options=BoundOptions(Budget(seconds=20), workers=1))
    bound = max(bounds, key=code.header)
    counts = [
        code.counts(arguments, partial(at_words, word))
        for arguments in ARGUMENTS
        for word in (0, 3, 15)
    ]
    most = max(count[code.header(bound)] for count in counts)
    assert bound.bound is not None
    assert most <= bound.bound
    assert bound.exact == (None if exact is None else True)
    assert not bound.exact or most == bound.bound == exact
