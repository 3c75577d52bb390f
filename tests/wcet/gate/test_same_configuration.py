"""Comparisons compare the same question, or are refused (rule 52)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main
from wcet.gate.record import BaselineRecord, StatedFact
from wcet.gate.same_configuration import differences

SOURCE = """\
volatile unsigned left;
struct item { struct item *next; } *first;
unsigned main(unsigned a) {
    for (struct item *i = first; i; i = i->next)
        left = a;
    return a + left;
}
"""
SLOWER = SOURCE.replace("left = a;", "left = a, left = a + 1, left = a + 2;")
ASKED = ("--entry", "main", "--platform", "kzm", "--quiet", "--no-cache")


def kernels(folder: Path, old: str, new: str) -> tuple[Path, Path]:
    """Two kernels, each with its own facts beside it."""
    pair = []
    for name, source, facts in (("old", SOURCE, old), ("new", SLOWER, new)):
        elf = Path(shutil.copy(build(source, optimise="-O1"), folder / f"{name}.elf"))
        elf.with_suffix(".facts").write_text(facts)
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "prog.c").write_text(source)
        pair.append(elf)
    return pair[0], pair[1]


@pytest.mark.parametrize("which", ["fewer executions", "one fact more"])
def test_a_regression_under_other_facts_does_not_pass(
    which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The differences are shown; ``--even-if-different`` compares anyway and marks the result."""
    loop = "loop prog.c:4 at most"
    more = "main executes at most 1 times" if which == "one fact more" else ""
    old, new = kernels(tmp_path, f"{loop} 60\n", f"{loop} {60 if more else 9}\n{more}\n")
    assert main(["diff", str(old), str(new), *ASKED]) == 3
    said = capsys.readouterr().err
    assert "have different configurations" in said
    assert "newly stated: '" in said
    assert "--even-if-different" in said
    written = tmp_path / "change.json"
    status = main(
        ["diff", str(old), str(new), *ASKED, "--even-if-different", "--json", str(written)]
    )
    assert status in (0, 1)
    text = capsys.readouterr().out
    assert text.startswith("compared although the configurations differ: ")
    assert json.loads(written.read_text())["differences"]


def test_the_same_facts_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = kernels(
        tmp_path, "loop prog.c:4 at most 60\n", "# more\nloop prog.c:4 at most 60  # here\n"
    )
    assert main(["diff", str(old), str(new), *ASKED]) == 1
    assert "differ" not in capsys.readouterr().out
    old, new = kernels(tmp_path, "loop prog.c:4 at most 60\n", "loop prog.c:4 at most 9\n")
    given = ("--no-facts", "--facts", str(old.with_suffix(".facts")))
    assert main(["diff", str(old), str(new), *ASKED, *given]) == 1


def test_a_baseline_of_other_facts_or_options_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = kernels(tmp_path, "loop prog.c:4 at most 60\n", "loop prog.c:4 at most 9\n")
    baseline = str(tmp_path / "baseline.json")
    assert main(["baseline", str(old), *ASKED, "--output", baseline]) == 0
    assert main(["check", str(new), *ASKED, "--baseline", baseline]) == 3
    assert "write another baseline" in capsys.readouterr().err
    check = ["check", str(old), *ASKED, "--baseline", baseline]
    assert main(check) == 0
    for option, name in (("--l2=on", "--l2"), ("--tlb=last-page", "--tlb")):
        assert main([*check, option]) == 3, option
        assert f"{name} None, now" in capsys.readouterr().err
    assert main([*check, "--l2=on", "--even-if-different"]) in (0, 1)


def test_lines_may_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fact is about the text of its line; the same line of another text is another fact."""
    baseline = str(tmp_path / "baseline.json")
    sources = {
        "old": SOURCE,
        "moved": "/* moved */\n\n" + SOURCE,
        "other": SOURCE.replace("i = i->next)", "i = i->next )"),
    }
    status = {}
    for name, line in (("old", 4), ("moved", 6), ("other", 4)):
        elf = Path(shutil.copy(build(sources[name], optimise="-O1"), tmp_path / "kernel.elf"))
        elf.with_suffix(".facts").write_text(f"loop prog.c:{line} at most 60\n")
        (tmp_path / "prog.c").write_text(sources[name])
        rest = (str(elf), *ASKED, "--source-dir", str(tmp_path))
        write = ["baseline", *rest, "--output", baseline]
        status[name] = main(write if name == "old" else ["check", *rest, "--baseline", baseline])
    assert status == {"old": 0, "moved": 0, "other": 3}
    assert "newly stated: 'loop prog.c:4 at most 60'" in capsys.readouterr().err


def test_another_platform_file_of_the_same_name_is_another_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A comment in it is not."""
    elf, _ = kernels(tmp_path, "loop prog.c:4 at most 60\n", "")
    board, baseline = tmp_path / "board.toml", str(tmp_path / "baseline.json")
    text = Path("wcet/platforms/kzm.toml").read_text()
    status: list[int] = []
    for change in (
        text,
        f"# more\n{text}",
        text.replace("memory_l2_off = { value = 60", "memory_l2_off = { value = 61"),
    ):
        board.write_text(change)
        given = (str(elf), "--entry", "main", "--platform", str(board), "--quiet", "--no-cache")
        if not status:
            status.append(main(["baseline", *given, "--output", baseline]))
        else:
            status.append(main(["check", *given, "--baseline", baseline]))
    assert status == [0, 0, 3]
    assert "platform file" in capsys.readouterr().err


def test_a_report_knows_its_question(tmp_path: Path) -> None:
    old, new = kernels(tmp_path, "loop prog.c:4 at most 60\n", "loop prog.c:4 at most 9\n")
    reports = [str(tmp_path / name) for name in ("old.json", "new.json")]
    for elf, report in zip((old, new), reports, strict=True):
        assert main(["analyse", str(elf), *ASKED, "--json", report]) == 0
    assert main(["diff", *reports, "--quiet"]) == 3
    assert main(["diff", reports[0], str(old), *ASKED]) == 0


RECORD = BaselineRecord("", {}, "kzm", "1", {}, (), asked={"--l2": "None"})


def stated(*facts: tuple[str, str]) -> BaselineRecord:
    return replace(RECORD, stated=tuple(StatedFact(f"f:{i}", *f) for i, f in enumerate(facts)))


def test_facts_are_told_by_what_they_say() -> None:
    here, moved = (
        ("loop a.c:4 at most 9", "loop L at most 9"),
        ("loop a.c:7 at most 9", "loop L at most 9"),
    )
    other = ("loop a.c:4 at most 8", "loop L at most 8")
    assert not differences(stated(here, other), stated(other, moved))
    assert differences(stated(here), stated(other))
    assert differences(stated(here), stated(here, here))
    assert differences(stated(here), stated())
    unknown = (here[0], "")
    assert not differences(stated(unknown), stated(here))
    assert differences(stated(unknown), stated(moved))


def test_platform_version_and_options() -> None:
    assert differences(RECORD, replace(RECORD, platform="other"))
    assert differences(RECORD, replace(RECORD, version="2"))
    assert differences(RECORD, replace(RECORD, asked={"--l2": "True"}))
