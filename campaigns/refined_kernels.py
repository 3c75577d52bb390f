"""Intervals of refined bounds: ``make campaign-refined_kernels ARGS='--build kzm-after --write'``.

``wcet refine`` for each entry of builds of the shipped kernel, in an empty results store, and
again. The lower end of an interval is the charge in the model of a path that ends, of a state that
the first run has found. A program of the kernel drives it into paths that this search does not find
(``STEERED``): it is recorded in QEMU, and the charge of the longest execution is the lower end if
it is higher; the table marks it. A build is BOARD-PRESET; without ``--build``, all
of them are made and measured. With ``--write``, the table in ``docs/refinement.md`` gets each row
when it is known, and keeps the rows of other builds. Ends with status 1 if a second run gives
another bound, or a lower end exceeds its bound.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.documented import inside, markdown, replace
from campaigns.kernel_bounds import sizes
from tests.testing.harness import build, qemu

BOARDS = ("kzm", "cubieboard")
PRESETS = ("before", "after", "latency", "mcs")
BUILDS = tuple(f"{board}-{preset}" for board in BOARDS for preset in PRESETS)
ENTRIES = ("syscall", "undefined", "prefetch-abort", "data-abort", "interrupt")
HEAD = ("build", "entry", "bound U", "lower end L", "U / L", "ends because", "cold, s", "again, s")
WCET = str(Path(sys.executable).with_name("wcet"))
# By preset: a program of kernels/bilby/user.
STEERED = {"before": "fixed_sizes", "after": "steer", "latency": "latency", "mcs": "steer"}
MARK = " (recorded)"
TABLE = "intervals"
DOCUMENT = "refinement.md"


@dataclass(frozen=True, slots=True)
class Refined:
    """A run of ``wcet refine``: cycles, and seconds of processor time."""

    cycles: int
    charged: int | None  # of the longest execution known, if its path ends
    ending: str
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", choices=BUILDS, action="append")
    parser.add_argument("--write", action="store_true", help=f"into docs/{DOCUMENT}")
    options = parser.parse_args()
    good = True
    for name in options.build or BUILDS:
        board, preset = name.split("-")
        make = ["make", "-s", "-C", str(build.ROOT / "kernels/bilby")]
        subprocess.run([*make, f"BOARD={board}", f"PRESET={preset}"], check=True)
        given = sizes() if preset == "before" else {}
        charges = recorded(name, board, STEERED[preset], given)
        rows = []
        for entry in ENTRIES:
            with tempfile.TemporaryDirectory() as store:
                cold, again = (refined(name, board, entry, given, Path(store)) for _ in range(2))
            lower = charges.get(entry)
            rows.append(row(name, entry, cold, again, lower))
            good &= cold.cycles == again.cycles
            good &= max(cold.charged or 0, lower or 0) <= cold.cycles
            print(markdown(HEAD, rows[-1:]).splitlines()[-1], flush=True)
            if options.write:
                write(name, rows)
    return 0 if good else 1


def refined(name: str, board: str, entry: str, given: Mapping[str, int], store: Path) -> Refined:
    """One run, with ``given`` numbers. Raises CalledProcessError where it fails."""
    command = ["refine", str(kernel(name)), "--platform", board, "--entry", entry]
    before = os.times()
    found = document([*command, *numbers(given), "--cache", str(store)])
    after = os.times()
    used = [after[n] - before[n] for n in (2, 3)]  # of ended children
    charged = found["seen"] and found["seen"]["charged_cycles"]
    return Refined(found["cycles"], charged, found["ending"], sum(used))


def recorded(name: str, board: str, program: str, given: Mapping[str, int]) -> dict[str, int]:
    """By entry: cycles charged for the longest execution while ``program`` runs in QEMU.

    Raises CalledProcessError where ``wcet replay`` fails, or finds an execution above its bound.
    """
    with tempfile.TemporaryDirectory() as folder:
        qemu.record(trace := Path(folder) / program, name, program)
        command = ["replay", str(trace), "--kernel", str(kernel(name)), "--platform", board]
        found = document([*command, *numbers(given), "--states=2", "--seed=1"])
    charges = {e: one["most_charged_cycles"] for e, one in found["entries"].items()}
    return {entry: charged for entry, charged in charges.items() if charged is not None}


def kernel(name: str) -> Path:
    """The file of a build."""
    return build.ROOT / "build/bilby" / name / "kernel.elf"


def numbers(given: Mapping[str, int]) -> list[str]:
    """The options of the parameters' numbers."""
    return [f"--set={parameter}={number}" for parameter, number in given.items()]


def document(arguments: list[str]) -> dict[str, Any]:
    """The JSON document that a command of ``wcet`` writes. Raises CalledProcessError."""
    command = [WCET, *arguments, "--quiet", "--json", "-"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(
    name: str, entry: str, cold: Refined, again: Refined, steered: int | None
) -> tuple[str, ...]:
    """The cells of ``HEAD``; ``steered``: cycles charged for a recorded execution."""
    charged = max(cold.charged or 0, steered or 0)
    mark = MARK if charged == steered else ""
    ratio = f"{cold.cycles / charged:.2f}" if charged else "-"
    lower = f"{charged:,}{mark}" if charged else "-"
    seconds = [f"{one.seconds:.0f}" for one in (cold, again)]
    ending = cold.ending.replace("_", " ")
    return f"`{name}`", entry, f"{cold.cycles:,}", lower, ratio, ending, *seconds


def write(name: str, rows: list[tuple[str, ...]]) -> None:
    """Replace the rows of a build in the document; they are in the order of ``BUILDS``."""
    lines = inside((build.ROOT / "docs" / DOCUMENT).read_text(encoding="utf-8"), TABLE).splitlines()
    known = [tuple(line.strip("| ").split(" | ")) for line in lines[2:]]
    left = [cells for cells in known if cells[0] != f"`{name}`"]
    ordered = sorted([*left, *rows], key=lambda cells: BUILDS.index(cells[0].strip("`")))
    replace(DOCUMENT, TABLE, markdown(HEAD, ordered).rstrip())


if __name__ == "__main__":
    sys.exit(main())
