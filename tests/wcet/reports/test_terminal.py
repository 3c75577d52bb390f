"""Output to a terminal fits its width; output to a file is complete."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.fitting import fitted
from tests.testing.quoll.building import build
from wcet.cli import COMMANDS, main
from wcet.reports.legend import LEGEND, WORDS, legend

COLOUR = re.compile(r"\x1b\[\d*[mK]")
SOURCE = """\
static int table[64];
__attribute__((noinline)) int a_function_with_a_name_that_is_as_long_as_names_are(int n) {
    int total = 0;
    for (int i = 0; i < 64; i++) total += table[i] * n;
    return total;
}
int main(int n) { return a_function_with_a_name_that_is_as_long_as_names_are(n) + 1; }
"""


@given(st.text("ab c"), st.text("xyz"), st.integers(1, 60))
def test_a_line_fits(plain: str, bold: str, columns: int) -> None:
    line = f"{plain}\x1b[1m{bold}\x1b[0m{plain}"
    found = fitted(line, columns)
    text, shown = COLOUR.sub("", line), COLOUR.sub("", found)
    assert COLOUR.findall(found) == COLOUR.findall(line)
    if len(text) <= columns:
        assert found == line
    else:
        start, _, end = shown.partition("…")
        assert len(shown) == columns
        assert text.startswith(start)
        assert text.endswith(end)


@pytest.fixture(scope="module")
def elf() -> Path:
    return build(SOURCE, optimise="-O1")


@pytest.fixture(scope="module", autouse=True)
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Results of all commands: they ask for the same stages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("results")))
        yield


BARE = ("callgraph", "cfg", "disasm", "explain", "platform", "setup")  # they keep nothing


def on_terminal(
    columns: int, lines: int, *arguments: str | Path, progress: bool = False, **variables: str
) -> list[str]:
    """The lines that ``wcet`` prints on a terminal of this size, with progress if asked for."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    quiet = [] if arguments[0] in BARE else ["--no-cache"] if progress else ["--quiet"]
    command = [sys.executable, "-m", "wcet.cli", *map(str, arguments), *quiet]
    run = subprocess.Popen(
        command,
        stdout=theirs,
        stderr=theirs if progress else None,
        env={**kept, "TERM": "xterm", **variables},
        close_fds=True,
    )
    os.close(theirs)
    data = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        data += part
    os.close(ours)
    assert run.wait() == 0
    return data.decode().splitlines()


ANALYSE = ("analyse", "--entry", "main", "--platform", "kzm")


@pytest.mark.slow("starts the command in a terminal many times")
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 50), (60, 12)])
def test_one_screen(elf: Path, columns: int, lines: int) -> None:
    found = [COLOUR.sub("", line) for line in on_terminal(columns, lines, *ANALYSE, elf)]
    assert len(found) < lines or lines == 12
    assert max(map(len, found)) <= columns
    text = "\n".join(found)
    assert re.search(r"^\d+ assumptions, 0 stated by you, \d+ the .*: --assumptions$", text, re.M)
    assert "--details" in text
    if lines > 12:
        assert "where the cycles of main go" in text
        assert re.search(r"% +64×  a_func.* prog\.c:4, loop :4 at most 64, exact", text), text
        assert "iterations of the loop" not in text, "an exact bound has no remedy"
    [head] = [line for line in found if line.startswith("entry ")]
    assert "TLB" not in head  # nothing is charged for it
    assert ("I-misses" if columns > 60 else "other") in head


