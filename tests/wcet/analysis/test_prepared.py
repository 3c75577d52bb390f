"""Runs that reuse the stored results of an earlier run (rule 30)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from quoll.results.results_store import DIGEST, MAGIC
from tests.testing.harness.cases import spread
from tests.testing.quoll.building import build
from tests.testing.wcet.kept_program import CODE, PROGRAM
from wcet.cli import main

pytestmark = pytest.mark.usefixtures("all_processors")


class Runs:
    """Runs on one program with one cache."""

    def __init__(self, folder: Path) -> None:
        self.elf = build(PROGRAM, "-fno-inline", link=(CODE,))
        self.folder, self.facts = folder, folder / "my.facts"
        self.cache = folder / "cache"
        self.facts.write_text("")

    def __call__(self, *more: str, entry: str = "pick", status: int = 0) -> dict[str, Any]:
        """The JSON of a run."""
        out = self.folder / "out.json"
        arguments = ["analyse", str(self.elf), "--platform", "kzm", "--quiet", "--entry", entry]
        arguments += ["--cache", str(self.cache), "--facts", str(self.facts), "--json", str(out)]
        assert main([*arguments, *more]) == status
        document: dict[str, Any] = json.loads(out.read_text()) if not status else {}
        return document

    @property
    def records(self) -> list[Path]:
        """Files of whole entries."""
        start = len(MAGIC) + DIGEST
        found = sorted(self.cache.glob("*.quoll"))
        return [
            f
            for f in found
            if b"wcet.analysis.prepared:PreparedRecord" in zlib.decompress(f.read_bytes()[start:])
        ]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def recalled(document: dict[str, Any]) -> bool:
    """Whether the stages before the integer program were left out."""
    return "extract" not in document["stages"]


def answer(document: dict[str, Any]) -> dict[str, Any]:
    """All but the time it took."""
    for entry in document["entries"].values():
        for loop in entry["loops"]:
            loop.pop("seconds", None)
    return {key: value for key, value in document.items() if key != "stages"}


@pytest.mark.slow("several whole analyses")
def test_a_second_run_says_the_same(runs: Runs) -> None:
    first, second = runs(), runs()
    assert (recalled(first), recalled(second)) == (False, True)
    assert answer(first) == answer(second)
    assert not recalled(runs("--no-cache"))


@pytest.mark.slow("several whole analyses")
def test_entries_side_by_side_are_as_one_after_another(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one has no record of an earlier run, and one has."""
    runs(entry="work")
    documents = []
    for processors in ({0}, {0, 1}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, found=processors: found)
        documents.append(runs("--entry", "main", "--entry", "work", "--no-cache"))
    documents.append(runs("--entry", "main", "--entry", "work"))
    assert [list(document["entries"]) for document in documents] == [["pick", "main", "work"]] * 3
    assert answer(documents[0]) == answer(documents[1]) == answer(documents[2])
    assert documents[1]["stages"].keys() >= {"extract", "values", "cache", "pipeline"}


@pytest.mark.slow("several whole analyses")
def test_an_edited_constraint_solves_only_the_integer_program(runs: Runs) -> None:
    before = runs()["entries"]["pick"]["cycles"]
    for text in ("prog.c:12 conflicts with prog.c:14 in pick", "prog.c:6 executes at most 9 times"):
        runs.facts.write_text(f"# found in a trace\n{text}\n")
        after = runs()
        assert recalled(after)
        assert after["entries"]["pick"]["cycles"] < before
        assert any(text in assumption for assumption in after["assumptions"])


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    "change",
    [["--l2", "off"], ["--platform", "kzm-paper"], ["--end", "work"], ["--time-limit", "9"]],
)
def test_whatever_a_record_follows_from_makes_another_one(runs: Runs, change: list[str]) -> None:
    runs()
    same = change == ["--l2", "off"]  # as the platform file says
    assert recalled(runs(*change)) == same


@pytest.mark.slow("several whole analyses")
def test_a_loop_fact_makes_another_record_and_may_move(runs: Runs) -> None:
    runs.facts.write_text("loop prog.c:20 at most 6\n")
    assert not recalled(runs(entry="drain"))
    runs.facts.write_text("loop prog.c:20 at most 5\n")
    assert not recalled(runs(entry="drain"))
    runs.facts.write_text("# one line more\n\nloop prog.c:20  at most 5\n")
    moved = runs(entry="drain")
    assert recalled(moved)
    (loop,) = moved["entries"]["drain"]["loops"]
    assert "my.facts:3 (assumed" in loop["evidence"]
    assert any("my.facts:3 (assumed" in text for text in moved["assumptions"])


@pytest.mark.slow("several whole analyses")
def test_what_has_no_bound_is_asked_again(runs: Runs) -> None:
    runs(entry="drain", status=6)
    assert runs.records == []
    runs.facts.write_text("loop prog.c:20 at most n\n")
    assert not recalled(runs(entry="drain"))
    runs.facts.write_text("loop prog.c:20 at most n + 4\n")
    assert recalled(runs(entry="drain")), "the parameter is the integer program's"


