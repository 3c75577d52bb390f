"""Recorded executions refute facts about memory."""

from __future__ import annotations

import numpy as np

from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.recordings.observations import observations
from quoll.recordings.trace import End, Execution
from tests.testing.quoll.building import build

PROGRAM = """
    .text
    .global main
    .type main, %function
main:
    ldr r1, [r0, #8]
    ldrne r2, [r3, r1]
    cmp r1, #0
    addeq r4, r4, #0
    ldr r5, [r4], #4
    ldr r6, [r0, #12]
    ldr r7, =cell
    ldr r8, [r7]
    ldr r9, [r7]
    ldr r10, [r8]
    ldr r11, [r9, #4]
    bx lr
    .ltorg
    .data
cell:
    .word 5
"""
POOL = "region pool from 0x80000010 to 0x8000FFFF is cached\n"


def execution(addresses: list[int], accesses: list[tuple[int, int, bool]]) -> Execution:
    words = np.array([(i, a, 4 | s << 8) for i, a, s in accesses], np.uint32).reshape(-1, 3)
    pcs = memoryview(np.array(addresses, np.uint32).tobytes()).cast("I")
    return Execution(pcs, words, End.OUTSIDE)


def test_executions_refute_facts() -> None:
    loaded = Image.load(build(PROGRAM, language="asm"))
    main = loaded.symbol("main")
    assert main is not None
    facts = POOL + (
        "register r0 at main points into pool aligned 64\n"
        "access at main+4 points into pool\n"
        "register r4 at main+0x10 points into pool\n"
        "region fixed from 0x9000 to 0x9FFF is read-only\n"
    )
    regions = locate(parse(facts, "a.facts"), loaded).regions
    pcs = [main.addr, main.addr + 4, main.addr + 0x10, main.addr + 0x14]

    def refuted(*accesses: tuple[int, int, bool]) -> list[tuple[int, str]]:
        found = observations(regions, loaded, execution(pcs, list(accesses)))
        return [(seen.position, str(seen.fact)) for seen in found if not seen.holds]

    fine = [(0, 0x80000048, False), (1, 0x80000010, False), (2, 0x80000010, False)]
    assert refuted(*fine) == []
    assert refuted((0, 0x80000050, False)) == [
        (0, "register r0 at main points into pool aligned 64")
    ]
    assert refuted((1, 0x8000000C, False)) == [(1, "access at main+4 points into pool")]
    assert refuted((2, 0x8000000C, False)) == [(2, "register r4 at main+0x10 points into pool")]
    assert refuted((3, 0x9000, False)) == []
    elsewhere = locate(
        parse(POOL + "accesses of unknown address point into pool", "a.facts"), loaded
    ).regions
    for at, refutes in ((0x80000010, 0), (0x8000FFFC, 0), (0x8000FFFD, 1), (0x8000000F, 1)):
        ran = execution(pcs, [(3, at, False)])
        (seen,) = observations(elsewhere, loaded, ran, frozenset([pcs[3]]))
        assert seen.holds is not bool(refutes)
        assert not list(observations(elsewhere, loaded, ran, frozenset([pcs[2]])))
    assert refuted((3, 0xA000, True), (3, 0x8FFC, True)) == []
    assert refuted((3, 0x8FFE, True)) == [(3, "region fixed from 0x9000 to 0x9fff is read-only")]
    assert refuted((3, 0x9000, True)) == [(3, "region fixed from 0x9000 to 0x9fff is read-only")]
