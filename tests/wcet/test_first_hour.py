"""The first hour: three commands and two edits to at most 1.3 times the best bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.harness.cases import spread
from tests.testing.programs import needs
from tests.testing.wcet.first_hour import (
    BUILDS,
    best,
    build_handler,
    first_hour,
    missing_compiler,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
DOCUMENT, TABLE = DOCS / "first-hour.md", DOCS / "results/first-hour.md"
COMMANDS, EDITS, RATIO = 3, 2, 1.3
TRIED = ("gcc -Os thumb", "clang -O2 arm", "rustc -O2 arm")  # all: make campaign-first_hour
BUILT = [name for name in TRIED if missing_compiler(name) is None or name.startswith("clang")]


@pytest.mark.slow("starts the command for each step of the guide")
@needs("clang", "ld.lld")
@pytest.mark.parametrize("name", spread(BUILT, 1))
def test_three_commands_and_two_edits(name: str, tmp_path: Path) -> None:
    build_handler(name, tmp_path)
    hour = first_hour(tmp_path)
    assert len(hour.commands) <= COMMANDS
    assert len(hour.edits) <= EDITS
    proposed = "\n".join(output for _, output in hour.commands)
    for _, lines in hour.edits:
        for line in lines:
            form = re.sub(r"(?<=most )\d+", "\0", line)
            form = r"(\d+|N)".join(map(re.escape, form.split("\0")))
            assert re.search(form, proposed), f"not proposed: {line}"
    assert hour.bounds[-1] <= RATIO * best(tmp_path)
    assert 2 * hour.bounds[-1] < hour.bounds[0], "the second edit is worth it"


def test_the_document_tells_the_same_commands() -> None:
    """Written by ``make campaign-first_hour``."""
    text = DOCUMENT.read_text(encoding="utf-8")
    commands = re.findall(r"^    \$ (.*)$", text, re.MULTILINE)
    assert commands == [
        "wcet init handler.elf --quiet",
        "wcet advise --quiet",
        "wcet analyse --quiet --unroll",
    ]
    assert len(re.findall(r"^Edit of `handler\.facts`", text, re.MULTILINE)) == EDITS
    table = TABLE.read_text(encoding="utf-8")
    ratios = re.findall(r"^\| (?:gcc|clang|rustc) .* \| ([\d.]+) \|$", table, re.MULTILINE)
    assert len(ratios) == len(BUILDS)
    assert all(float(ratio) <= RATIO for ratio in ratios)
