"""Loops that are bounded in one call of their function, whoever calls it."""

from __future__ import annotations

import pytest

from loopbounds.reduction.simplify import simplified
from loopbounds.sampling.runs import explore, longest
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import GraphCode, LoopContinuation
from loopbounds.slicing.gated_ssa import GatedSsa
from loopbounds.slicing.one_call import OneCall
from loopbounds.slicing.slice import slice_loops
from loopbounds.slicing.stacks import StackSpans
from quoll.assumptions import S7, Assumption
from tests.testing.loopbounds.counting import Program, load
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

AFTER = """.global main
main: push {r4, lr}
  bl f
  pop {r4, pc}
f: mov r3, #0
1: add r3, r3, #1
  cmp r3, r0
  bne 1b
2: subs r3, r3, #1
  bne 2b
  bx lr
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
TABLE = """.global main
main: push {r4, lr}
  ands r0, r0, #7
  beq 1f
  bl f
1: pop {r4, pc}
f: and r0, r0, #7
  adr r2, words
  ldrb r3, [r2, r0]
1: subs r3, r3, #1
  bne 1b
  bx lr
words: .byte 1, 2, 4, 4, 6, 6, 9, 9
"""
LONGEST = 9


@pytest.mark.parametrize("handed", ["mov r0, sp", "add r0, sp, r3"])
@pytest.mark.slow("NuSMV proves each bound")
def test_a_store_through_what_a_caller_hands_over(handed: str) -> None:
    """It may be the address of an argument on the stack, which the loop reads again."""
    code = load(build(STORING.format(handed=handed), language="asm"))
    assert [b.bound for b in code.bounds()] == [None]


def code_of(program: Program) -> GraphCode:
    return GraphCode(
        program.graph,
        AcyclicGraph.of(program.graph),
        program.image,
        program.values,
        StackSpans.of((n.block for n in program.graph.nodes), program.image),
    )


@pytest.mark.parametrize("assumed", [frozenset({S7.of()}), frozenset()])
def test_the_bound_of_another_loop_passes_its_assumptions_on(
    assumed: frozenset[Assumption],
) -> None:
    """Also in one call, and also if nothing else is known of the other loop."""
    code = code_of(load(build(AFTER, language="asm")))
    shapes = [call.shape for call in [OneCall.around(code, 1)] if call is not None]
    code.bounds[0], code.continued[0] = 9, LoopContinuation((), {}, assumed)
    call = OneCall.around(code, 1)
    assert call is not None
    assert call.shape not in shapes
    for one, loop in ((code, 1), (call.code(), call.loop)):
        cut = slice_loops(GatedSsa(one), [loop])[loop]
        assert cut.assumed >= assumed
        assert S7.of() not in cut.assumed - assumed


def test_any_caller_reads_the_constant_table() -> None:
    """As the division of libgcc, which counts leading zeros by a table; index 0 belongs to it."""
    code = code_of(load(build(TABLE, language="asm")))
    call = OneCall.around(code, 0)
    assert call is not None
    cut = slice_loops(GatedSsa(call.code()), [call.loop])[call.loop]
    assert longest(explore(simplified(cut.model))) == LONGEST


def test_calls_of_one_shape() -> None:
    """Contexts of a function share one query; a loop in no call has none."""
    program = load(build(CALLING), "main")
    code = code_of(program)
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
