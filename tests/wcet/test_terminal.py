"""What is printed on a terminal fits it; what is no terminal gets everything."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.fitting import fitted
from tests.testing.quoll.building import build

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


def on_terminal(columns: int, lines: int, *arguments: str | Path, **variables: str) -> list[str]:
    """The lines that ``wcet`` prints on a terminal of this size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-m", "wcet.cli", *map(str, arguments), "--quiet", "--no-cache"]
    run = subprocess.Popen(
        command, stdout=theirs, env={**kept, "TERM": "xterm", **variables}, close_fds=True
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


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 50), (60, 12)])
def test_one_screen(elf: Path, columns: int, lines: int) -> None:
    found = [COLOUR.sub("", line) for line in on_terminal(columns, lines, *ANALYSE, elf)]
    assert len(found) < lines or lines == 12
    assert max(map(len, found)) <= columns
    text = "\n".join(found)
    assert "assumptions: " in text
    assert "--details" in text
    [head] = [line for line in found if line.startswith("entry ")]
    assert "TLB" not in head  # nothing is charged for it
    assert ("I-misses" if columns > 60 else "other") in head


@pytest.mark.slow
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


@pytest.mark.slow
def test_colours_are_for_terminals_and_can_be_refused(elf: Path) -> None:
    assert any("\x1b[1m" in line for line in on_terminal(80, 24, *ANALYSE, elf))
    assert not any("\x1b" in line for line in on_terminal(80, 24, *ANALYSE, elf, NO_COLOR="1"))
