"""``wcet sweep``: a table of the bounds of many kernels, boards and options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quoll.terminal import clearing
from wcet.atomic import publish_document
from wcet.numbers import seconds
from wcet.request import add_command, add_count, add_json
from wcet.sweep.analysis_run import run_analysis
from wcet.sweep.cluster import Outcome, ResultFolder, run_tasks
from wcet.sweep.matrix import Analysis, read_matrix
from wcet.sweep.table import Row, bound_text, rows_of, to_csv, to_markdown
from wcet.sweep.task import Task

__all__ = ["add_to"]

SCHEMA_VERSION = 1
FOLDER = "sweep-results"
SECONDS = 3600.0

DESCRIPTION = """\
Analyse many kernels, with many platforms and options, and print one table.

MATRIX.toml names them: each of its kernels is analysed for each of its platforms with each of its
options, by a process of its own. Dask schedules the analyses: on all processors of this machine,
or on the workers of a cluster whose scheduler --scheduler names. Workers must have the same
version of this program, and the files at the same paths.

A result is stored in a folder as soon as it is there. A sweep that was stopped goes on where it
ended; an analysis whose kernel, facts, platform file, options and program are unchanged is not
done again. Only facts in files count: NAME.facts beside NAME.elf, and files that the matrix names.

  entries = ["syscall", "interrupt"]  # default: all
  platforms = ["kzm", "board.toml"]   # default: by the ELF
  [[kernels]]
  files = ["build/*/kernel.elf"]      # from this file on
  facts = ["common.facts"]
  [options.plain]
  arguments = []
  [options.l2]
  arguments = ["--l2", "on"]
"""
EXAMPLES = """\
examples:
  wcet sweep presets.toml --markdown bounds.md --csv bounds.csv
  wcet sweep presets.toml --workers 4
  wcet sweep presets.toml --scheduler tcp://10.0.0.1:8786
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "a table of the bounds of many kernels, boards and options"
    p = add_command(commands, "sweep", text, DESCRIPTION, EXAMPLES, run)
    p.add_argument("matrix", type=Path, metavar="MATRIX.toml", help="kernels, platforms, options")
    p.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster (default: this machine)"
    )
    add_count(p, "--workers", 1, "processes of this machine (default: one a processor)")
    p.add_argument(
        "--results",
        type=Path,
        metavar="DIR",
        help=f"where results are stored (default: {FOLDER} beside the matrix)",
    )
    p.add_argument(
        "--each",
        type=seconds("--each"),
        default=SECONDS,
        metavar="SECONDS",
        help=f"limit of each analysis, on the clock (default: {SECONDS:.0f})",
    )
    p.add_argument("--csv", type=Path, metavar="FILE", help="write the table as CSV, with times")
    p.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    add_json(p, "the table and all assumptions")
    p.add_argument("--quiet", action="store_true", help="print no progress")


def run(options: argparse.Namespace) -> int:
    """Sweep, and print; the status is 1 if an entry has no bound."""
    analyses = read_matrix(options.matrix)
    tasks = [_task(one, options.each) for one in analyses]
    folder = ResultFolder(options.results or options.matrix.parent / FOLDER)
    progress = _Progress(len(tasks), quiet=options.quiet)
    outcomes = run_tasks(
        tasks, folder, progress.ended, scheduler=options.scheduler, workers=options.workers
    )
    rows = rows_of(analyses, outcomes)
    publish_document(
        options,
        lambda: to_json(rows, outcomes),
        lambda: to_text(rows),
        [(options.csv, lambda: to_csv(rows)), (options.markdown, lambda: to_markdown(rows))],
    )
    return int(any(row.error for row in rows))


def _task(analysis: Analysis, seconds: float) -> Task:
    name = f"{run_analysis.__module__}:{run_analysis.__name__}"
    argument = {**asdict(analysis), "seconds": seconds}
    return Task(f"{analysis.label} {analysis.platform} {analysis.options}", name, argument)


class _Progress:
    """A line on standard error for each analysis that ends."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total, self._quiet = total, quiet
        self._ended = 0

    def ended(self, task: Task, outcome: Outcome, dashboard: str) -> None:
        if self._quiet:
            return
        if not self._ended:
            print(f"wcet: dashboard of the scheduler: {dashboard}", file=sys.stderr)
        self._ended += 1
        error = outcome.failure or outcome.result["error"]
        text = f"{self._ended} of at most {self._total}: {task.name}"
        print(f"{clearing()}wcet: {text}{': ' + error if error else ''}", file=sys.stderr)


def to_text(rows: Sequence[Row]) -> Iterator[str]:
    """The table in columns."""
    head = ("kernel", "platform", "options", "entry", "cycles", "µs")
    cells = [(r.kernel, r.platform, r.options, r.entry, *bound_text(r)) for r in rows]
    widths = [max(map(len, column)) for column in zip(head, *_numbers(cells), strict=True)]
    for row in (head, *cells):
        left = (cell.ljust(width) for cell, width in zip(row[:4], widths[:4], strict=True))
        right = (cell.rjust(width) for cell, width in zip(row[4:], widths[4:], strict=True))
        yield "  ".join((*left, *right)).rstrip()


def _numbers(cells: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows that determine the widths of columns: texts of errors do not."""
    return [row if row[5] else (*row[:4], "", "") for row in cells]


def to_json(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The document; docs/schemas/sweep.schema.json describes it."""
    found = {
        text: None
        for outcome in outcomes
        if outcome.failure is None
        for text in outcome.result.get("assumptions", ())
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "rows": [asdict(row) for row in rows],
        "assumptions": list(found),
    }
