"""``wcet baseline`` and ``wcet check`` as users run them: their failures and messages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.testing.harness import build
from wcet.cli import main

pytestmark = [pytest.mark.slow("analyses for each gate"), pytest.mark.xdist_group("gate")]

SOURCE = """\
volatile unsigned left;

__attribute__((noinline)) void unused(void) { left = 1; }

__attribute__((noinline)) unsigned part(unsigned a) {
    left = a;
    return a + left;
}

unsigned handler(unsigned a) {
    return part(a) + 1;
}
"""
LOOP = "    for (unsigned i = 0; i < 32; i++) left = i;\n"
SLOWER = SOURCE.replace("    left = a;\n", LOOP + "    left = a;\n")
COMPILER = [
    "arm-none-eabi-gcc",
    "-mcpu=arm1136jf-s",
    "-marm",
    "-O1",
    "-g",
    "-ffreestanding",
    "-falign-functions=32",
]
LINKED = ["-nostdlib", "-Wl,-Ttext=0xf0010000", "-Wl,-e,handler", "-Wl,--no-warn-rwx-segments"]
ASKED = ["--entry", "handler", "--platform", "kzm", "--quiet"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    compiled(SOURCE)
    assert main(["baseline", "kernel.elf", *ASKED]) == 0
    return tmp_path


def compiled(source: str, name: str = "kernel.c") -> None:
    Path(name).write_text(source)
    subprocess.run([*COMPILER, *LINKED, name, "-o", "kernel.elf"], check=True)


def checked(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["check", "kernel.elf", *ASKED, *options])
    return status, capsys.readouterr().out


@pytest.mark.slow("several whole analyses")
def test_a_loop_on_the_path_is_named_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = checked(capsys)
    assert before[0] == 0
    assert before[1].endswith("passed\n")
    compiled(SLOWER)
    status, text = checked(capsys)
    assert status == 1
    rows = text.splitlines()
    assert "worse than the baseline" in rows[0]
    assert "  part kernel.c:6  for (unsigned i = 0; i < 32; i++) left = i;" in rows[1]
    assert "    new loop in part kernel.c:6: at most 32" in rows
    compiled(SOURCE)
    assert checked(capsys) == before


def test_what_is_not_on_the_path_leaves_every_byte(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = ["--json", "a.json", "--markdown", "a.md", "--junit", "a.xml", "--sarif", "a.sarif"]
    before = checked(capsys, *outputs)
    files = [Path(name).read_bytes() for name in outputs[1::2]]
    compiled(SOURCE.replace("{ left = 1; }", "{ left = 1; left = 2; left = 3; }"))
    assert checked(capsys, *outputs) == before
    assert [Path(name).read_bytes() for name in outputs[1::2]] == files


@pytest.mark.slow("several whole analyses")
def test_a_renamed_file_and_moved_lines_change_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = checked(capsys)
    compiled("\n\n/* moved */\n" + SOURCE, "renamed.c")
    assert checked(capsys) == before


@pytest.mark.slow("several whole analyses")
def test_what_other_programs_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled(SLOWER)
    status, text = checked(
        capsys, "--json", "a.json", "--markdown", "a.md", "--junit", "a.xml", "--sarif", "a.sarif",
        "--annotations",
    )  # fmt: skip
    assert status == 1
    assert "::error file=kernel.c,line=6::handler: worse than the baseline: +" in text
    document = json.loads(Path("a.json").read_text())
    change = document["entries"]["handler"]
    assert not document["passed"]
    assert change["after"] - change["before"] == sum(one["cycles"] for one in change["lines"])
    suite = ElementTree.parse("a.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "part kernel.c:6" in str(failure.text)
    (run,) = json.loads(Path("a.sarif").read_text())["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("kernel.c", 6)
    assert "**worse than the baseline**" in Path("a.md").read_text()


@pytest.mark.slow("several whole analyses")
def test_both_forges_show_the_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each result has a place, as GitLab's code quality reports and GitHub's SARIF require.

    Fingerprints are distinct, and they stay the same when lines move.
    """
    files = ["--code-quality", "quality.json", "--sarif", "a.sarif"]
    twice = SLOWER.replace("return part(a) + 1;", "left = 3;\n    return part(a) + 1;")
    compiled(twice)
    assert checked(capsys, *files)[0] == 1
    found = json.loads(Path("quality.json").read_text())
    assert found[0]["location"] == {"path": "kernel.c", "lines": {"begin": 6}}
    assert found[0]["severity"] == "major"
    assert "handler: " in found[0]["description"]
    marks = [one["fingerprint"] for one in found]
    assert len(marks) == len(set(marks)) > 1
    compiled("\n\n" + twice)
    assert checked(capsys, *files)[0] == 1
    again = json.loads(Path("quality.json").read_text())
    assert [one["fingerprint"] for one in again] == marks
    assert again[0]["location"]["lines"] == {"begin": 8}
    compiled(SOURCE)
    assert checked(capsys, *files, "--budget", "handler=1")[0] == 1  # no line is to blame
    (one,) = json.loads(Path("quality.json").read_text())
    assert one["location"] == {"path": "wcet.toml", "lines": {"begin": 1}}
    (run,) = json.loads(Path("a.sarif").read_text())["runs"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    assert checked(capsys, *files)[0] == 0
    assert json.loads(Path("quality.json").read_text()) == []


@pytest.mark.slow("several whole analyses")
def test_a_path_is_escaped_as_each_forge_asks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(SLOWER, "a b,c%41:d.c")
    status, text = checked(capsys, "--sarif", "a.sarif", "--annotations")
    assert status == 1
    assert "::error file=a b%2Cc%2541%3Ad.c,line=6::" in text
    (run,) = json.loads(Path("a.sarif").read_text())["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "a%20b%2Cc%2541%3Ad.c"}


@pytest.mark.slow("several whole analyses")
def test_budgets_and_tolerance(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, "--budget", "handler=1us")[0] == 1
    assert checked(capsys, "--budget", "handler=1ms")[0] == 0
    compiled(SLOWER)
    assert checked(capsys, "--tolerance", "1000")[0] == 0


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--baseline", "none.json"], 3),
        (["--baseline", "kernel.elf"], 3),
        (["--budget", "handler"], 3),
        (["--entry", "nothing"], 3),
        (["--end", "nowhere"], 3),
        (["--facts", "wrong.facts"], 3),
        (["--end", "part+4", "--facts", "never.facts"], 2),
    ],
)
def test_what_is_wrong_and_what_cannot_be_done_have_a_status_each(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], status: int
) -> None:
    Path("wrong.facts").write_text("the handler is fast\n")
    Path("never.facts").write_text("part never returns\nignore handler+8\nignore part\n")
    assert checked(capsys, *options)[0] == status


