"""A bound that one call proves for others holds where these leave other remainders, or none."""

from __future__ import annotations

import pytest

from loopbounds.budgets import table
from quoll.errors import UnboundedLoop
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, bound, check

# f counts down from a - (a * m >> 35) * d. By m and d, which the callers choose, that is a % 10, or
# a. The store hits any word, so that no execution is followed.
CALLED = """
.syntax unified
.global main
main: push {{r4, r5, r6, lr}}
  str r7, [r6]
{calls}
  pop {{r4, r5, r6, pc}}
f: umull r3, r2, r1, r0
  lsr r2, r2, #3
  mul r2, r5, r2
  sub r0, r0, r2
  cmp r0, #0
  bxeq lr
1: subs r0, r0, #1
  bne 1b
  bx lr
  .ltorg
.bss
.balign 4
data: .space 16
"""
CALL = """
  ldr r0, =data
  ldrb r0, [r0, #{place}]
  ldr r1, ={factor}
  mov r5, #{divisor}
  bl f
"""
FACTORS = {10: 0xCCCCCCCD, 1: 1}
LARGEST = {10: 9, 1: 255}


@pytest.mark.slow("a whole analysis, executed and replayed")
@pytest.mark.parametrize("divisors", [(10, 10, 10, 1), (1, 10, 10, 10)])
def test_each_call_has_its_own_remainder(divisors: tuple[int, ...]) -> None:
    calls = "".join(
        CALL.format(place=place, factor=FACTORS[divisor], divisor=divisor)
        for place, divisor in enumerate(divisors)
    )
    result = bound(build(CALLED.format(calls=calls), language="asm", link=(CODE,)))
    found = sorted(one.bound or 0 for one in result.entries["main"].bounds)
    assert found == sorted(LARGEST[divisor] for divisor in divisors)
    for case in check(result, 5, inputs=8, states=1):
        assert case.charged <= case.bound


# f counts down from a & 15, g from any word. In a call of f the argument is so large a term that
# their loops have one model; the proof for any caller of f knows the 4 bits.
ALIKE = """
.syntax unified
.global main
main: push {r4, r5, r6, lr}
  str r7, [r6]
  ldr r4, =data
.irp place, 0, 4, 8, 12
  ldr r1, [r4, #\\place]
  ldr r0, [r4, #32]
.rept 3
  and r0, r0, r1, lsr #1
  eor r0, r1, r0, lsl #1
.endr
  bl f
.endr
  ldr r0, [r4, #64]
  bl g
  pop {r4, r5, r6, pc}
  .ltorg
f: bic r2, r0, #15
  sub r0, r0, r2
  cmp r0, #0
  bxeq lr
1: subs r0, r0, #1
  bne 1b
  bx lr
g: cmp r0, #0
  bxeq lr
2: subs r0, r0, #1
  bne 2b
  bx lr
.bss
.balign 4
data: .space 128
"""


@pytest.mark.slow("searches for a bound that there is not")
@pytest.mark.parametrize("terms", [13, 14, 15])
def test_a_proof_for_any_caller_is_of_its_function(
    terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "LARGE_VALUE", terms)
    with pytest.raises(UnboundedLoop, match=r"1 loop has no bound: .*<g"):
        bound(build(ALIKE, language="asm", link=(CODE,)))
