"""Programs that clean more lines than a cache has (rule 9)."""

from __future__ import annotations

from functools import cache

import pytest

from ilp.paths.outline import outline
from ilp.paths.path_check import path_cycles
from quoll.inlining.sharing import SummarySettings
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import StageLog

pytestmark = pytest.mark.slow("several whole analyses")

LINES = 512  # of L1 on the KZM
WRITE_BACK = 60  # cycles
FLUSH = """
.global main, flush
main:
    push {r4, lr}
    CALLS
    pop {r4, pc}
flush:
    mov r2, #COUNT
again:
    mcr p15, 0, r1, c7, c14, 1
    add r1, r1, #32
    INSIDE
    subs r2, r2, #1
    bne again
    bx lr
"""
INLINED, SUMMARISED = SummarySettings(contexts=1 << 62), SummarySettings(contexts=0, least=1)


@cache
def flushed(
    count: int, inside: str = "", calls: int = 1, settings: SummarySettings = INLINED
) -> EntryResult:
    """The result for a program that flushes ``count`` lines in each call."""
    source = FLUSH.replace("COUNT", str(count)).replace("INSIDE", inside)
    source = source.replace("CALLS", "bl flush\n" * calls)
    elf = build(source, language="asm", link=("-Wl,-Ttext=0xf0010000",))
    options = AnalysisOptions(("main",), "kzm", summary_settings=settings)
    return analyse(elf, options, StageLog(verbose=False)).entries["main"]


def for_each(inside: str, few: int, many: int) -> int:
    """The cycles of one more line, between two numbers of lines."""
    more = flushed(many, inside).cycles - flushed(few, inside).cycles
    assert not more % (many - few)
    return more // (many - few)


HITS = "mov r4, #0xf0000000\n ldr r3, [r4]\n str r3, [r4]"
MISSES = "str r3, [r4]"


@pytest.mark.parametrize(
    ("inside", "charged", "dirtied"),
    [("", 1, 0), (HITS, 2, 1), (MISSES, 1, 0)],
    ids=["none", "hits", "misses"],
)
def test_a_clean_line_is_not_written_back(inside: str, charged: int, dirtied: int) -> None:
    """A store that hits makes a line dirty again; one that may miss is charged for it itself.

    A load that misses is charged its victim beside the line that is cleaned.
    """
    first, later = for_each(inside, 128, 256), for_each(inside, 4096, 8192)
    assert first - later == (charged - dirtied) * WRITE_BACK


def test_as_many_as_the_cache_has() -> None:
    whole = for_each("", 4096, 8192)
    saved = 2  # words that main loads again: their victims are among the dirty lines
    fixed = flushed(256).cycles - 256 * (whole + WRITE_BACK) - saved * WRITE_BACK
    assert flushed(4096).cycles == fixed + 4096 * whole + LINES * WRITE_BACK


def test_lines_are_cleaned_once_on_the_whole_path() -> None:
    one, two = flushed(LINES), flushed(LINES, calls=2)
    assert two.cycles - one.cycles < one.cycles - LINES * WRITE_BACK // 2


def test_a_function_summary_begins_with_a_dirty_cache() -> None:
    """The caller knows nothing of the lines that the first call has cleaned."""
    one, two = (flushed(4096, "", calls, SUMMARISED) for calls in (1, 2))
    assert two.summaries
    assert two.cycles > 2 * (one.cycles - 4 * LINES)
    assert two.summaries[0].solution.cycles > LINES * WRITE_BACK + 4096


def test_the_path_has_the_cycles_of_the_bound() -> None:
    for result in (flushed(4096), flushed(4096, HITS), flushed(256)):
        assert path_cycles(result.costs, result.path.steps) == result.cycles
        whole = outline(result.graph, result.costs, result.solution, result.path.steps)
        assert whole.cycles == result.cycles == sum(result.cycles_by_cause().values())
        assert sum(sum(spent) for _, spent in result.charged_steps()) == result.cycles
