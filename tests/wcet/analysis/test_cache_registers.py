"""Caches that are cleaned by set and way, as many as the registers of the platform's core read."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest

from quoll.assumptions import CACHE_REGISTERS
from quoll.errors import InputError
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import StageLog
from wcet.platforms.platform_model import DIRECTORY, load

CLEAN = """
static inline unsigned sizes(unsigned level)
{
    unsigned before, word;
    asm volatile("mrc p15, 2, %0, c0, c0, 0" : "=r"(before));
    asm volatile("mcr p15, 2, %0, c0, c0, 0" : : "r"(level << 1));
    BARRIER
    asm volatile("mrc p15, 1, %0, c0, c0, 0" : "=r"(word));
    asm volatile("mcr p15, 2, %0, c0, c0, 0" : : "r"(before));
    return word;
}

void main(void)
{
    unsigned levels, level;
    asm volatile("mrc p15, 1, %0, c0, c0, 1" : "=r"(levels));
    for (level = 0; level < (levels >> LEVELS & 7); level++) {
        if ((levels >> 3 * level & 7) > 1) {
            unsigned word = sizes(level);
            unsigned ways = (word >> 3 & 0x3ff) + 1, sets = (word >> 13 & 0x7fff) + 1;
            unsigned line = (word & 7) + 4, shift = __builtin_clz(ways - 1);
            for (unsigned way = 0; way < ways; way++)
                for (unsigned set = 0; set < sets; set++)
                    asm volatile("mcr p15, 0, %0, c7, c10, 2"
                                 : : "r"(way << shift | set << line | level << 1));
        }
    }
}
"""
UNIFICATION, COHERENCY = 27, 24  # lowest bits of the numbers of levels in CLIDR
LEVELS = "clidr = { value = 0x0A000023, source"


def board(folder: Path, l1d: str = "size = 32_768", levels: str = LEVELS) -> str:
    """The Cubieboard with another data cache, or with another word that lists the levels."""
    text = (DIRECTORY / "cubieboard.toml").read_text()
    head, tail = text.split("[caches.l1d]")
    text = f"{head}[caches.l1d]{tail.replace('size = 32_768', l1d, 1)}"
    assert LEVELS in text
    file = folder / "board.toml"
    file.write_text(text.replace(LEVELS, levels))
    return str(file)


def cleaned(platform: str, levels: int = UNIFICATION, barrier: str = "") -> EntryResult:
    source = CLEAN.replace("LEVELS", str(levels))
    elf = build(source.replace("BARRIER", barrier), cpu="cortex-a8", optimise="-Os")
    options = AnalysisOptions(("main",), platform)
    return analyse(elf, options, StageLog(verbose=False)).entries["main"]


def lines(result: EntryResult) -> int:
    """The lines of one level that are cleaned: sets of a way, times ways."""
    bounds = {b.loop: b.bound for b in result.bounds}
    inside = [loop.index for loop in result.graph.loops if loop.parent is not None]
    assert len(inside) == 2
    return prod(bounds[loop] or 0 for loop in inside)


def trusts(result: EntryResult) -> bool:
    return any(one.kind is CACHE_REGISTERS for one in result.assumptions)


@pytest.mark.parametrize(
    ("l1d", "count"),
    [("size = 32_768", 512), ("size = 16_384", 256), ("size = 65_536", 1024)],
)
def test_a_cache_has_as_many_lines_as_the_platform_says(
    tmp_path: Path, l1d: str, count: int
) -> None:
    found = cleaned(board(tmp_path, l1d))
    assert lines(found) == count
    assert trusts(found)
    assert any("without an isb" in f"{one}" for one in found.assumptions)


@pytest.mark.slow("two analyses of programs")
def test_of_two_levels_each_has_at_most_the_lines_of_the_larger_one(tmp_path: Path) -> None:
    found = cleaned(board(tmp_path), COHERENCY, barrier='asm volatile("isb");')
    assert trusts(found)
    assert lines(found) == 4096


@pytest.mark.slow("several analyses of programs")
def test_a_platform_file_must_agree_with_itself(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="clidr"):
        load(board(tmp_path, levels="clidr = { value = 0x0A000024, source"))
    known = load(board(tmp_path, levels="clidr = { value = 0x09000003, source")).cache_words
    assert known is not None
    assert [at for at, _ in known.sizes] == [0, 1]
