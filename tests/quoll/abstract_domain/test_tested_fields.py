"""A branch on some bits of a word decides these bits of the word."""

from __future__ import annotations

import random

import pytest

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_state import AbstractState, entry_state
from quoll.abstract_domain.compiled import compile_block
from quoll.abstract_domain.terms import known_bits, plain
from quoll.abstract_domain.transfer import run
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.image.image import Image
from quoll.intervals.strided_interval import ValueSet
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted
from tests.testing.values.concretes import environment

# The number of a source, of which the compiler tests the upper bits; then it masks the word.
DISPATCH = """
main: ldr r3, =0x48200000
    ldr r3, [r3, #64]
    {test}
    bne 1f
    {index}
    ldr r2, =table
    ldr r3, [r2, r3, lsl #2]
    cmp r3, #0
    beq 1f
    push {{r4, lr}}
    blx r3
    pop {{r4, pc}}
1:  bx lr
    .type one, %function
one: bx lr
    .type two, %function
two: bx lr
    .ltorg
    .section .rodata
    .type table, %object
    .size table, 32
table: .word 0, one, 0, two, two, 0, one, 0
"""


@pytest.mark.parametrize(
    ("test", "index"),
    [
        ("tst r3, #120", "and r3, r3, #127"),
        ("ands r2, r3, #120", "bic r3, r3, #0xff000000; and r3, #127"),
    ],
)
def test_a_tested_field_bounds_the_index_of_a_table(test: str, index: str) -> None:
    image = assemble(DISPATCH.format(test=test, index=index))
    program = extracted(image)
    assert not program.unresolved
    called = {
        callee
        for block in program.functions[address(image, "main")].blocks
        for callee in block.calls
    }
    assert called == {address(image, "one"), address(image, "two")}


def test_executions_are_covered_on_both_ways() -> None:
    rng = random.Random(51)
    for _ in range(40):
        mask = rng.choice([0x78, 0xF0, 1, 0x80000000, 0xC0, 255])
        other = rng.choice([0x7F, 0xFF, 0xF0, 3])
        tested = rng.choice([0, 0, mask, mask & -mask, 1])
        ways = both_ways(mask, tested, other)
        for _ in range(60):
            word = rng.choice([rng.randrange(1 << 32), rng.randrange(256), mask, 0, tested])
            state = ways[word & mask == tested]
            assert state is not None
            assert word in known_bits(state.fact(0)), (mask, tested, other, hex(word))
            assert word & other in known_bits(state.fact(2)), (mask, tested, other, hex(word))


def test_the_rest_of_a_word_with_known_bits_is_narrow() -> None:
    state = both_ways(0x78, 0, 0x7F)[True]
    assert state is not None
    assert plain(state.fact(2)) == ValueSet(0, 7, 1)
    state = both_ways(0x78, 0x18, 0x7F)[True]
    assert state is not None
    assert plain(state.fact(2)) == ValueSet(0x18, 0x1F, 1)


def both_ways(mask: int, tested: int, other: int) -> dict[bool, AbstractState | None]:
    """The states where r0 & ``mask`` is ``tested``, and where not, with r2 = r0 & ``other``."""
    code = f"main: and r1, r0, #{mask}; cmp r1, #{tested}; beq main; and r2, r0, #{other}; bx lr"
    insns = instructions(assemble(code))
    around = environment()
    branch = run(compile_block(insns[:3]), entry_state(around.names), around, 0)
    leaving = branch.leave.state if branch.leave else None
    return {
        equal: masked(insns[3], state, around)
        for equal, state in ((True, leaving), (False, branch.fall))
    }


def masked(
    insn: Insn, state: AbstractState | None, around: AnalysisEnvironment
) -> AbstractState | None:
    return None if state is None else run(compile_block([insn]), state, around, 1).fall


def instructions(image: Image) -> list[Insn]:
    """The instructions of ``main`` without the return."""
    start = address(image, "main")
    code = image.read(start, 16)
    assert code is not None
    return [decode(code[at : at + 4], start + at, thumb=False) for at in range(0, 16, 4)]
