"""Limits on executions of places inside functions with a summary."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from ilp.paths.outline import outline
from ilp.paths.path_check import path_cycles
from quoll.image.image import Image
from quoll.inlining.sharing import SummarySettings, count_ranges
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import StageLog
from wcet.latency.frames import PathFrame, frames_of
from wcet.latency.summarised_calls import summarised_calls

pytestmark = pytest.mark.slow("several whole analyses")

SOURCE = """
volatile unsigned *volatile word;
__attribute__((noinline)) void pool(void) { for (int i = 0; i < 500; i++) *word; }
__attribute__((noinline)) void small(void) { for (int i = 0; i < 3; i++) *word; }
__attribute__((noinline)) void drop(unsigned a) { if (a & 1) pool(); else small(); *word; }
__attribute__((noinline)) void twice(unsigned a) { drop(a); if (*word) drop(a + *word); *word; }
__attribute__((noinline)) void tail(unsigned a) { *word; drop(a); }
unsigned main(unsigned a) {
    drop(a); drop(*word); twice(*word); twice(*word + 3); tail(*word); tail(*word + 2);
    for (unsigned i = 0; i < 4; i++) { twice(*word); tail(*word); }
    return a;
}
"""
INLINED, SUMMARISED = SummarySettings(contexts=1 << 62), SummarySettings(contexts=0, least=1)


@cache
def elf() -> Path:
    return build(SOURCE, "-fno-inline", link=("-Wl,-Ttext=0xf0010000",))


@cache
def bounded(facts: str, settings: SummarySettings = SUMMARISED) -> EntryResult:
    """The result of ``main`` with these facts."""
    file = elf().with_name(f"facts{abs(hash(facts))}.txt")
    file.write_text(facts + "\n")
    options = AnalysisOptions(("main",), "kzm", facts=(file,), summary_settings=settings)
    return analyse(elf(), options, StageLog(verbose=False)).entries["main"]


def most(count: int) -> str:
    return f"pool executes at most {count} times" if count else "pool never executes"


def extra(count: int, settings: SummarySettings = SUMMARISED) -> int:
    """The cycles of ``count`` executions of the place."""
    return bounded(most(count), settings).cycles - bounded(most(0), settings).cycles


def test_a_place_inside_a_summary_is_counted_on_the_whole_path() -> None:
    one = extra(1)
    assert bounded(most(1)).summaries
    assert one < 1.5 * extra(1, INLINED)
    assert extra(2) <= 2 * one
    assert extra(2) > one


@pytest.mark.parametrize("count", [1, 3])
def test_the_bound_is_never_below_that_of_full_inlining(count: int) -> None:
    plain, once = bounded(most(count), INLINED), bounded(most(count))
    assert plain.cycles <= once.cycles < bounded("pool executes at most 100 times").cycles
    assert extra(count) <= 2 * count * extra(1)


def test_the_path_has_the_cycles_of_the_bound() -> None:
    for result in (bounded(most(1)), bounded(most(3))):
        assert result.path.unrealisable is None
        calls = result.solution.calls
        assert calls
        assert path_cycles(result.costs, result.path.steps, calls) == result.cycles
        whole = outline(result.graph, result.costs, result.solution, result.path.steps)
        assert whole.cycles == result.cycles == sum(result.cycles_by_cause().values())
        assert sum(sum(spent) for _, spent in result.charged_steps()) == result.cycles


def test_reports_have_the_calls_with_and_without_the_place() -> None:
    result = bounded(most(1))
    calls = list(summarised_calls(result))
    outer = [call for call in calls if not call.depth]
    assert sum(call.cycles for call in outer) < result.cycles
    cycles = {call.function.solution.cycles for call in outer}
    assert len(cycles) > len({call.function.address for call in outer})
    assert sum(frame.calls * _pools(frame) for frame in frames_of(result)) == 1


def _pools(frame: PathFrame) -> int:
    """Executions of the counted function in one execution of a frame."""
    pool = Image.load(elf()).symbol("pool")
    assert pool is not None
    counts = zip(frame.graph.nodes, frame.solution.nodes, strict=True)
    return sum(count for node, count in counts if node.block.addr == pool.addr)


def test_the_fact_is_an_assumption_once() -> None:
    listed = [str(one) for one in bounded(most(1)).assumptions]
    assert sum("pool" in one and "at most 1" in one for one in listed) == 1


def test_a_function_that_always_executes_the_place() -> None:
    """Its calls are counted, although it has one bound."""
    limited, free = bounded("drop executes at most 14 times"), bounded(most(100))
    assert limited.cycles < free.cycles
    assert limited.cycles >= bounded("drop executes at most 14 times", INLINED).cycles


def test_ranges_of_counts() -> None:
    assert count_ranges(1) == ((0, 0), (1, 1))
    assert count_ranges(9) == ((0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 9))
    for limit in range(1, 70):
        covered = [n for least, last in count_ranges(limit) for n in range(least, last + 1)]
        assert covered == list(range(limit + 1))
