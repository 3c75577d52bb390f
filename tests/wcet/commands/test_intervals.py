"""The interval of a bound: stored executions stand beside it, and refute one that is below them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from quoll.recordings.trace import End
from quoll.results.results_store import ResultsStore
from tests.testing.quoll.recordings import Run, recording
from tests.testing.wcet.interrupts import kernel as built
from tests.testing.wcet.schemas import faults
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.raw_memory import LoadedMemory
from wcet.analysis.result import AnalysisResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.seen_executions import SeenExecution, SeenExecutions
from wcet.analysis.stage_times import SilentStageLog
from wcet.cli import main
from wcet.reports.result_text import TextStyle
from wcet.reports.screen import Screen, to_screen

pytestmark = pytest.mark.slow("analyses a kernel several times")

SOURCE = "unsigned table[64];\nunsigned main(unsigned a) { return table[a & 63]; }\n"
SOURCE += "void handler(void) { table[0]++; }\n"
UNDEFINED = 0xFFFF0004  # the vector of the shortest path: one instruction
BARE = ("kernel.elf", "--platform", "kzm", "--quiet")
KERNEL = (*BARE, "--cache", "store")
ENTRY = ("--entry", "undefined")
LONG = SeenExecution(1_000_000, None, "a test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel, its baseline, and a recording that ``wcet replay`` has replayed."""
    found = tmp_path_factory.mktemp("intervals")
    (found / "kernel.elf").write_bytes(built(SOURCE, "-O1").read_bytes())
    (found / "a.trace").write_bytes(recording([Run([UNDEFINED], [], End.OUTSIDE, [])]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        assert main(["baseline", *KERNEL, *ENTRY, "--output", "before.json"]) == 0
        assert main(["replay", "a.trace", "--kernel", *KERNEL]) == 0
    return found


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


def stored() -> SeenExecutions:
    """The executions of the kernel, under options with which entry ``undefined`` is analysed."""
    asked = AnalysisOptions(("undefined",), "kzm", store=ResultsStore(Path("store")))
    run = AnalysisRun.begin(Path("kernel.elf"), asked, SilentStageLog())
    return run.seen


def test_a_replay_makes_an_interval(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyse", *KERNEL, *ENTRY, "--json", "found.json", "--html", "found.html"]) == 0
    text = capsys.readouterr().out
    interval = re.search(
        r"^undefined: (\[seen ([\d,]+), charged ([\d,]+), bound ([\d,]+)\] by .*a\.trace)$",
        text,
        re.M,
    )
    assert interval
    seen, charged, bound = (int(figure.replace(",", "")) for figure in interval.groups()[1:])
    assert 0 < seen <= charged <= bound
    document = json.loads(Path("found.json").read_text())
    assert not faults("analyse", document)
    assert document["entries"]["undefined"]["cycles"] == bound
    assert document["entries"]["undefined"]["seen"]["cycles"] == seen
    assert interval[1] in Path("found.html").read_text()


def test_nothing_is_said_without_an_execution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyse", *KERNEL, "--entry", "prefetch-abort"]) == 0
    assert main(["analyse", *BARE, "--no-cache", *ENTRY]) == 0
    assert "seen" not in capsys.readouterr().out


@pytest.mark.parametrize("lines", [24, 50])
def test_a_screen_has_one_sentence_about_it(result: AnalysisResult, lines: int) -> None:
    style = TextStyle(color=False, paths="brief", stats=False, columns=80)
    screen = Screen(80, lines)
    without = replace(result, entries={n: replace(e, seen=None) for n, e in result.entries.items()})
    shown, bare = (to_screen(one, style, screen) for one in (result, without))
    [sentence] = [row for row in shown.splitlines() if "[seen " in row]
    assert "seen" not in bare
    assert len(sentence) <= 80
    assert len(shown.splitlines()) < lines


@pytest.fixture
def result() -> AnalysisResult:
    from wcet.analysis.analysis import analyse

    asked = AnalysisOptions(("undefined",), "kzm", store=ResultsStore(Path("store")))
    return analyse(Path("kernel.elf"), asked, SilentStageLog())


def test_the_longest_execution_is_stored_and_content_is_its_key() -> None:
    seen = stored()
    before = seen.of("undefined", UNDEFINED)
    assert before is not None
    seen.add("undefined", UNDEFINED, SeenExecution(before.cycles - 1, None, "shorter"))
    assert seen.of("undefined", UNDEFINED) == before
    for other in (
        replace(seen.options, parameters={"n": 1}),
        replace(seen.options, loaded_memory=LoadedMemory(from_reset=True)),
    ):
        assert replace(seen, options=other).of("undefined", UNDEFINED) is None
    slower = replace(seen.platform, name="other")
    assert replace(seen, platform=slower).of("undefined", UNDEFINED) is None
    same = replace(seen, image=seen.image.starting_with(()))
    assert same.of("undefined", UNDEFINED) in (None, before)


def test_an_execution_above_the_bound_is_an_error_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In the analysis and in the gate, also if only the baseline of this kernel knows it."""
    other = [*BARE, "--cache", str(tmp_path), *ENTRY]
    check = ["check", *other, "--baseline", "before.json", "--json", "-"]
    assert main(check) == 0
    replace(stored(), store=ResultsStore(tmp_path)).add("undefined", UNDEFINED, LONG)
    assert main(["analyse", *other]) == 12
    assert "error E115: entry undefined: an execution takes 1,000,000" in capsys.readouterr().err
    assert main(check) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["entries"]["undefined"]["verdict"] == "unsound"
    assert "error E115" in printed.err
    assert main(["baseline", *other, "--output", "seen.json"]) == 0
    assert not faults("baseline", json.loads(Path("seen.json").read_text()))
    assert main(["check", *KERNEL, *ENTRY, "--baseline", "seen.json"]) == 1
