"""The order in which entries are surveyed, and all that is known when the time is up."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from quoll.image.image import Image
from quoll.inlining.sharing import SummarySettings
from quoll.processes import processor_time
from quoll.processes.time_limit import TimeIsUp
from tests.testing.quoll.building import build
from wcet.analysis import fact_survey
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.fact_survey import survey
from wcet.analysis.stage_times import StageLog

OPEN = """
struct item { struct item *next; } *volatile items;
int volatile sink;
#define N __attribute__((noinline, noclone))
N int walk(struct item *at) { for (; at; at = at->next) sink = 1; return sink; }
N int fill(int n) { for (int i = 0; i < n; i++) sink = i; return n; }
N int both(int n) { return walk(items) + fill(n) + walk(items); }
int main(int n) { return both(n) + both(4) + fill(5) + walk(items); }
int other(int n) { return n; }
"""


@pytest.fixture(scope="module")
def program() -> Path:
    return build(OPEN, "-fno-ipa-cp", optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))


def late(_: object) -> NoReturn:
    raise TimeIsUp


def test_loops_of_summaries_are_listed_when_the_time_is_up(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, only the error at the end of all summaries named them."""
    monkeypatch.setattr("wcet.analysis.summaries.all_unbounded", late)
    settings = SummarySettings(contexts=0, least=3, most=2)
    options = AnalysisOptions(("main",), "kzm", summary_settings=settings)
    found = survey(program, options, StageLog(verbose=False))
    symbols = [Image.load(program).symbol_at(one.addr) for _, one in found.missing]
    assert sorted(at[0].name for at in symbols if at) == ["fill", "walk"]
    assert all(one.cycles for _, one in found.missing)
    assert found.unfinished == ("main",)


def test_an_entry_that_seems_to_end_first_goes_on(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large entry, by the time of its control flow, comes behind the rounds of a small one."""
    clock, examined = [0.0], list[str]()
    took = {("_control_flow_error", "main"): 2.0, ("_control_flow_error", "other"): 0.1}

    def examine(_: object, name: str, __: int, errors: fact_survey.EntryErrors) -> bool:
        clock[0] += took.get((errors.__name__, name), 3.0)
        if errors.__name__ == "_error":
            examined.append(name)
        return examined.count("other") < 3 if errors.__name__ == "_error" else False

    monkeypatch.setattr("wcet.analysis.fact_survey._Search._examine", examine)
    monkeypatch.setattr(processor_time, "own", lambda: clock[0])
    options = AnalysisOptions(("main", "other"), "kzm")
    assert not survey(program, options, StageLog(verbose=False)).unfinished
    assert examined == ["other", "other", "other", "main"]