def test_a_wrong_command_line_is_no_failure_to_analyse(folder: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "kernel.elf", "--fast"])
    assert ended.value.code == 3


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"schema_version": 2}', "\0", "null"])
def test_a_damaged_baseline_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    Path("wcet-baseline.json").write_text(damage)
    capsys.readouterr()
    assert main(["check", "kernel.elf", *ASKED]) == 3
    assert "is not a baseline" in capsys.readouterr().err


def test_a_project_file_stands_for_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wcet.toml").write_text(
        'kernel = "kernel.elf"\nplatform = "kzm"\nentries = ["handler"]\n'
        '[budgets]\nhandler = "1 ms"\n'
    )
    assert main(["check", "--quiet"]) == 0
    assert main(["analyse", "--quiet", "--paths", "none"]) == 0
    Path("wcet.toml").write_text('kernel = "kernel.elf"\nplatform = "kzm"\nentries = ["part"]\n')
    assert main(["check", "--quiet"]) == 1
    assert "handler" in capsys.readouterr().out


@pytest.mark.slow("several whole analyses")
def test_the_project_file_builds_the_kernel(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The build's output is not on stdout; if the build fails, no old ELF file is analysed."""
    words = " ".join([*COMPILER, *LINKED, "kernel.c", "-o", "kernel.elf"])
    project = 'kernel = "kernel.elf"\nplatform = "kzm"\nentries = ["handler"]\n'
    Path("wcet.toml").write_text(f'{project}build = "echo building && {words}"\n')
    Path("kernel.elf").unlink()
    Path("kernel.c").write_text(SLOWER)
    assert main(["check", "--json", "-"]) == 1
    printed = capfd.readouterr()
    assert json.loads(printed.out)["entries"]["handler"]["verdict"] == "worse"
    assert "wcet: build: echo building" in printed.err
    Path("kernel.c").write_text("no C")
    assert main(["check", "--quiet"]) == 2
    assert main(["analyse", "--quiet"]) == 11
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "kernel.c:1:" in printed.err
    assert "error E114: the build of wcet.toml failed, status 1" in printed.err
    assert main(["check", "kernel.elf", *ASKED]) == 1  # the last one that was built


def test_the_project_file_ends_paths(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``exits`` are assumptions, like the ends of ``--end``; the baseline has none of them."""
    Path("wcet.toml").write_text(
        'kernel = "kernel.elf"\nplatform = "kzm"\nentries = ["handler"]\nexits = ["part"]\n'
    )
    assert main(["check", "--quiet"]) == 3
    assert "newly stated: 'path must end at part'" in capsys.readouterr().err
    assert main(["check", "--quiet", "--even-if-different"]) == 0
    text = capsys.readouterr().out
    assert "less" in text or "better" in text
    assert "new assumption: " in text
    assert "path must end at part" in text


def test_entries_that_are_named_are_compared_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--entry", "handler", "--entry", "part", "--platform", "kzm", "--quiet"]
    assert main(["baseline", "kernel.elf", *both]) == 0
    status, text = checked(capsys)
    assert status == 0
    assert "part" not in text
    project = 'kernel = "kernel.elf"\nplatform = "kzm"\n[budgets]\npart = 1\n'
    Path("wcet.toml").write_text(project)
    assert main(["check", "--entry", "handler", "--quiet"]) == 0
    assert main(["check", "--entry", "handler", "--entry", "part", "--quiet"]) == 1


def test_a_source_file_cannot_command_a_terminal_or_a_forge(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(SLOWER.replace("left = i;", "left = i; /* \x1b[2J ```` */"))
    status, text = checked(capsys, "--markdown", "a.md", "--junit", "a.xml", "--annotations")
    assert status == 1
    assert "\x1b" not in text + Path("a.md").read_text() + Path("a.xml").read_text()
    ElementTree.parse("a.xml")


@pytest.mark.slow("several whole analyses")
def test_the_kernel_that_is_shipped_passes(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever changes a bound writes the baseline again, and says why: ``wcet baseline``."""
    monkeypatch.chdir(build.ROOT)
    assert main(["check", "--quiet"]) == 0, capsys.readouterr().out
