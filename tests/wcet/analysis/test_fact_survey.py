"""The order in which entries are surveyed, and all that is known when the time is up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from quoll.cfg.cfg import Program
from quoll.image.image import Image
from quoll.inlining.sharing import NEVER, SummarySettings
from quoll.processes import processor_time
from quoll.processes.time_limit import TimeIsUp
from quoll.results.results_store import NOWHERE, ResultsStore
from tests.testing.quoll.building import build
from wcet.analysis import entry_stages, fact_survey
from wcet.analysis.analysis import analyse, cached_or_prepared
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import AnalysisTarget
from wcet.analysis.fact_survey import FactSurvey, provisional_facts, survey
from wcet.analysis.prepared import Prepared
from wcet.analysis.run import AnalysisRun
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


def late(*_: object) -> NoReturn:
    raise TimeIsUp


def test_loops_of_summaries_are_listed_when_the_time_is_up(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, only the error at the end of all summaries named them."""
    monkeypatch.setattr("wcet.analysis.fact_survey.entry_result", late)
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


BEHIND = """
int volatile sink;
struct item { struct item *next, *inner; };
#define N __attribute__((noinline, noclone))
N int walk(struct item *at) { int n = 0; for (; at; at = at->next) n += sink; return n; }
N int fill(int n) { for (int i = 0; i < n; i++) sink = i; return n; }
N int outer(struct item *at) {
    int n = 0;
    for (; at; at = at->next) n += walk(at->inner);
    return n;
}
int main(struct item *at, struct item *other) {
    int n = outer(at) + fill(4) + walk(other) + fill(5) + outer(other);
    for (; at; at = at->next) n += fill(3);
    return n;
}
"""
SUMMARISED = SummarySettings(contexts=0, least=1, most=100)


@pytest.fixture(scope="module")
def behind() -> Path:
    return build(BEHIND, "-fno-ipa-cp", optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))


def missing_in(elf: Path, found: FactSurvey) -> list[str]:
    """The functions with a missing loop."""
    image = Image.load(elf)
    symbols = [image.symbol_at(one.addr) for _, one in found.missing]
    return sorted(at[0].name for at in symbols if at)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    "settings", [NEVER, replace(SUMMARISED, most=1)], ids=["inlined", "summarised"]
)
def test_one_analysis_finds_the_loops_of_all_functions(
    behind: Path, monkeypatch: pytest.MonkeyPatch, settings: SummarySettings
) -> None:
    """Before, summaries with loops without a bound hid the loops behind them."""
    analysed, extracted = list[str](), list[AnalysisTarget]()

    def counted(run: AnalysisRun, name: str, address: int) -> Prepared:
        analysed.append(name)
        return cached_or_prepared(run, name, address)

    def extracting(code: AnalysisTarget) -> Program:
        extracted.append(code)
        return plainly(code)

    plainly = entry_stages._extracted
    monkeypatch.setattr(entry_stages, "_extracted", extracting)
    monkeypatch.setattr("wcet.analysis.fact_survey.cached_or_prepared", counted)
    options = AnalysisOptions(("main",), "kzm", summary_settings=settings)
    found = survey(behind, options, StageLog(verbose=False))
    doubted = [] if settings is NEVER else ["fill"]
    assert missing_in(behind, found) == [*doubted, "main", "outer", "walk"]
    assert not found.unfinished
    assert not found.others
    assert analysed == ["main"]
    assert len(extracted) == 1


@pytest.mark.slow("several whole analyses")
def test_loops_that_callers_bound_are_asked_only_if_the_time_is_up(
    behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then an entry is complete all the same: nothing else is missing."""
    options = AnalysisOptions(("main",), "kzm", summary_settings=SUMMARISED)
    found = survey(behind, options, StageLog(verbose=False))
    assert missing_in(behind, found) == ["main", "outer", "walk"]
    monkeypatch.setattr("wcet.analysis.summaries._bounded_functions", late)
    found = survey(behind, options, StageLog(verbose=False))
    assert missing_in(behind, found) == ["fill", "main", "outer", "walk"]
    assert not found.unfinished


RESULTS = """
int volatile sink, other;
#define N __attribute__((noinline, noclone))
N int tried(void) {
    if (sink) return 0;
    for (int i = 0; i < 50; i++) other = i;
    return 1;
}
N int both(void) {
    if (tried()) return 1;
    for (int i = 0; i < 60; i++) other = i;
    return 0;
}
int main(void) { return both() + both() + tried(); }
"""


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("source", [RESULTS, BEHIND], ids=["results", "behind"])
def test_a_survey_stores_no_bound_that_an_analysis_would_not_find(
    source: str, tmp_path: Path
) -> None:
    """Also under the provisional facts themselves."""
    elf = build(source, "-fno-ipa-cp", optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))
    store = ResultsStore(tmp_path / "store")
    for settings in (SUMMARISED, replace(SUMMARISED, most=1), NEVER):
        options = AnalysisOptions(("main",), "kzm", store=store, summary_settings=settings)
        found = survey(elf, options, StageLog(verbose=False))
        assert bool(found.missing) == (source is BEHIND)
        file = tmp_path / "provisional.facts"
        file.write_text("".join(f"{provisional_facts(one)}\n" for _, one in found.missing))
        given = replace(options, facts=(file,))
        alone = analyse(elf, replace(given, store=NOWHERE), StageLog(verbose=False))
        after = analyse(elf, given, StageLog(verbose=False))
        assert after.entries["main"].cycles == alone.entries["main"].cycles
        assert after.entries["main"].assumptions == alone.entries["main"].assumptions
