"""Loops that are bounded in one call of their function, whoever calls it."""

from __future__ import annotations

import pytest

from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.one_call import OneCall
from loopbounds.slicing.stacks import StackSpans
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

CALLING = """
__attribute__((noinline)) unsigned counted(unsigned n) {
    unsigned found = 0;
    for (unsigned i = 0; i < (n & 15); i++) __asm__ volatile("" : "+r"(found));
    return found;
}
int main(unsigned a, unsigned b) {
    unsigned found = 0;
    for (unsigned i = 0; i < (a & 7); i++) found += counted(i + b) + counted(i - b);
    return found;
}
"""

STORING = """.global main
main: push {{r4, lr}}
  sub sp, sp, #8
  str r1, [sp]
  mov r1, r2
  {handed}
  bl f
  add sp, sp, #8
  pop {{r4, pc}}
f: ldr r2, [sp]
  cmp r2, #10
  bxhi lr
  mov r3, #0
count: ldr r2, [sp]
  cmp r3, r2
  bxhs lr
  str r1, [r0]
  add r3, r3, #1
  b count
"""


@pytest.mark.parametrize("handed", ["mov r0, sp", "add r0, sp, r3"])
@pytest.mark.slow("NuSMV proves each bound")
def test_a_store_through_what_a_caller_hands_over(handed: str) -> None:
    """It may be the address of an argument on the stack, which the loop reads again."""
    code = load(build(STORING.format(handed=handed), language="asm"))
    assert [b.bound for b in code.bounds()] == [None]


def test_calls_of_one_shape() -> None:
    """Contexts of a function share one query; a loop in no call has none."""
    program = load(build(CALLING), "main")
    code = GraphCode(
        program.graph,
        AcyclicGraph.of(program.graph),
        program.image,
        program.values,
        StackSpans.of((n.block for n in program.graph.nodes), program.image),
    )
    calls = [OneCall.around(code, loop.index) for loop in program.graph.loops]
    assert calls[0] is None
    first, second = calls[1:]
    assert first is not None
    assert second is not None
    assert first.shape == second.shape
    assert first.part.loops != second.part.loops
    code.bounds[2] = 15
    bounded = OneCall.around(code, 2)
    assert bounded is not None
    assert bounded.shape != first.shape
