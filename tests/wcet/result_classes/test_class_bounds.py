"""Bounds by class of a result cover every execution, and exclude branches of callers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from random import Random

import pytest

from quoll.errors import UnboundedLoop
from quoll.image.image import Image
from quoll.inlining.sharing import SummarySettings
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build
from tests.testing.wcet.planted_programs import LEVELS, MACHINES, built
from tests.testing.wcet.result_programs import ResultProgram
from tests.testing.wcet.result_runs import (
    INLINED,
    SUMMARISED,
    bounded,
    broken_rows,
    executions,
    judge,
    levels,
)
from wcet.analysis.result import EntryResult

RUNS = 12
FUNCTIONS = ("f0", "f1", "f2")
# ``main`` does most of its work if ``f`` returns 5. ``f`` returns the result of ``g``, or a word
# that it has chosen before.
KEPT = """
main: push {{r4, r5, r6, lr}}; mov r5, r1; bl f; cmp r0, #5; bleq costly
    mov r0, r5; bl f; cmp r0, #5; bleq costly
    pop {{r4, r5, r6, pc}}
.type costly, %function
costly: mov r12, #200
1:  subs r12, r12, #1; bne 1b; bx lr
.type f, %function
f:  push {{r4, r5, r6, lr}}; mov r6, r0; {body}
    tst r6, #1; moveq r0, r4; beq 2f
    nop
2:  pop {{r4, r5, r6, pc}}
.type g, %function
g:  tst r0, #4; bne 1f
    mov r12, #60
2:  subs r12, r12, #1; bne 2b
    mov r0, #0; bx lr
1:  mov r0, #1; bx lr
"""
CHOSEN = {
    "before the call": "mov r4, #5; tst r0, #2; bne 1f; mov r4, #7\n1: nop; bl g",
    "with the call": ("tst r0, #2; bne 1f; mov r4, #7; bl g; b 3f\n1: mov r4, #5; bl g\n3: nop"),
    "with a call to one place": (
        "tst r0, #2; adr lr, 3f; bne 1f; mov r4, #7; b g\n1: mov r4, #5; b g\n3: nop"
    ),
}


@dataclass(frozen=True)
class Drawn:
    """A random program with summaries by class of result, for a board."""

    seed: int
    elf: Path
    platform: str
    summarised: EntryResult


def drawn(first: int) -> Iterator[Drawn]:
    """Programs whose loops all have bounds."""
    for seed in count(first):
        random = Random(seed)
        clang, thumb = random.random() < 0.5, random.random() < 0.5
        cpu, platform = MACHINES[thumb]
        source = ResultProgram(random).source()
        level = random.choice(LEVELS)
        elf = built(source, clang=clang, thumb=thumb, cpu=cpu, level=level)
        try:
            found = bounded(elf, "main", SUMMARISED, platform)
        except UnboundedLoop:
            continue
        if levels(found):
            yield Drawn(seed, elf, platform, found)


@pytest.mark.slow("whole analyses of random programs")
def test_executions_are_within_the_bounds_of_their_results() -> None:
    for one in islice(drawn(0), cases(1)):
        image = Image.load(one.elf)
        plain = bounded(one.elf, "main", INLINED, one.platform)
        for execution in executions(image, "main", RUNS, one.seed):
            assert judge(plain, image, execution, called=False) <= one.summarised.cycles, one.seed
            assert not broken_rows(one.summarised, image, execution), one.seed
        functions = levels(one.summarised)
        symbols = ((name, image.symbol(name)) for name in FUNCTIONS)
        for name, address in ((name, found.addr & ~1) for name, found in symbols if found):
            if address not in functions:
                continue
            returned = one.summarised.graph.guidance.replaced[address].result
            alone = bounded(one.elf, name, INLINED, one.platform)
            for execution in executions(image, name, RUNS, one.seed):
                result = execution.results[-1]
                assert returned is None or result in returned
                bounds = functions[address]
                fitting = [b.cycles for b in bounds if b.result and result in b.result]
                assert judge(alone, image, execution, called=True) <= max(fitting), one.seed


@pytest.mark.parametrize("body", CHOSEN.values(), ids=CHOSEN.keys())
def test_a_result_may_be_chosen_before_the_last_call(body: str) -> None:
    """The call may then have any result: it need not be the last definition."""
    source = ".syntax unified\n.global main\n.type main, %function\n" + KEPT.format(body=body)
    elf = build(source, language="asm", link=("-Wl,-Ttext=0xf0010000",))
    image, settings = Image.load(elf), SummarySettings(contexts=0, least=1)
    summarised = bounded(elf, "main", settings, "kzm")
    plain = bounded(elf, "main", INLINED, "kzm")
    function = image.symbol("f")
    assert function is not None
    assert function.addr in levels(summarised)
    for execution in executions(image, "main", 4 * RUNS, 1):
        assert judge(plain, image, execution, called=False) <= summarised.cycles
        assert not broken_rows(summarised, image, execution)
