"""``wcet baseline`` and ``wcet check``: reject a kernel with a higher bound."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from quoll.errors import UsageError, WcetError
from wcet.analysis.analysis import analyse
from wcet.analysis.entries import ALL
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish
from wcet.comparison_output import add_exchange, own_status, publish_comparison
from wcet.gate.compare import RecordChange, compare
from wcet.gate.project_file import BASELINE, FILE, budget, in_cycles, percent
from wcet.gate.record import BaselineRecord, read, recorded, to_json
from wcet.gate.same_configuration import differences, refuse_different
from wcet.project_options import add_project, given
from wcet.refinement.carry_over import carry_over
from wcet.request import add_analysis, add_command, requested

__all__ = ["add_to"]

BASELINE_TEXT = """\
Analyse, and write the baseline of 'wcet check': bounds, the cycles of every source line on the
worst paths, bounds of loops, assumptions, and hashes of the kernel and its facts.

Commit the file beside the sources, and write it again after an intended change of a bound.
"""
BASELINE_EXAMPLES = """\
examples:
  wcet baseline build/kernel.elf
  wcet baseline                         as wcet.toml says
  wcet baseline build/kernel.elf --output tests/kernel-baseline.json
"""
CHECK_TEXT = """\
Analyse, and compare with a baseline and with budgets.

For each entry it prints the old and the new bound, and the differences: source lines of the worst
path with more or fewer cycles, the greatest increase first, new loops, changed bounds. Function and
text identify a line: moved lines and renamed files change nothing.
With --entry only these entries are compared.

exit status: 0 it passes; 1 an entry is slower than its baseline or its budget, has lost its bound,
or is not analysed any more; 2 the kernel cannot be analysed; 3 the command line or a file is wrong
"""
CHECK_EXAMPLES = """\
examples:
  wcet check                            as wcet.toml says
  wcet check build/kernel.elf --budget interrupt=50us --budget "interrupt latency=350us"
  wcet check build/kernel.elf --baseline old.json --tolerance 0.5 --markdown comment.md
  wcet check --junit wcet.xml --sarif wcet.sarif
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register both commands."""
    p = add_command(
        commands, "baseline", "write down the bounds of a kernel for 'wcet check'",
        BASELINE_TEXT, BASELINE_EXAMPLES, run_baseline,
    )  # fmt: skip
    add_project(p)
    p.add_argument(
        "--output", type=Path, metavar="FILE", help=f"the baseline (default: {BASELINE})"
    )
    add_analysis(p)
    text = "fail if a kernel became slower"
    p = add_command(commands, "check", text, CHECK_TEXT, CHECK_EXAMPLES, run_check)
    add_project(p)
    p.add_argument(
        "--baseline", type=Path, metavar="FILE",
        help=f"the baseline (default: {BASELINE} if it is there, or as {FILE} says)",
    )  # fmt: skip
    p.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="ENTRY=LIMIT",
        help="cycles, or a number with us, ms or s, that an entry or 'interrupt latency' may take "
        "at most; repeatable",
    )
    add_exchange(p)
    add_analysis(p)


def run_baseline(options: argparse.Namespace) -> int:
    """Analyse and write the record."""
    project = given(options)
    options.output = options.output or (project.baseline if project else Path(BASELINE))
    record, _ = measured(options)
    if record.unbounded:
        name, reason = next(iter(record.unbounded.items()))
        raise UsageError(f"entry {name} has no bound, so there is no baseline: {reason}")
    bounds = (
        f"{name}: {entry.formula or f'{entry.cycles:,} cycles'}"
        for name, entry in record.entries.items()
    )
    files = [(options.output, lambda: to_json(record))]
    publish(options, files, lambda: (*bounds, f"written to {options.output}"))
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Analyse and compare; an error has the status of a comparison (``own_status``)."""
    try:
        return publish_comparison(options, compared(options))
    except WcetError as fault:
        raise own_status(fault) from fault


def compared(options: argparse.Namespace) -> RecordChange:
    """The requested comparison. Raises WcetError."""
    chosen = frozenset(options.entry)
    project = given(options)
    alone = bool(chosen) and ALL not in chosen
    limits = dict(project.budgets if project else {})
    if alone:
        limits = {name: limit for name, limit in limits.items() if name in chosen}
    limits |= dict(map(budget, options.budget))
    path = options.baseline or (project.baseline if project else Path(BASELINE))
    old = read(path) if options.baseline or path.exists() or not limits else None
    if old is not None and alone:
        old = replace(old, entries={n: e for n, e in old.entries.items() if n in chosen})
    tolerance = project.tolerance if project else Fraction(0)
    if options.tolerance is not None:
        tolerance = percent(options.tolerance)
    record, result = measured(options)
    differing: tuple[str, ...] = ()
    if old is not None:
        if not options.even_if_different:
            names = f"the baseline {path}", str(options.kernel)
            refuse_different(old, record, names, "write another baseline: wcet baseline")
        differing = differences(old, record)
    budgets = {name: in_cycles(text, result.platform.clock_hz) for name, text in limits.items()}
    found = replace(compare(old, record, budgets, tolerance), differences=differing)
    return replace(found, gone_assumptions=()) if alone else found  # others may have them


def measured(options: argparse.Namespace) -> tuple[BaselineRecord, AnalysisResult]:
    """The record of the present kernel, and its result."""
    stages = StageLog(verbose=not options.quiet)
    wanted = requested(options, options.entry)
    carry_over(options.kernel, wanted, stages)
    result = analyse(options.kernel, wanted, stages)
    for name, error in result.unbounded.items():
        for paragraph in error.paragraphs or (str(error),):
            print(f"wcet: error {error.code}: entry {name}: {paragraph}", file=sys.stderr)
    for unsound in result.unsound:
        print(*(f"wcet: {text}" for text in unsound.coded), file=sys.stderr)
    return recorded(result, wanted.sources), result
