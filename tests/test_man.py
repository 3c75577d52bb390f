"""The manual pages: as the grammar of the command line has it, and as roff reads it."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

import pytest

from tests.testing.programs import needs
from wcet.cli import COMMANDS, parser

ROOT = Path(__file__).resolve().parent.parent
MACROS = {"TH", "SH", "SS", "PP", "TP", "B", "BR", "EX", "EE", "ad", "nh", "hy"}
SCRIPT = runpy.run_path(str(ROOT / "scripts/man.py"))
PAGES: dict[str, str] = dict(SCRIPT["pages"]())
BACKSPACED = re.compile(r".\x08|\x1b\[[\d;]*m")


def test_every_command_has_a_page() -> None:
    assert PAGES.keys() == {"wcet.1"} | {f"wcet-{name}.1" for name in COMMANDS}


def test_pages_of_commands_that_are_gone_are_removed(tmp_path: Path) -> None:
    (tmp_path / "wcet-gone.1").touch()
    SCRIPT["write"](tmp_path, PAGES.items())
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_roff(name: str) -> None:
    lines = PAGES[name].splitlines()
    assert lines[0].startswith(".TH WCET")
    assert lines[1] == ".SH NAME"
    assert re.fullmatch(r"wcet(\\-[a-z\\-]+)? \\- .+", lines[2])
    used = {match[1] for line in lines if (match := re.match(r"\.(\S*)", line))}
    assert used <= MACROS
    opened = [line for line in lines if line in (".EX", ".EE")]
    assert opened == [".EX", ".EE"] * (len(opened) // 2)


@pytest.mark.slow("starts groff for each page")
@pytest.mark.parametrize("name", PAGES)
@needs("groff")
def test_a_page_is_rendered(name: str) -> None:
    """Without a warning, with every option, and in 80 columns but for commands."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-rLL=80n", "-P-c"],
        input=PAGES[name], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    shown = BACKSPACED.sub("", done.stdout)
    prose = re.sub(r"\nEXAMPLES\n.*?\n(?=[A-Z])", "\n", shown, flags=re.DOTALL)
    assert max(map(len, prose.splitlines())) <= 80
    command = name.removesuffix(".1").removeprefix("wcet").removeprefix("-")
    top = parser()
    grammar = top
    for each in top.get_default("commands"):
        grammar = each if each.prog == f"wcet {command}" else grammar
    options = {o for action in grammar._actions for o in action.option_strings}
    assert options
    assert not [option for option in options if option not in shown]
