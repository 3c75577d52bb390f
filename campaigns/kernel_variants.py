"""The kernel at every level of optimisation, without any fact: ``make campaign-kernel_variants``.

Built by GCC and Clang at -O0, -O1, -O2 and -Os and analysed for KZM, each build in a process of its
own, without a facts file and without a cache. Options choose builds and entries; ``--write`` puts
the table into ``docs/results/extraction.md``. Ends with status 1 if a loop that paths need has no
bound, or one from a fact.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.corpora_kernel import COMPILERS, build_kernel
from campaigns.documented import replace
from tests.testing.harness import build

__all__ = ["Row", "analysed", "main", "table"]

LEVELS = ("O0", "O1", "O2", "Os")
ENTRIES = ("syscall", "undefined", "prefetch-abort", "data-abort", "interrupt")


@dataclass(frozen=True, slots=True)
class Row:
    """One build: cycles by entry, None where a loop has no bound; loops in their contexts."""

    compiler: str
    level: str
    cycles: dict[str, int | None]
    proved: int
    by_fact: int
    shared: int  # functions with a summary
    seconds: float  # of processor time, solvers and parallel processes included

    @property
    def bounded(self) -> bool:
        """Whether each entry has a number as bound, without facts."""
        return None not in self.cycles.values() and not self.by_fact


def analysed(elf: Path, compiler: str, level: str, entries: tuple[str, ...]) -> Row:
    """Run ``wcet analyse``, as a user would."""
    asked = [f"--entry={name}" for name in entries]
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        command = [sys.executable, "-m", "wcet.cli", "analyse", str(elf), f"--json={answer}"]
        options = ["--platform=kzm", "--no-facts", "--no-cache", "--quiet", "--paths=none"]
        before = os.times()
        run = subprocess.run(
            [*command, *options, *asked],
            cwd=build.ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        after = os.times()
        used = after.children_user + after.children_system
        seconds = used - before.children_user - before.children_system
        if run.stderr:
            print(f"{compiler} -{level}: {run.stderr.strip()}", flush=True)
        found = json.loads(answer.read_text())["entries"] if answer.exists() else {}
    return row(compiler, level, {name: found.get(name) for name in entries}, seconds)


def row(compiler: str, level: str, found: dict[str, Any], seconds: float) -> Row:
    """From the entries of the JSON report; None for one without a bound."""
    known = [entry for entry in found.values() if entry is not None]
    methods = [loop["method"] for entry in known for loop in entry["loops"]]
    assumed = {text for entry in known for text in entry["assumptions"]}
    return Row(
        compiler,
        level,
        {name: None if entry is None else entry["cycles"] for name, entry in found.items()},
        methods.count("nusmv"),
        methods.count("fact"),
        sum(text.startswith("shared: ") for text in assumed),
        seconds,
    )


def table(rows: list[Row], entries: tuple[str, ...]) -> list[str]:
    """The table of ``docs/results/extraction.md``."""
    lines = [
        f"| build | {' | '.join(entries)} | loops proved | by fact | shared | CPU s |",
        f"|---|{'---:|' * (len(entries) + 4)}",
    ]
    for r in rows:
        name = {"gcc": "GCC", "clang": "Clang"}[r.compiler]
        numbers = ["none" if (c := r.cycles[e]) is None else f"{c:,}" for e in entries]
        counts = f"{r.proved} | {r.by_fact} | {r.shared} | {r.seconds:.0f}"
        lines.append(f"| {name} -{r.level} | {' | '.join(numbers)} | {counts} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", choices=tuple(COMPILERS), action="append")
    parser.add_argument("--level", choices=LEVELS, action="append")
    parser.add_argument("--entry", choices=ENTRIES, action="append")
    parser.add_argument("--write", action="store_true", help="into docs/results/extraction.md")
    options = parser.parse_args()
    entries = tuple(options.entry or ENTRIES)
    folder = build.ROOT / "build/corpora/kernel"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for compiler in options.compiler or COMPILERS:
        for level in options.level or LEVELS:
            elf = build_kernel(folder, compiler, level)
            rows.append(analysed(elf, compiler, level, entries))
            print("\n".join(table(rows[-1:], entries)[-1:]), flush=True)
    lines = table(rows, entries)
    print("\n".join(lines))
    if options.write:
        replace("results/extraction.md", "variants", "\n".join(lines) + "\n")
    return 0 if all(r.bounded for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
