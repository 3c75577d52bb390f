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
    CALLS
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


COUNT = 1 << 15  # lines


@cache
def flushed(move: str, calls: int = 1, settings: SummarySettings = INLINED) -> EntryResult:
    """The result for a program that invalidates many lines, then tests for interrupts."""
    source = SOURCE.replace("COUNT", str(COUNT)).replace("MOVE", move)
    source = source.replace("CALLS", "bl flush\n" * calls)
    elf = build(source, language="asm", link=("-Wl,-Ttext=0xf0010000",))
    options = AnalysisOptions(("main",), "kzm", summary_settings=settings)
    return analyse(elf, options, StageLog(verbose=False)).entries["main"]


LINES, PAGES = "add r1, r1, #1", "add r1, r1, #128"


def test_few_invalidations_drop_a_line_of_the_loop() -> None:
    """One in 42 at most: the loop fetches three lines, each of which is dropped once a page."""
    gained = flushed(PAGES).cycles - flushed(LINES).cycles
    assert gained > COUNT * MISS * 41 / 42


def test_few_invalidations_of_a_summary_do() -> None:
    result = flushed(LINES, 2, SUMMARISED)
    assert result.summaries
    assert result.cycles < flushed(PAGES).cycles


def test_the_path_has_the_cycles_of_the_bound() -> None:
    result = flushed(LINES)
    assert path_cycles(result.costs, result.path.steps) == result.cycles
