"""A graph whose first block begins a loop: later code finds the last iteration's values."""

from __future__ import annotations

import pytest

from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.facts.located import NO_FACTS
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

AGAIN = """.global main
main: subs r2, r2, #1
  bmi out
  BODY
  b main
out: LIMIT
count: cmp r4, #0
  beq done
  sub r4, r4, #1
  b count
done: bx lr
"""
ON_STACK = "mov r3, #5; str r3, [sp]; str r0, [r1]; ldr r4, [sp]"
ARGUMENTS = [(r0, 0x0100_0000, n) for r0 in (0, 3, 7, 40) for n in (0, 1, 2, 9)]


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    ("body", "limit", "bound"),
    [
        ("add r1, sp, #0", ON_STACK, None),  # r1 is a stack address, but not at the entry
        ("add r3, sp, #0; str r3, [sp, #8]", f"ldr r1, [sp, #8]; {ON_STACK}", None),
        ("add r1, r1, #4", ON_STACK, 6),  # S1 speaks of the caller's pointer (rule 1)
        ("add r0, r0, #1", "and r4, r0, #15", 16),
        ("mov r0, #64", "cmp r0, #20; movhi r0, #20; mov r4, r0", 21),
        ("str r0, [sp]", "ldr r4, [sp]; and r4, r4, #7", 8),
        ("push {r0}", "ldr r4, [sp]; and r4, r4, #7", 8),
    ],
)
def test_a_loop_behind_one_at_the_entry(body: str, limit: str, bound: int | None) -> None:
    """No execution exceeds a bound, and some execution reaches each exact bound."""
    text = AGAIN.replace("BODY", body).replace("LIMIT", limit)
    code = load(build(text, language="asm"))
    options = BoundOptions(Budget(seconds=3), workers=1)
    only = frozenset({1})
    _, found = bound_loops(code.graph, code.image, None, NO_FACTS, options, only=only)
    most = max(code.counts(a)[code.header(found)] for a in ARGUMENTS)
    assert found.bound == bound
    assert bound is None or most <= bound
    assert not found.exact or most == bound
