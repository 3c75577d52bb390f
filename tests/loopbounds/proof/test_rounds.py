"""Loops that wait for each other are sliced again only when they may have got a bound."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from loopbounds.proof import rounds
from loopbounds.slicing.gated_ssa import GatedSsa
from loopbounds.slicing.slice import Slice, slice_loops
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

NESTED = 8


def nest() -> str:
    """Counters on the stack: what each loop finds depends on all loops inside of it."""
    begin = "".join(f"mov r0, #2\nstr r0, [sp, #{4 * i}]\nl{i}:\n" for i in range(NESTED))
    end = "".join(
        f"ldr r0, [sp, #{4 * i}]\nsubs r0, r0, #1\nstr r0, [sp, #{4 * i}]\nbne l{i}\n"
        for i in reversed(range(NESTED))
    )
    head = ".syntax unified\n.arm\n.global main\n.type main, %function\nmain:\n"
    return f"{head}sub sp, sp, #64\n{begin}{end}add sp, sp, #64\nbx lr\n"


@pytest.mark.slow("compiles programs and proves the bounds of their loops")
def test_each_round_slices_one_loop_of_a_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    """All loops once, then each one as the loop inside of it is bounded: not all in each round."""
    sliced: list[int] = []

    def counted(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
        sliced.extend(loops)
        return slice_loops(ssa, loops)

    monkeypatch.setattr(rounds, "slice_loops", counted)
    bounds = load(build(nest(), language="asm")).bounds()
    assert [bound.bound for bound in bounds] == [2] * NESTED
    assert [bound.exact for bound in bounds] == [True] * NESTED
    assert len(sliced) < 2 * NESTED
