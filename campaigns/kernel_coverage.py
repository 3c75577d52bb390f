"""Branches of the kernel that operations take: ``make campaign-kernel_coverage``.

All sequences by hand, then random operations.

Arguments: operations, preset, seed. Prints per file how many branches were taken at least once, and
the lines that never ran.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from kernels.bilby.verification.fuzz.directed import SEQUENCES
from kernels.bilby.verification.fuzz.host import program, running
from kernels.bilby.verification.fuzz.run import Run, symbols
from kernels.bilby.verification.fuzz.script import Script


def gcov(build: Path) -> list[dict[str, Any]]:
    """The report of gcov for every C file of the kernel."""
    files = []
    for notes in sorted((build / "kernel").glob("*.gcno")):
        done = subprocess.run(
            ["gcov", "--json-format", "--branch-probabilities", "--stdout", str(notes)],
            capture_output=True, text=True, check=True, cwd=build,
        )  # fmt: skip
        for item in json.loads(done.stdout)["files"]:
            if item["file"].endswith(".c"):
                files.append(item)
    return files


def report(files: list[dict[str, Any]]) -> None:
    total = taken = 0
    for item in files:
        branches = [b for line in item["lines"] for b in line["branches"]]
        missed = sorted({line["line_number"] for line in item["lines"] if not line["count"]})
        hit = sum(b["count"] > 0 for b in branches)
        total, taken = total + len(branches), taken + hit
        name = item["file"].rsplit("/", 1)[-1]
        print(f"{name:24} {hit:4} of {len(branches):4} branches; never ran: {missed or '-'}")
    print(f"all                      {taken:4} of {total:4} branches ({taken / total:.1%})")


def main() -> int:
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    preset = sys.argv[2] if len(sys.argv) > 2 else "after"
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    path = program(preset, "coverage")
    for old in (path.parent / "kernel").glob("*.gcda"):
        old.unlink()
    for sequence in SEQUENCES:
        with running(path) as host:
            sequence(Script(host, path, preset))
            host.finish()
    with running(path) as host:
        Run(host, symbols(path), seed, preset).run(operations, force_every=2)
        host.finish()
    print(f"{preset}, {operations} operations, seed {seed}")
    report(gcov(path.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
