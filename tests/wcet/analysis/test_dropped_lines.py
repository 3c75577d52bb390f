"""Programs that invalidate more instruction lines than a loop can drop of their own code."""

from __future__ import annotations

from functools import cache

import pytest

from ilp.paths.path_check import path_cycles
from quoll.inlining.sharing import SummarySettings
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import StageLog

pytestmark = pytest.mark.slow("several whole analyses")

PENDING = 0xF8000058  # a word of the KZM's interrupt controller
MISS = 63  # cycles
SOURCE = f"""
.global main, flush
main:
    push {{r4, lr}}
    bl flush
    ldr r0, ={PENDING:#x}
    ldr r0, [r0]
    cmp r0, #0
    popne {{r4, pc}}
    add r0, r0, #1
    pop {{r4, pc}}
flush:
    ldr r2, =COUNT
again:
    lsl r0, r1, #5
    mcr p15, 0, r0, c7, c5, 1
    MOVE
    subs r2, r2, #1
    bne again
    bx lr
.ltorg
"""
INLINED, SUMMARISED = SummarySettings(contexts=1 << 62), SummarySettings(contexts=0, least=1)


@cache
def flushed(
    count: int, move: str = "add r1, r1, #1", settings: SummarySettings = INLINED
) -> EntryResult:
    """The result for a program that invalidates ``count`` lines, then tests for interrupts."""
    source = SOURCE.replace("COUNT", str(count)).replace("MOVE", move)
    elf = build(source, language="asm", link=("-Wl,-Ttext=0xf0010000",))
    options = AnalysisOptions(("main",), "kzm", summary_settings=settings)
    return analyse(elf, options, StageLog(verbose=False)).entries["main"]


def for_each(move: str = "add r1, r1, #1", settings: SummarySettings = INLINED) -> float:
    """The cycles of one more line, between two numbers of lines."""
    more = flushed(1 << 15, move, settings).cycles - flushed(1 << 14, move, settings).cycles
    return more / (1 << 14)


@pytest.mark.parametrize("settings", [INLINED, SUMMARISED], ids=["inlined", "summary"])
def test_few_invalidations_drop_a_line_of_the_loop(settings: SummarySettings) -> None:
    """The loop fetches at most three lines, each of which is dropped once a page."""
    other = for_each("ldr r1, [r3]\n ldr r1, [r3]\n add r1, r1, #1", settings)
    moving = for_each(settings=settings)
    assert moving + MISS * 125 / 128 < other
    assert moving < 30


def test_a_page_in_each_iteration_may_drop_a_line_each_time() -> None:
    assert for_each("add r1, r1, #128") >= for_each() + MISS * 125 / 128
    assert for_each("sub r1, r1, #1") == for_each()


def test_the_path_has_the_cycles_of_the_bound() -> None:
    result = flushed(1 << 14)
    assert path_cycles(result.costs, result.path.steps) == result.cycles
