"""The hot places of a worst path share out its cycles."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from quoll.inlining.sharing import SummarySettings
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import SilentStageLog
from wcet.reports.assumption_text import summed_up
from wcet.reports.hot_places import hot_places, loop_shares

SOURCE = """\
volatile int out, rows;
__attribute__((noinline)) void put(int x) { out = x; }
void main(void) {
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 8; j++)
            put(i);
    for (int k = 0; k < rows; k++)
        out++;
    put(5);
}
"""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, optimise="-O1")


@pytest.mark.slow("analyses a program")
def test_places_and_loops_share_out_the_cycles(elf: Path, tmp_path: Path) -> None:
    """Also inside functions with a summary."""
    (facts := tmp_path / "k.facts").write_text("loop prog.c:7 at most 9\n")
    for contexts in (0, 1 << 20):
        result = analyse(
            elf,
            AnalysisOptions(
                entries=("main",),
                platform="kzm",
                facts=(facts,),
                neighbouring_facts=False,
                summary_settings=SummarySettings(contexts=contexts, least=1),
            ),
            SilentStageLog(),
        )
        entry = result.entries["main"]
        assert bool(entry.summaries) is (contexts == 0)
        places = hot_places(result, entry)
        assert sum(place.cycles for place in places) == entry.cycles
        assert all(a.cycles >= b.cycles for a, b in pairwise(places))
        lines = {str(result.image.line(place.address)).partition(":")[2]: place for place in places}
        assert lines["2"].count == 33
        loops = loop_shares(entry)
        inner = loops[lines["6"].loop or 0]
        assert (inner.entries, inner.iterations, inner.most, inner.exact) == (4, 32, 8, True)
        stated = loops[lines["8"].loop or 0]
        assert (stated.iterations, stated.stated) == (9, True)
    assert ", 1 stated by you, " in summed_up(result.assumptions)
