"""``wcet.toml``: its values, and the errors for wrong ones."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from quoll.errors import InputError, UsageError
from wcet.gate.project_file import ProjectFile, budget, in_cycles, percent

WHOLE = """
kernel = "build/kernel.elf"
build = "make -s kernel"
platform = "boards/mine.toml"
entries = ["syscall", "irq"]
exits = ["panic+0x4"]
sources = "src"
facts = ["kernel.facts"]
baseline = "bounds.json"
tolerance = 0.5
[budgets]
syscall = 150_000
"interrupt latency" = "350 us"
"""


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "wcet.toml").write_text(WHOLE)
    assert ProjectFile.load(tmp_path / "wcet.toml") == ProjectFile(
        tmp_path / "build/kernel.elf",
        str(tmp_path / "boards/mine.toml"),
        ("syscall", "irq"),
        (tmp_path / "kernel.facts",),
        tmp_path / "src",
        tmp_path / "bounds.json",
        Fraction(1, 200),
        {"syscall": "150000", "interrupt latency": "350 us"},
        "make -s kernel",
        ("panic+0x4",),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "kernel: missing"),
        ('kernel = "k"\nkernels = 1', "kernels: unknown key"),
        ('kernel = "k"\nentries = "all"', "entries: must be a list of strings"),
        ('kernel = "k"\ntolerance = -1', "tolerance: must be a number from 0 on"),
        ('kernel = "k"\ntolerance = nan', "tolerance: must be a number from 0 on"),
        ('kernel = "k"\n[budgets]\na = "5 min"', "budgets.a: must be cycles, or a number with us"),
        ('kernel = "k"\n[budgets]\na = 1.5', "budgets.a: must be an integer or a string"),
        ('kernel = "k"\nbuild = ["make"]', "build: must be a string"),
        ("kernel", "not a TOML file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "wcet.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        ProjectFile.load(tmp_path / "wcet.toml")


def test_budgets_in_cycles_are_rounded_down() -> None:
    assert budget("interrupt latency=350us") == ("interrupt latency", "350us")
    assert in_cycles("350 us", 532_000_000) == 186_200
    assert in_cycles("0.0199 ms", 1_000_000) == 19
    assert in_cycles("1 s", 5) == 5
    assert in_cycles("12", 5) == in_cycles("12 cycles", 5) == 12


@pytest.mark.parametrize("text", ["interrupt", "=5", "a=", "a=5h", "a=-5"])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not ENTRY=LIMIT"):
        budget(text)


def test_percentages() -> None:
    assert percent("0.5") == percent("0.5%") == Fraction(1, 200)
    with pytest.raises(UsageError, match="no percentage"):
        percent("-1")
