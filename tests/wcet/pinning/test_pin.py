"""``wcet pin``: an analysis with the lines that it chose has the same bounds."""

from __future__ import annotations

import json
from itertools import combinations
from math import inf
from pathlib import Path

import pytest

from quoll.results.results_store import NOWHERE
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE
from wcet.analysis.analysis import analyse
from wcet.analysis.entry_stages import block_timer, charged, iterations, of_segment, timed
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.cli import main
from wcet.library import analysis_options
from wcet.pinning.bounds import PinnedBounds, PinnedEntry
from wcet.pinning.choice import Choice, choose, total
from wcet.pinning.first_touched import first_touched
from wcet.pinning.lists import kernel_list, with_pins
from wcet.pinning.pins import NO_PINS, PinnedLine, fitting, set_of

pytestmark = pytest.mark.slow("analyses a program for many choices of lines")
# Three arrays of 4 KiB: words of one index compete for a set. ``often`` is last, but read most.
SOURCE = """\
unsigned early[1024], late[1024], often[1024];
unsigned main(unsigned n) {
    volatile unsigned *a = early, *b = late, *c = often;
    unsigned total = a[0] + b[0] + c[0];
    for (int i = 0; i < 5; i++) total += a[8] + c[8] + b[16] + c[16] + c[0] + b[0] + c[0];
    return total + n;
}
"""


@pytest.fixture(scope="module")
def run() -> AnalysisRun:
    options = analysis_options(("main",), "kzm", (), {}, NOWHERE)
    elf = build(SOURCE, CODE, optimise="-O1")
    return AnalysisRun.begin(elf, options, SilentStageLog())


def bounds_of(run: AnalysisRun, ways: int) -> PinnedBounds:
    entries = tuple(PinnedEntry.of(run, name, at) for name, at in run.entries.items())
    return PinnedBounds(run, entries, ways)


def silent(lines: int, cycles: int) -> None:
    pass


def test_data_is_classified_once_where_loops_are_bounded(run: AnalysisRun) -> None:
    """Classifying data a first time, without the bounds of loops, changes no cost."""
    (entry,) = bounds_of(run, 1).entries
    (part,) = entry.parts
    rounds = iterations(of_segment(part, entry.loops.bounds))
    before, later = (
        charged(entry.valued, part, timed(entry.valued, part, block_timer(run), data=data), rounds)
        for data in (True, False)
    )
    assert rounds
    assert before == later


def test_attempts_end_a_choice_and_known_bounds_save_one(run: AnalysisRun) -> None:
    bounds = bounds_of(run, 1)
    unpinned = bounds.solved(NO_PINS)
    assert bounds.solved(NO_PINS, NO_PINS, unpinned) == unpinned
    none = choose(bounds, inf, silent, unpinned, attempts=0)
    assert none == Choice(NO_PINS, unpinned, complete=False)
    one = choose(bounds, inf, silent, attempts=1)
    assert one.pins == choose(bounds, inf, silent, unpinned, attempts=1).pins != NO_PINS
    assert first_touched(bounds, unpinned).pins == first_touched(bounds).pins


@pytest.mark.parametrize("ways", [1, 2])
def test_no_choice_of_data_lines_is_better(run: AnalysisRun, ways: int) -> None:
    bounds = bounds_of(run, ways)
    found = choose(bounds, 60, silent)
    assert found.complete
    assert found.cycles < first_touched(bounds).cycles < total(bounds.solved(NO_PINS))
    code = frozenset(line for line in found.pins if line.cache == "l1i")
    data = [line for line in bounds.solved(code)[0].order if line.cache == "l1d"]
    assert len(data) > 3
    hierarchy = run.platform.hierarchy
    for size in range(4):
        for lines in combinations(data, size):
            pins = fitting(hierarchy, lines, ways)
            assert total(bounds.solved(code | pins)) >= found.cycles


def test_the_bounds_are_those_of_an_analysis(
    run: AnalysisRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel, platform, lines = tmp_path / "k.elf", tmp_path / "p.toml", tmp_path / "p.list"
    kernel.write_bytes(build(SOURCE, CODE, optimise="-O1").read_bytes())
    outputs = ("--output", str(platform), "--list", str(lines), "--json", str(tmp_path / "p.json"))
    quiet = ("--entry", "main", "--quiet", "--no-cache")
    assert main(["pin", str(kernel), "--platform", "kzm", *quiet, *outputs]) == 0
    assert "less" in capsys.readouterr().out
    document = json.loads((tmp_path / "p.json").read_text())
    options = analysis_options(("main",), str(platform), (), {}, NOWHERE)
    again = analyse(kernel, options, SilentStageLog())
    assert again.entries["main"].cycles == document["entries"][0]["cycles"]
    assert document["entries"][0]["cycles"] < document["entries"][0]["cycles_before"]
    text = lines.read_text()
    assert text.startswith("instructions\n  main")
    assert "\ndata\n" in text
    assert "  late+" in text


@pytest.mark.parametrize("ways", ["0", "4"])
def test_a_way_stays_free(ways: str, run: AnalysisRun, capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(SOURCE, CODE, optimise="-O1")
    quiet = ("--entry", "main", "--quiet", "--no-cache", "--platform", "kzm")
    try:
        status = main(["pin", str(elf), *quiet, "--ways", ways])
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    assert status == 2
    assert "--ways" in capsys.readouterr().err


BEHIND = """\
.syntax unified
.global main
.type main, %function
.balign 32
main: ldr r3, =value
ldr r0, [r3]
cmp r0, #0
beq 1f
b 2f
.balign 32
2: mcr p15, 0, r0, c7, c5, 0
b 1f
.balign 32
1: ldr r0, [r3]
bx lr
.ltorg
.data
value: .word 1
"""


def test_lines_are_locked_until_they_may_be_dropped() -> None:
    """The line of ``1:`` is behind the invalidation of all code; data stays locked."""
    elf = build(BEHIND, CODE, language="s")
    options = analysis_options(("main",), "kzm", (), {}, NOWHERE)
    run = AnalysisRun.begin(elf, options, SilentStageLog())
    bounds = bounds_of(run, 1)
    [before] = bounds.solved(NO_PINS)
    [after] = bounds.solved(frozenset(before.order))
    first, *others = [line for line in before.order if line.cache == "l1i"]
    assert first not in after.misses
    assert set(others) & set(after.misses)
    assert not [line for line in after.misses if line.cache == "l1d"]
    told = [text for text in map(str, after.assumptions) if "locked again" in text]
    assert len(told) == 1
    assert "locked lines of L1I that the code at 0xf0010020 may drop" in told[0]


def test_lines_of_one_set(run: AnalysisRun) -> None:
    hierarchy = run.platform.hierarchy
    lines = [PinnedLine("l1d", n) for n in (5, 5 + 128, 6, 5 + 256)]
    assert set_of(hierarchy, lines[0]) == set_of(hierarchy, lines[1])
    assert fitting(hierarchy, lines, 1) == {lines[0], lines[2]}
    assert fitting(hierarchy, lines, 2) == {lines[0], lines[1], lines[2]}
    text = kernel_list(run.image, run.platform, frozenset(lines[:1]))
    assert text == "instructions\ndata\n  0xa0 32\n"
    assert 'locked = ["0xa0..0xc0"]\nlocked_ways = 3' in with_pins(
        run.platform, frozenset(lines[:1]), 3
    )
