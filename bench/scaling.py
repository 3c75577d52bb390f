"""Time and memory of ``wcet analyse`` against the number of contexts, as a table and a plot.

    python -m bench.scaling build/bench --contexts 1000 10000 --seed 1

Every size is a generated program (``bench.program``), analysed by a fresh process with an empty
cache. ``scaling.json`` is written after each size: a stopped run continues, unless the code has
changed. Then ``scaling.md`` and ``scaling.svg`` are written. Below 6,000 contexts a program is
inlined in full; above, functions called from many contexts get a summary. ``--write`` puts the
table into ``docs/results/performance.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.program import build, generate
from campaigns.documented import replace
from quoll.results.versions import file_version, versions

__all__ = ["Measured", "main", "measure"]

ROOT = Path(__file__).resolve().parent.parent
CODE = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
SIZES = (1_000, 10_000, 100_000, 550_000)
WCET = Path(sys.executable).with_name("wcet")


@dataclass(frozen=True, slots=True)
class Measured:
    """One analysis from end to end, including the start of the interpreter."""

    contexts: int  # of the full inlining
    cycles: int | None  # the bound; None: out of time
    wall: float  # seconds
    cpu: float  # seconds, user and system, child processes included
    peak: float  # MiB, the largest process


def measure(contexts: int, seed: int, folder: Path, limit: float) -> Measured:
    """Generate, compile and analyse one program, for at most ``limit`` wall seconds.

    Raises CalledProcessError if the analysis fails.
    """
    program = generate(contexts, seed)
    here = folder / str(contexts)
    elf, report, cache = build(program, here), here / "report.json", here / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    command: list[object] = [WCET, "analyse", elf, "--entry", program.entry, "--platform", "kzm"]
    command += ["--paths", "none", "--quiet", "--cache", cache, "--json", report]
    before, start = usage(), time.monotonic()
    cycles = None
    if finishes([str(part) for part in command], limit, here / "messages.txt"):
        cycles = json.loads(report.read_text())["entries"][program.entry]["cycles"]
    wall, after = time.monotonic() - start, usage()
    return Measured(program.contexts, cycles, wall, after[0] - before[0], after[1])


def finishes(command: Sequence[str], limit: float, log: Path) -> bool:
    """Whether a run finishes within ``limit`` seconds. Raises CalledProcessError if it fails."""
    with (
        log.open("w") as messages,
        subprocess.Popen(
            command, stdout=messages, stderr=messages, start_new_session=True
        ) as process,
    ):
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False
    if status:
        raise subprocess.CalledProcessError(status, command)
    return True


def usage() -> tuple[float, float]:
    """CPU seconds of all children so far, and MiB of the largest one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def table(rows: Sequence[Measured]) -> str:
    """The measurements as Markdown."""
    lines = ["| contexts | bound (cycles) | wall (s) | CPU (s) | peak (MiB) |", "|" + "---|" * 5]
    lines += [
        f"| {r.contexts:,} | {'no answer' if r.cycles is None else f'{r.cycles:,}'} "
        f"| {r.wall:.1f} | {r.cpu:.1f} | {r.peak:.0f} |"
        for r in rows
    ]
    return "\n".join(lines) + "\n"


def measured(sizes: Sequence[int], seed: int, folder: Path, limit: float) -> Iterator[Measured]:
    """The rows of all sizes; rows of an earlier run of the same code are reused."""
    file = folder / "scaling.json"
    code = [*map(list, versions(*CODE)), file_version(ROOT / "bench/program.py")]
    kept: dict[str, dict[str, Any]] = {}
    if file.is_file():
        before = json.loads(file.read_text())
        if (before["code"], before["seed"], before["limit"]) == (code, seed, limit):
            kept = before["rows"]
    for size in sorted(sizes):
        if str(size) not in kept:
            # A process of its own: ru_maxrss only grows.
            command = [sys.executable, "-m", "bench.scaling", folder, "--one", size]
            command += ["--seed", seed, "--limit", limit]
            done = subprocess.run(
                [str(part) for part in command], check=True, stdout=subprocess.PIPE, cwd=ROOT
            )
            kept[str(size)] = json.loads(done.stdout)
            folder.mkdir(parents=True, exist_ok=True)
            document = {"code": code, "seed": seed, "limit": limit, "rows": kept}
            file.write_text(json.dumps(document, indent=1))
        yield Measured(**kept[str(size)])


def main(arguments: Sequence[str] | None = None) -> None:
    """See ``--help``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--contexts", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600.0, help="wall seconds for each size")
    parser.add_argument("--one", type=int, help="measure this size and print it as JSON")
    parser.add_argument("--write", action="store_true", help="into docs/results/performance.md")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    if options.one is not None:
        print(json.dumps(asdict(measure(options.one, options.seed, folder, options.limit))))
        return
    rows = []
    for row in measured(options.contexts, options.seed, folder, options.limit):
        rows.append(row)
        print(table(rows[-1:]).splitlines()[-1], flush=True)
    (folder / "scaling.md").write_text(table(rows))
    if options.write:
        replace("results/performance.md", "growth", table(rows).rstrip("\n"))
    draw(folder / "scaling.svg", [r for r in rows if r.cycles is not None])


def draw(path: Path, rows: Sequence[Measured]) -> None:
    """Draw the plot of the finished analyses."""
    from bench.plot import Series, write_plot

    at = [r.contexts for r in rows]
    series = (
        Series("wall time (s)", at, [r.wall for r in rows]),
        Series("CPU time (s)", at, [r.cpu for r in rows]),
        Series("peak memory (MiB)", at, [r.peak for r in rows]),
    )
    write_plot(path, "contexts of the full inlining", series)


if __name__ == "__main__":
    main()
