"""Execution of a kernel as witness: ``make campaign-kernel_witness``, ``ARGS=--write``.

Each build of the kernel runs its user-level tests in QEMU with the recorder. Every execution, from
an exception vector to the end, is followed through the extracted graphs with a stack of calls. A
step outside the graphs is a missed edge, and so is a return of a function that never returns
according to extraction. ``--instructions`` of each build are followed. Ends with status 1 if an
edge is missed. With ``--write`` the table in ``docs/results/extraction.md`` is replaced.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from campaigns.documented import markdown, replace
from campaigns.extraction_witness import MissedEdge, Walk
from quoll.extraction.extract import extract
from quoll.recordings.trace import End, Execution, Trace
from tests.testing.harness import build, qemu
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.request import add_analysis, requested

BUILDS = tuple(f"{b}-{p}" for b in ("kzm", "cubieboard") for p in ("before", "after", "latency"))
HEAD = ("build", "executions", "instructions", "blocks", "transfers", "missed")


def defaults() -> AnalysisOptions:
    """An analysis with the defaults of the command line."""
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    return requested(parser.parse_args([]), [])


def followed(run: AnalysisRun, trace: Trace, most: int) -> tuple[int, Walk, list[str]]:
    """The number of executions, their walk, and missed edges; stops at ``most`` instructions."""
    entries = list(run.entries.values())
    walk = Walk(extract(run.image, entries, run.facts, run.exits), entries[0])
    missed: list[str] = []
    count = 0
    for execution in trace.executions:
        if walk.instructions >= most:
            break
        if execution.end is End.STOPPED or execution.entry not in entries:
            continue
        count += 1
        try:
            _follow(walk, execution)
        except MissedEdge as fault:
            missed.append(str(fault))
    return count, walk, missed


def _follow(walk: Walk, execution: Execution) -> None:
    walk.start(execution.entry)
    walk.follow(iter(execution.pcs))
    if not walk.block.exits:
        raise MissedEdge(f"the execution ends after {walk.block.last.addr:#x}")


def row(name: str, most: int) -> tuple[list[str], list[str]]:
    """The cells of a build, and its missed edges."""
    with tempfile.TemporaryDirectory() as folder:
        done = qemu.run_bilby(name, trace=(path := Path(folder) / "tests.trace"))
        assert done.returncode == 0, done.stdout
        wanted = defaults()
        run = AnalysisRun.begin(build.kernel(name), wanted, StageLog(verbose=False))
        count, walk, missed = followed(run, Trace.read(path), most)
    figures = (count, walk.instructions, len(walk.blocks), len(walk.edges), len(missed))
    return [f"`{name}`", *(f"{figure:,}" for figure in figures)], missed


def main() -> int:
    parser = argparse.ArgumentParser(description="Executions of the kernel are in its graphs.")
    parser.add_argument("--instructions", type=int, default=3_000_000, help="of each build")
    parser.add_argument("--build", choices=BUILDS, action="append", help="all without any")
    parser.add_argument("--write", action="store_true", help="into docs/results/extraction.md")
    wanted = parser.parse_args()
    rows, failed = [], False
    for name in wanted.build or BUILDS:
        cells, missed = row(name, wanted.instructions)
        rows.append(cells)
        print(*cells, *missed[:10], sep="\n    ", flush=True)
        failed |= bool(missed)
    if wanted.write:
        replace("results/extraction.md", "kernel witness", markdown(HEAD, rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
