"""svc in code of the kernel: one question, and one fact that answers it for all of them."""

from __future__ import annotations

import pytest

from quoll.errors import WcetError
from quoll.facts.read import Facts, parse
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted

YIELDS = """
main:   push {r4, lr}
        mov r4, r0
        svc #1
        cmp r4, #0
        svcne #2
        add r0, r4, #1
        pop {r4, pc}
"""


def stated(text: str) -> Facts:
    return parse(text, "test.facts")


@pytest.mark.parametrize("thumb", [False, True])
def test_each_is_asked_about_by_the_same_fact(thumb: bool) -> None:
    text = YIELDS.replace("svcne #2", "it ne\n svcne #2") if thumb else YIELDS
    program = extracted(assemble(text, thumb=thumb, cpu="cortex-a8"))
    asked = [u for u in program.unresolved if "supervisor" in u.reason]
    assert len(asked) == 2
    (fact,) = {u.missing.fact for u in asked}
    assert fact == "every supervisor call takes at most N cycles"


@pytest.mark.parametrize("thumb", [False, True])
def test_it_comes_back(thumb: bool) -> None:
    """The frame is followed past it: r4 and sp are given back."""
    text = YIELDS.replace("svcne #2", "it ne\n svcne #2") if thumb else YIELDS
    image = assemble(text, thumb=thumb, cpu="cortex-a8")
    program = extracted(image, facts=stated("every supervisor call takes at most 900 cycles"))
    assert not program.unresolved
    assert program.functions[address(image, "main") & ~1].returns
    assert any("every supervisor call" in text for text in map(str, program.assumptions))


def test_the_path_ends() -> None:
    image = assemble(YIELDS)
    program = extracted(image, facts=stated("path must end at every supervisor call"))
    (cfg,) = program.functions.values()
    assert [block.last.text for block in cfg.blocks if block.exits] == ["svc #1"]
    assert not program.unresolved
    assert any("every supervisor call" in text for text in map(str, program.assumptions))


def test_contradictions() -> None:
    with pytest.raises(WcetError, match="supervisor"):
        stated(
            "path must end at every supervisor call\nevery supervisor call takes at most 3 cycles"
        )
