"""ELFs for the Cortex-A8, end to end: ARM and Thumb-2, bounds above executions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.costs import CostCause
from quoll.errors import TimingError
from tests.testing.harness import build as products
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, bound, check, program
from wcet.cli import main
from wcet.platforms.platform_model import DIRECTORY, load

CPU = "cortex-a8"


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_executions_stay_below_the_bound(seed: int) -> None:
    result = bound(program(seed, "-O2", CPU), platform=None)
    assert result.platform.name == "cubieboard"
    assert len(check(result, seed, inputs=4, states=3)) == 4


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("thumb", [False, True])
def test_both_instruction_sets_are_analysed(thumb: bool) -> None:
    result = bound(program(2, "-Os", CPU, thumb=thumb), platform=None)
    assert result.entries["main"].graph.nodes[0].block.insns[0].thumb == thumb
    assert result.entries["main"].cycles > 0


@pytest.mark.slow("builds and analyses a kernel")
def test_the_kernel_is_analysed(capsys: pytest.CaptureFixture[str]) -> None:
    elf: Path = products.kernel("cubieboard-after")
    assert main(["analyse", str(elf), "--entry", "interrupt", "--quiet"]) == 0
    assert "platform  cubieboard" in capsys.readouterr().out


def test_an_instruction_without_a_row_is_named() -> None:
    text = ".text\n.global main\n.fpu neon\nmain: mrc p5, 0, r0, c0, c0, 0\nbx lr\n"
    elf = build(text, language="asm", cpu=CPU, link=(CODE,))
    with pytest.raises(TimingError, match=r"0xf0010000: .*no timing class"):
        bound(elf, platform=None)


COLOURS = """
.global main
main: ldr r2, =0xf0100000
    ldr r1, [r2]
    ldr r3, [r2, #4]
    add r3, r2, #4096
    ldr r3, [r3]
    ldr r1, [r2]
    bx lr
"""


def test_the_bit_of_the_index_above_the_page_offset_is_not_counted_on(tmp_path: Path) -> None:
    """Issue 18, 16: whether the L1D is indexed by virtual bits is not settled: 8 KiB a way.

    The load in between may evict the line; it cannot where virtual bits are said to select.
    """
    elf = build(COLOURS, language="asm", cpu=CPU, link=(CODE,))
    board = (DIRECTORY / "cubieboard.toml").read_text()
    virtual = tmp_path / "virtual.toml"
    virtual.write_text(board.replace("[caches.l1d]", '[caches.l1d]\nindex = "virtual"'))
    causes = [bound(elf, p).entries["main"].cycles_by_cause() for p in (None, str(virtual))]
    open_, known = (found[CostCause.LOAD_MISS] for found in causes)
    assert open_ > known > 0


def test_a_way_of_a_page_has_no_such_bit() -> None:
    kzm, a8 = (load(name).hierarchy.l1d for name in ("kzm", "cubieboard"))
    assert kzm.index_sets == kzm.sets == 128
    assert (a8.index_sets, a8.sets) == (64, 128)