@pytest.mark.slow("starts the command in a terminal many times")
def test_details_fit_the_width_and_wide_is_everything(elf: Path) -> None:
    found = [COLOUR.sub("", line) for line in on_terminal(80, 24, *ANALYSE, elf, "--details")]
    assert "loops" in found
    assert max(map(len, found)) <= 80
    wide = [COLOUR.sub("", line) for line in on_terminal(80, 24, *ANALYSE, elf, "--wide")]
    plain = subprocess.run(
        [sys.executable, "-m", "wcet.cli", *ANALYSE, str(elf), "--quiet", "--no-cache"],
        env={**os.environ, "COLUMNS": "40", "LINES": "10"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert wide == plain.stdout.splitlines()


@pytest.mark.slow("starts the command in a terminal many times")
def test_colours_are_for_terminals_and_can_be_refused(elf: Path) -> None:
    assert any("\x1b[1m" in line for line in on_terminal(80, 24, *ANALYSE, elf))
    assert not any("\x1b" in line for line in on_terminal(80, 24, *ANALYSE, elf, NO_COLOR="1"))


@pytest.mark.slow("starts the command in a terminal many times")
def test_a_terminal_that_clears_no_line_gets_plain_ones(elf: Path) -> None:
    assert any("\x1b[K" in line for line in on_terminal(80, 24, *ANALYSE, elf, progress=True))
    found = on_terminal(80, 24, *ANALYSE, elf, progress=True, TERM="dumb")
    assert "wcet: read" in found
    assert not any("\x1b" in line for line in found)


SCREENS: dict[str, tuple[str, ...]] = {
    "advise": ("advise", "ELF", "--entry", "main", "--platform", "kzm"),
    "analyse": ("analyse", "ELF", "--entry", "main", "--platform", "kzm", "--details"),
    "cache": ("cache", "ELF", "--entry", "main", "--platform", "kzm"),
    "callgraph": ("callgraph", "ELF"),
    "cfg": ("cfg", "ELF"),
    "check": ("check", "ELF", "--entry", "main", "--budget", "main=1s", "--platform", "kzm"),
    "diff": ("diff", "ELF", "ELF", "--entry", "main", "--platform", "kzm"),
    "disasm": ("disasm", "ELF", "main"),
    "explain": ("explain", "E105"),
    "latency": ("latency", "ELF", "--entry", "main", "--platform", "kzm"),
    "loops": ("loops", "ELF", "--entry", "main", "--platform", "kzm"),
    "path": ("path", "ELF", "--entry", "main", "--platform", "kzm"),
    "pin": ("pin", "ELF", "--entry", "main", "--platform", "kzm"),
    "platform": ("platform", "list"),
    "prove": ("prove", "ELF", "--entry", "main", "--platform", "kzm"),
    "refine": ("refine", "ELF", "--entry", "main", "--platform", "kzm"),
    "setup": ("setup", "--list"),
    "timing": ("timing", "ELF", "main", "--platform", "kzm"),
    "values": ("values", "ELF", "main", "--platform", "kzm"),
}
ELSEWHERE = {
    "baseline": "it writes a file, and prints a line for each entry, as check does",
    "check-facts": "it needs a recording: tests/wcet/executions",
    "completion": "it prints a script",
    "help": "it prints a page as it is written",
    "init": "it writes a file",
    "masked": "it needs a kernel with an interrupt: tests/wcet/commands/test_masked.py",
    "sweep": "it prints one table: tests/wcet/sweep/test_command.py",
    "replay": "it needs a recording: tests/wcet/executions",
}
EXPLAINED = {
    "analyse": {"I-misses", "own", "execution"},
    "cache": {"NC", "runs"},
    "loops": {"execution", "exact"},
    "path": {"issue", "own"},
    "timing": {"issue", "not classified"},
    "values": {"any"},
}


def test_every_command_has_a_screen() -> None:
    assert SCREENS.keys() | ELSEWHERE.keys() == COMMANDS.keys()
    assert not SCREENS.keys() & ELSEWHERE.keys()


@pytest.mark.slow("starts the command in a terminal many times")
@pytest.mark.parametrize("name", SCREENS)
def test_80_columns_and_their_words(name: str, elf: Path) -> None:
    """Every line fits; a legend explains exactly the project's terms that occur."""
    words = [str(elf) if word == "ELF" else word for word in SCREENS[name]]
    found = [COLOUR.sub("", line) for line in on_terminal(80, 24, *words)]
    assert found
    assert max(map(len, found)) <= 80
    text = " ".join("\n".join(found).partition(LEGEND)[2].split())
    told = {w.word for w in WORDS if f"{w.word}: {w.meaning}" in text}
    assert told >= EXPLAINED.get(name, set())
    assert name in EXPLAINED or name == "advise" or not text
    body = "\n".join(found).partition(LEGEND)[0]
    assert all(w.is_in(body) or "…" in body for w in WORDS if w.word in told)


def test_the_glossary_has_the_words_of_the_screens() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/glossary.md").read_text()
    rows = page.partition("## Words on screens")[2]
    wanted = [f"| {w.word} | {', '.join(w.commands)} | {w.meaning} |" for w in WORDS]
    assert [line for line in rows.splitlines() if line.startswith("| ")][1:] == wanted


def test_a_legend_has_only_what_is_there() -> None:
    assert legend("cache", "12 AH, 3 FM", 80) == [
        "words   AH: always hit; FM: first miss: at most one each time a loop or function",
        "        is entered",
    ]
    assert legend("cache", "12 AHA, prepaid, un-paid", 80) == []
    assert legend("help", "12 AH", 80) == []


TWO_LOOPS = """\
struct item { struct item *next; } *first, *second;
volatile int total;
void main(void) {
    for (struct item *i = first; i; i = i->next) total++;
    for (struct item *i = second; i; i = i->next) total += 2;
}
"""


def test_one_error_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(TWO_LOOPS, optimise="-O1")
    status = main(["analyse", str(elf), "--entry", "main", "--platform", "kzm", "--no-cache"])
    lines = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert status == 6
    assert [line[: line.index(" the loop has")].split()[-1] for line in lines] == [
        "prog.c:4:",
        "prog.c:5:",
    ]
    assert all(line.startswith("wcet: error E") for line in lines)
    assert lines[1].endswith("--suggest-facts FILE)")
