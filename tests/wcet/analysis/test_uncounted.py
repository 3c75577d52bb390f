"""Facts about counts of places that functions execute which are passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from tests.testing.wcet.stated import AT, bounded

LOADS = "ldr r2, [r3]\n" * 30
PROGRAM = f"""
.syntax unified
.global main
.type main, %function
main: push {{{{r4, lr}}}}
cmp r0, #0
beq 1f
a: {LOADS}
1: cmp r0, #0
beq 2f
c: nop
2: bl g
pop {{{{r4, pc}}}}
.type g, %function
g: push {{{{r4, lr}}}}
cmp r0, #0
beq 3f
b: ldr r2, [r3]
3: {{switch}}
pop {{{{r4, pc}}}}
"""
REPLACED = ("nop", "function g takes at most 500 cycles\n")
SWITCHES = ("ldr sp, [r1]", "g switches context\n")


def cycles(folder: Path, switch: str, facts: str) -> int:
    elf = build(PROGRAM.format(switch=switch), AT, language="asm", cpu="cortex-a8")
    found = bounded(elf, folder, facts, "main").entries["main"].cycles
    assert found is not None
    return found


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(("switch", "replaced"), [REPLACED, SWITCHES])
@pytest.mark.parametrize(
    "fact",
    ["a is consistent with b in main\n", "count(a) <= count(b)\n", "count(a) - count(b) = 0\n"],
)
def test_a_place_in_a_function_that_is_passed_over(
    fact: str, switch: str, replaced: str, tmp_path: Path
) -> None:
    """It executes as often as ``a``; counted as 0, it excluded ``a``."""
    assert cycles(tmp_path, switch, replaced + fact) == cycles(tmp_path, switch, replaced)


@pytest.mark.slow("several whole analyses")
def test_facts_about_other_places_are_applied(tmp_path: Path) -> None:
    """A limit stays valid as well: it is compared with a part of the executions."""
    switch, replaced = REPLACED
    whole = cycles(tmp_path, switch, replaced)
    for fact in ("count(a) + count(b) <= 0\n", "count(a) - 2*count(c) = 0\n"):
        assert cycles(tmp_path, switch, replaced + fact) < whole
