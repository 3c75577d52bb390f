"""Values at nests of loops whose limits move: all bounds and totals hold in executions."""

from __future__ import annotations

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from tests.testing.harness.cases import in_turn
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

# name: (body of main, whether the total of the inner loop is known)
NESTS = {
    "gap": (
        "for (int gap = 32; gap > 0; gap /= 2) for (int i = gap; i < 64; i++) sink = i;",
        True,
    ),
    "width": (
        "for (int w = 1; w < 32; w *= 2) for (int i = 0; i < 32; i += 2 * w) sink = i;",
        False,
    ),
    "end": (
        "int *p = t, *e = t + 1; for (int i = 0; i < 9; i++) { int *q = t + 2 * i;"
        " while (q != e) { sink = *q; q++; } e = q + 3; }",
        True,
    ),
}


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(NESTS, ("-O1", "-O0", "-Os")))
def test_nests_with_moving_limits(name: str, level: str) -> None:
    """All loops are bounded, and the only execution reaches each bound."""
    body, total = NESTS[name]
    source = f"volatile int sink; int t[64]; int main(void) {{ {body} return 0; }}"
    code = load(build(source, "-fno-unroll-loops", optimise=level))
    bounds = code.bounds(options=BoundOptions(Budget(seconds=20), workers=0))
    seen, totals = code.counts(()), code.totals(())
    for bound in bounds:
        assert bound.bound is not None
        assert seen[code.header(bound)] <= bound.bound <= seen[code.header(bound)] + 1
        assert bound.total is None or totals[code.header(bound)] <= bound.total
    assert any(bound.total is not None for bound in bounds) == total


# The counter of the outer loop is among the words that the inner loop clears in the first rounds:
# from a moving start on, or through a table of their addresses.
CLEARED = """.globl main
main: sub sp, #32; mov r1, #0; str r1, [sp, #4]; mov r6, r0
outer: add r2, sp, r6, lsl #2; add r3, sp, #32; mov r1, #0
inner: str r1, [r2], #4; cmp r2, r3; bne inner
    add r6, #1; ldr r4, [sp, #4]; add r4, #1; str r4, [sp, #4]; cmp r4, #5; blt outer
    add sp, #32; bx lr
"""
LISTED = """.globl main
main: ldr r5, =counter; mov r1, #0; str r1, [r5]; mov r6, r0
outer: ldr r2, =table; ldr r3, =table + 80; add r2, r6, lsl #2; mov r1, #0
inner: ldr r0, [r2], #4; str r1, [r0]; cmp r2, r3; bne inner
    add r6, #1; ldr r4, [r5]; add r4, #1; str r4, [r5]; cmp r4, #5; blt outer
    bx lr
    .section .rodata
table: .rept 15; .word counter; .endr; .rept 6; .word counter + 4; .endr
    .bss
counter: .space 8
"""


@pytest.mark.slow("NuSMV tries each bound for a second")
@pytest.mark.parametrize(
    ("source", "start"),
    [pytest.param(CLEARED, (1 << 32) - 20, id="cleared"), pytest.param(LISTED, 0, id="listed")],
)
def test_places_of_stores_before_the_last_iteration(source: str, start: int) -> None:
    """The only exit says where the pointer is last, and not which words it has passed."""
    code = load(build(source, language="asm"))
    outer, _ = code.bounds(options=BoundOptions(Budget(seconds=1), workers=0))
    seen = code.counts((start,))[code.header(outer)]
    assert seen > 18
    assert outer.bound is None or outer.bound >= seen
