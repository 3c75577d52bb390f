"""Help and pages as wide as a terminal: nothing of them is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.harness.build import ROOT
from wcet.cli import parser
from wcet.reports.prose import filled, page_filled

PAGES = sorted((ROOT / "docs").glob("*.md"))
WORD = re.compile(r"[\w.-]+")


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_have_all_words_in_lines_that_fit(page: Path, columns: int) -> None:
    """Only text to copy is longer, and a line of one word that does not fit."""
    text = page.read_text()
    lines = page_filled(text, columns).splitlines()
    shown = re.sub(r"<!--.*?-->|^ *\|[-:| ]+$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert set(WORD.findall("\n".join(lines))) >= set(WORD.findall(shown))
    fenced = "\n".join(re.findall(r"```.*?```", text, re.DOTALL)).splitlines()
    whole = {*fenced, *(line for line in text.splitlines() if line.startswith(("    ", "#")))}
    filled_lines = (line for line in lines if line not in whole)
    assert [line for line in filled_lines if len(line) > columns and " " in line.strip()] == []


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_of_every_command(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples are whole: they are to be copied."""
    monkeypatch.setenv("COLUMNS", str(columns))
    top = parser()
    for grammar in (top, *top.get_default("commands")):
        text = grammar.format_help()
        long = [line for line in text.splitlines() if len(line) > columns]
        assert [line for line in long if not line.startswith("  ")] == [], grammar.prog
        assert [line for line in long if "wcet" not in line and "kernels/" not in line] == []


def test_items_hang_and_what_is_to_be_copied_stays() -> None:
    text = (
        "One two three\nfour five.\n\nexamples:\n  wcet analyse kernel.elf --entry syscall\n\n"
        "status:\n   0  it went well and\n      nothing else\n  10  bad\n"
    )
    assert filled(text, 20).splitlines() == [
        *("One two three four", "five.", "", "examples:"),
        *("  wcet analyse kernel.elf --entry syscall", "", "status:"),
        *("   0  it went well", "      and nothing", "      else", "  10  bad"),
    ]


def test_a_row_of_a_table_begins_with_its_first_cell() -> None:
    text = "| word | means |\n|---|---|\n| `a \\| b` | one of them | |\n"
    assert page_filled(text, 40) == "word\n    means\n`a | b`\n    one of them\n"
