"""ELFs for the Cortex-A8, end to end: ARM and Thumb-2, bounds above executions."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.errors import TimingError
from tests.harness import build as products
from tests.quoll.building import build
from tests.wcet.programs import CODE, bound, check, program
from wcet.cli import main

CPU = "cortex-a8"


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_executions_stay_below_the_bound(seed: int) -> None:
    result = bound(program(seed, "-O2", CPU), platform=None)
    assert result.platform.name == "cubieboard"
    assert len(check(result, seed, inputs=4, states=3)) == 4


@pytest.mark.parametrize("thumb", [False, True])
def test_both_instruction_sets_are_analysed(thumb: bool) -> None:
    result = bound(program(2, "-Os", CPU, thumb=thumb), platform=None)
    assert result.entries["main"].graph.nodes[0].block.insns[0].thumb == thumb
    assert result.entries["main"].cycles > 0


def test_the_kernel_is_analysed(capsys: pytest.CaptureFixture[str]) -> None:
    elf: Path = products.kernel("cubieboard-after")
    assert main(["analyse", str(elf), "--entry", "interrupt", "--quiet"]) == 0
    assert "platform  cubieboard" in capsys.readouterr().out


def test_an_instruction_without_a_row_is_named() -> None:
    text = ".text\n.global main\n.fpu neon\nmain: vadd.f32 s0, s1, s2\nbx lr\n"
    elf = build(text, language="asm", cpu=CPU, link=(CODE,))
    with pytest.raises(TimingError, match=r"0xf0010000: vadd\.f32.*no timing class"):
        bound(elf, platform=None)
