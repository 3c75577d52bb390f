"""A fact that makes code dead removes the queries about that code."""

from __future__ import annotations

import pytest

from quoll.cfg.call_graph import call_graph
from quoll.cfg.cfg import Program
from quoll.facts.read import parse
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted

KERNEL = """
main:   push {{r4, lr}}
        mov r4, r1
        {test}
        ldr r3, [r1]
        blx r3
        bl deep
out:    mov r0, r4
        pop {{r4, pc}}
        .type deep, %function
deep:   push {{r4, lr}}
        subs r0, r0, #1
        beq 1f
        bl deep
1:      pop {{r4, pc}}
"""
TESTS = {
    "beq": ("cmp r0, #7\n bne out", "register r0 at main is at most 6"),
    "bls": ("cmp r0, #2\n bls out", "register r0 at main+0x8 is at most 2"),
    "a bit": ("tst r0, #8\n beq out", "register r0 at main is at most 7"),
    "a copy": ("mov r2, r0\n cmp r2, #0\n beq out", "register r0 at main is at most 0"),
    "conditional return": ("cmp r0, #7\n popne {r4, pc}", "register r0 at main is at most 6"),
    "stored in the frame": (
        "push {r0}\n pop {r2}\n cmp r2, #0\n beq out",
        "register r0 at main is at most 0",
    ),
}


def program_of(test: str, facts: str, *, thumb: bool = False) -> Program:
    text = KERNEL.format(test=test)
    image = assemble(text, thumb=thumb, cpu="cortex-a8" if thumb else "arm1136jf-s")
    return extracted(image, facts=parse(f"{facts}\n", "test.facts"))


@pytest.mark.parametrize("name", TESTS)
def test_dead_code_is_not_asked_about(name: str) -> None:
    test, fact = TESTS[name]
    before = program_of(test, "")
    assert len(before.unresolved) == 1
    assert call_graph(before).recursive
    program = program_of(test, fact)
    assert not program.unresolved
    assert not call_graph(program).recursive
    assert len(program.functions) == 1
    assert any(fact in text for text in map(str, program.assumptions))
    assert program.guidance.removed
    assert all(fact in str(removed.fact) for removed in program.guidance.removed)


def test_thumb() -> None:
    program = program_of("cmp r0, #7\n bne out", "register r0 at main is at most 6", thumb=True)
    assert not program.unresolved
    assert len(program.functions) == 1


@pytest.mark.parametrize(
    ("test", "fact"),
    [
        ("cmp r0, #7\n bne out", "register r0 at main is at most 7"),
        ("cmp r0, #7\n bne out", "register r0 at out is at most 6"),
        ("ldr r0, [r1]\n cmp r0, #7\n bne out", "register r0 at main is at most 6"),
        ("mov r0, #7\n cmp r0, #7\n bne out", "register r1 at main is at most 6"),
    ],
)
def test_what_may_run_is_asked_about(test: str, fact: str) -> None:
    program = program_of(test, fact)
    assert len(program.unresolved) == 1
    assert call_graph(program).recursive
    assert not any(fact in str(removed.fact) for removed in program.guidance.removed)


def test_an_unresolved_jump_elsewhere_is_asked_about_still() -> None:
    """It might lead behind the branch: nothing is bounded before it is known."""
    text = "main: cmp r2, #9\n ldrls pc, [r1, r2, lsl #2]\n cmp r0, #7\n bxne lr\n"
    image = assemble(f"{text} ldr r3, [r1]\n push {{r4, lr}}\n blx r3\n pop {{r4, pc}}")
    facts = parse("register r0 at main is at most 6\n", "test.facts")
    program = extracted(image, facts=facts)
    assert [u.addr for u in program.unresolved] == [address(image, "main") + 4]
