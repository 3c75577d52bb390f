"""``wcet.toml``: kernel, entries and budgets, so that commands need no options.

kernel = "build/kernel.elf"     # paths are relative to this file
build = "make kernel"           # a command of the shell that builds it, run here before it is read
platform = "kzm"                # or the path of a platform file; default: by build attributes
entries = ["syscall", "interrupt"]          # default: all of the platform
exits = ["panic+0x4"]                       # paths end here, too, as with --end
sources = "src"                 # where the compiler ran; default: where this file is
facts = ["kernel.facts"]
baseline = "wcet-baseline.json"             # the default
tolerance = 0.5                             # per cent by which a bound may grow; default: 0
[budgets]                                   # cycles, or text with us, ms or s
syscall = 150_000
"interrupt latency" = "350 us"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from pathlib import Path

from quoll.errors import InputError, UsageError
from wcet.platforms.toml_table import TomlTable

__all__ = ["BASELINE", "FILE", "ProjectFile", "budget", "in_cycles", "percent"]

FILE = "wcet.toml"
BASELINE = "wcet-baseline.json"
UNITS = {
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
}
BUDGET = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(us|µs|ms|s|cycles)?")


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """The content of the file; paths are absolute, or relative to the current folder."""

    kernel: Path
    platform: str | None = None
    entries: tuple[str, ...] = ()
    facts: tuple[Path, ...] = ()
    sources: Path = Path()
    baseline: Path = Path(BASELINE)
    tolerance: Fraction = Fraction(0)
    budgets: Mapping[str, str] = field(default_factory=dict)
    build: str | None = None
    exits: tuple[str, ...] = ()

    @staticmethod
    def load(path: Path) -> ProjectFile:
        """Read the file. Raises InputError for a wrong entry in it."""
        table, folder = TomlTable.load(path), path.parent
        lists = ("entries", "exits", "facts")
        texts = {key: table.texts(key) for key in lists if table.present(key)}
        build = table.text("build") if table.present("build") else None
        platform = table.text("platform") if table.present("platform") else None
        if platform is not None and platform.endswith(".toml"):
            platform = str(folder / platform)
        budgets = table.table("budgets") if table.present("budgets") else None
        baseline = table.text("baseline") if table.present("baseline") else BASELINE
        sources = table.text("sources") if table.present("sources") else "."
        tolerance = Fraction(0)
        if table.present("tolerance"):
            tolerance = table.fraction("tolerance") / 100
        kernel = table.text("kernel")
        table.close()
        limits: dict[str, str] = {}
        for name in budgets.remaining() if budgets else ():
            assert budgets is not None
            limits[name] = budgets.number_or_text(name)
            if BUDGET.fullmatch(limits[name]) is None:
                raise budgets.error(name, "must be cycles, or a number with us, ms or s")
        return ProjectFile(
            folder / kernel,
            platform,
            texts.get("entries", ()),
            tuple(folder / name for name in texts.get("facts", ())),
            folder / sources,
            folder / baseline,
            tolerance,
            limits,
            build,
            texts.get("exits", ()),
        )


def budget(text: str) -> tuple[str, str]:
    """The two parts of ``ENTRY=LIMIT`` on a command line. Raises UsageError for other text."""
    name, equals, limit = text.rpartition("=")
    if not (name and equals) or BUDGET.fullmatch(limit) is None:
        raise UsageError(
            f"--budget {text} is not ENTRY=LIMIT",
            hint="LIMIT is cycles, or a number with us, ms or s: --budget interrupt=50us",
        )
    return name, limit


def in_cycles(limit: str, clock_hz: int) -> int:
    """A budget in cycles, rounded down. Raises InputError for other text."""
    match = BUDGET.fullmatch(limit)
    if match is None:
        raise InputError(f"{limit!r} is no budget", hint="cycles, or a number with us, ms or s")
    number, unit = Fraction(match[1]), match[2] or "cycles"
    return floor(number if unit == "cycles" else number * UNITS[unit] * clock_hz)


def percent(text: str) -> Fraction:
    """A percentage as a fraction of 1. Raises UsageError."""
    if re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,6})?%?", text) is None:
        raise UsageError(f"--tolerance {text} is no percentage")
    return Fraction(text.rstrip("%")) / 100
