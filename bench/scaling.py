"""Time and memory of ``wcet analyse`` against the number of contexts, as a table and a plot.

    python -m bench.scaling build/bench --contexts 100 1000 10000 --seed 1

Every size is a generated program (``bench.program``), analysed by a fresh process without any
cache of earlier results. Written are ``scaling.json``, ``scaling.md`` and ``scaling.svg``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.plot import Series, write_plot
from bench.program import build, generate

__all__ = ["Measured", "main", "measure"]

SIZES = (100, 1_000, 10_000, 40_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Measured:
    """One analysis from end to end, set-up of the interpreter included."""

    contexts: int  # of the full inlining
    cycles: int  # the bound
    wall: float  # seconds
    cpu: float  # seconds, user and system, child processes included
    peak: float  # MiB, the largest process


def measure(contexts: int, seed: int, folder: Path) -> Measured:
    """Generate, compile and analyse one program. Raises CalledProcessError if no bound comes."""
    program = generate(contexts, seed)
    here = folder / str(contexts)
    elf, report = build(program, here), here / "report.json"
    command = [
        str(Path(sys.executable).parent / "wcet"),
        "analyse",
        str(elf),
        "--entry",
        program.entry,
    ]
    command += ["--platform", "kzm", "--paths", "none", "--no-cache", "--json", str(report)]
    before, start = usage(), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - start, usage()
    cycles = json.loads(report.read_text())["entries"][program.entry]["cycles"]
    return Measured(program.contexts, cycles, wall, after[0] - before[0], after[1])


def usage() -> tuple[float, float]:
    """CPU seconds of all children so far, and MiB of the largest one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def table(rows: Sequence[Measured]) -> str:
    """The measurements as Markdown."""
    lines = ["| contexts | bound (cycles) | wall (s) | CPU (s) | peak (MiB) |", "|" + "---|" * 5]
    lines += [
        f"| {r.contexts:,} | {r.cycles:,} | {r.wall:.1f} | {r.cpu:.1f} | {r.peak:.0f} |"
        for r in rows
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """See ``--help``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--contexts", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    rows = []
    for size in sorted(options.contexts):  # ru_maxrss only grows
        rows.append(measure(size, options.seed, options.folder))
        print(table(rows[-1:]).splitlines()[-1], flush=True)
    (options.folder / "scaling.json").write_text(json.dumps([asdict(r) for r in rows], indent=1))
    (options.folder / "scaling.md").write_text(table(rows))
    at = [r.contexts for r in rows]
    series = (
        Series("wall time (s)", at, [r.wall for r in rows]),
        Series("peak memory (MiB)", at, [r.peak for r in rows]),
    )
    write_plot(options.folder / "scaling.svg", "contexts of the full inlining", series)


if __name__ == "__main__":
    main()
