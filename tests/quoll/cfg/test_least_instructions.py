"""The fewest instructions of calls, worked by hand."""

from __future__ import annotations

import pytest

from quoll.cfg.least_instructions import issued, least_instructions
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble

CODE = """
        .type main, %function
main:   push {{r4, lr}}
{body}
        pop {{r4, pc}}
        .type f, %function
f:      cmp r0, #0
        bxeq lr
        nop
        nop
        bx lr
        .type endless, %function
endless: nop
        b endless
        .type odd, %function
odd:    push {{lr}}
        subs r0, r0, #1
        bleq even
        pop {{pc}}
        .type even, %function
even:   push {{lr}}
        nop
        bl odd
        pop {{pc}}
        .type leave, %function
leave:  nop
gone:   movs pc, lr
"""

# push is an instruction that is no branch; pop into the pc is one.
CASES = {
    "nop": 2,
    "b 1f\n nop\n1: nop": 2,
    "cmp r0, #0\n beq 1f\n nop\n nop\n nop\n1: nop": 3,
    "1: subs r0, r0, #1\n bne 1b": 2,
    "bl f": 2,
    "bl f\n bl f\n nop": 4,
    "cmp r1, #0\n blne f\n nop": 3,
    "bl odd": 3,
    "bl even": 5,
    "cmp r0, #0\n bne 1f\n bl endless\n1: nop\n nop": 4,
    "bl leave\n nop\n nop": 2,
}


@pytest.mark.parametrize("body", CASES)
def test_the_shortest_path(body: str) -> None:
    image = assemble(CODE.format(body=body))
    facts = locate(parse("path must end at gone", "x"), image)
    main = address(image, "main")
    assert least_instructions(extract(image, [main], facts), main) == CASES[body]


def test_a_function_that_never_returns_has_no_least_number() -> None:
    image = assemble(CODE.format(body="b endless"))
    endless = address(image, "endless")
    assert least_instructions(extract(image, [endless]), endless) == 0


def test_branches_and_it_may_be_folded() -> None:
    text = "main: cmp r0, #0\n it eq\n moveq r0, #1\n bx lr\n"
    image = assemble(text, thumb=True, cpu="cortex-a8")
    main = address(image, "main")
    (block,) = extract(image, [main | 1]).functions[main & ~1].blocks
    assert [insn.mnemonic for insn in block.insns] == ["cmp", "it", "mov", "bx"]
    assert issued(block.insns) == 2