COUNTED = """\
unsigned main(void) {
    unsigned x = 0, most = *(unsigned *)0xf0100000 & 1023;
    for (unsigned i = 0; i < most; i++)
        __asm__ volatile("" : "+r"(x));
    return x;
}
"""


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("first", spread([1, 0], 1))
def test_a_dump_that_may_be_written_is_another_question(tmp_path: Path, first: int) -> None:
    """A regression: ``--raw F@A`` got the stored, far too small bound of ``--raw F@A:r``."""
    elf = build(COUNTED, "-O1", link=(CODE,))
    (tmp_path / "most").write_bytes((5).to_bytes(4, "little"))

    def cycles(*more: str, flag: str) -> int:
        out = tmp_path / "out.json"
        dump = f"{tmp_path / 'most'}@0xf0100000{flag}"
        arguments = ["analyse", str(elf), "--platform", "kzm", "--quiet", "--entry", "main"]
        assert main([*arguments, "--raw", dump, "--json", str(out), *more]) == 0
        found: int = json.loads(out.read_text())["entries"]["main"]["cycles"]
        return found

    alone = {flag: cycles("--no-cache", flag=flag) for flag in (":r", "")}
    assert alone[""] > 5 * alone[":r"]
    kept = ("--cache", str(tmp_path / "cache"))
    order = [":r", ""] if first else ["", ":r"]
    assert {flag: cycles(*kept, flag=flag) for flag in order * 2} == alone


def unusable(folder: Path, what: str) -> tuple[dict[str, str], list[str]]:
    """Something wrong with where results are to be kept: environment, options."""
    file = folder / "file"
    file.write_text("")
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    home = str(folder / "home")
    return {
        "option is a file": ({}, ["--cache", str(file)]),
        "option below a file": ({}, ["--cache", str(file / "x")]),
        "no file system for it": ({}, ["--cache", "/proc/quoll"]),
        "option is writable": ({}, ["--cache", str(shared)]),
        "folder above is writable": ({}, ["--cache", str(shared / "x")]),
        "cache home is a file": ({"XDG_CACHE_HOME": str(file)}, []),
        "cache home is relative": ({"XDG_CACHE_HOME": "cache", "HOME": home}, []),
        "home is a file": ({"HOME": str(file)}, []),
        "home is empty": ({"HOME": ""}, []),
        "limit is no number": ({"HOME": home, "QUOLL_CACHE_MIB": "all"}, []),
    }[what]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("what", [
    "option is a file", "option below a file", "no file system for it", "option is writable",
    "folder above is writable", "cache home is a file", "cache home is relative",
    "home is a file", "home is empty", "limit is no number",
])  # fmt: skip
def test_a_cache_that_cannot_be_used_costs_a_warning(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
) -> None:
    """It ended the run, or nothing was said, and a folder of everybody's was believed."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    environment, options = unusable(tmp_path, what)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    elf = build(PROGRAM, "-fno-inline", link=(CODE,))
    arguments = ["analyse", str(elf), "--platform", "kzm", "--quiet", "--entry", "work"]
    for _ in range(2):
        assert main([*arguments, *options]) == 0
        printed = capsys.readouterr()
        assert "worst-case execution time" in printed.out
        assert printed.err.count("wcet: warning:") == printed.err.count("\n") == 1


@pytest.mark.slow("several whole analyses")
def test_damage_is_as_if_there_was_nothing(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    first = runs()
    (record,) = runs.records
    record.write_bytes(record.read_bytes()[:-7])
    again = runs()
    assert not recalled(again)
    assert answer(again) == answer(first)
    assert capsys.readouterr().err.count("\n") == 1
    assert recalled(runs())
    runs.cache.chmod(0o777)
    assert not recalled(runs()), "anybody could have written it"
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow("several whole analyses")
def test_a_recalled_entry_needs_no_stage_before_the_integer_program() -> None:
    """The command imports the stages before the integer program only when it needs them.

    They are half of all imports. The check runs in a new process, because this one has imported
    them.
    """
    code = "import sys, wcet.commands.analyse; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    imported = set(done.stdout.split())
    stages = {
        "quoll.extraction.extract",
        "quoll.value_analysis.value_results",
        "cache.classify",
        "pipeline.charge",
    }
    assert "wcet.analysis.analysis" in imported
    assert all(find_spec(name) for name in stages)
    others = {"capstone", "pypcode", "networkx", "pulp", "urllib.request"}
    assert not imported & {*stages, *others, "loopbounds.bounds"}


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(("most", "label"), [(1, "assumed"), (2, "proved"), (3, "proved")])
def test_a_count_that_the_loops_imply_is_proved(runs: Runs, most: int, label: str) -> None:
    runs.facts.write_text(f"work executes at most {most} times\n")
    assert [fact["label"] for fact in runs()["fact_labels"]] == [label]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(("most", "label"), [(15, "assumed"), (16, "proved")])
def test_a_count_in_a_proved_loop_is_multiplied(runs: Runs, most: int, label: str) -> None:
    runs.facts.write_text(f"prog.c:6 executes at most {most} times\n")
    assert [fact["label"] for fact in runs()["fact_labels"]] == [label]
