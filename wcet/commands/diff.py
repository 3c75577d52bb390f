"""``wcet diff``: two kernels, or two results, with the lines that changed the bound."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from quoll.errors import UsageError, WcetError
from quoll.input_files import Unreadable, read_input
from quoll.spelling import did_you_mean
from wcet.analysis.analysis import analyse
from wcet.analysis.stage_times import StageLog
from wcet.comparison_output import add_exchange, own_status, publish_comparison
from wcet.gate.compare import compare
from wcet.gate.project_file import percent
from wcet.gate.record import LARGEST, LATENCY, BaselineRecord, read, recorded
from wcet.gate.same_configuration import differences, refuse_different
from wcet.project_options import given_here
from wcet.request import add_analysis, add_command, add_entries, requested

__all__ = ["add_to"]

DESCRIPTION = """\
Compare two kernels. OLD and NEW are each an ELF, which is analysed now, or a result that 'wcet
baseline' or 'wcet analyse --json' has written. A result has no source lines: only its bounds
and causes are compared. Two results are compared only if facts, platform, options and version are
the same; --even-if-different compares others, too, and prints the differences. An ELF that is
compared with a result is analysed for the entries of the result, and as the wcet.toml of the
current folder says, if there is one.

Output and exit status are as of 'wcet check': 0 no bound grew; 1 an entry did; 2 a kernel
cannot be analysed; 3 the command line or a file is wrong
"""
EXAMPLES = """\
examples:
  wcet diff old/kernel.elf new/kernel.elf --entry syscall
  wcet diff wcet-baseline.json build/kernel.elf
  wcet diff monday.json today.json --markdown -
"""
ELF = b"\x7fELF"
ALIKE = "give both the same facts, platform and options, as with --no-facts --facts FILE"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "compare two kernels or two results"
    p = add_command(commands, "diff", text, DESCRIPTION, EXAMPLES, run)
    p.add_argument("baseline", type=Path, metavar="OLD", help="an ELF, or a result as JSON")
    p.add_argument("kernel", type=Path, metavar="NEW", help="an ELF, or a result as JSON")
    add_entries(p)
    add_exchange(p)
    add_analysis(p)


def run(options: argparse.Namespace) -> int:
    """Compare two records and print; returns the exit status."""
    try:
        tolerance = Fraction(0) if options.tolerance is None else percent(options.tolerance)
        paths = (options.baseline, options.kernel)
        _like_the_result(options, paths)
        old, new = (_record(options, path) for path in paths)
        if not options.even_if_different:
            refuse_different(old, new, (str(options.baseline), str(options.kernel)), ALIKE)
        differing = differences(old, new)
        if options.entry and "all" not in options.entry:
            unknown = [n for n in options.entry if not (old.names | new.names) & {n}]
            if unknown:
                names = ", ".join(sorted(old.names | new.names))
                near = did_you_mean(unknown[0], old.names | new.names)
                raise UsageError(
                    f"no entry {unknown[0]!r} in either",
                    hint=f"{near} there are {names}" if near else f"there are {names}",
                )
            chosen = frozenset(options.entry)
            old, new = old.restricted_to(chosen), new.restricted_to(chosen)
        if not (old.has_lines and new.has_lines):
            old, new = old.without_lines(), new.without_lines()
        found = replace(compare(old, new, {}, tolerance), differences=differing)
        return publish_comparison(options, found)
    except WcetError as fault:
        raise own_status(fault) from fault


def _like_the_result(options: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Fill in the options with which an ELF is comparable to the only result of the two."""
    results = [path for path in paths if not _is_elf(path)]
    if len(results) != 1:
        return
    chosen = options.entry
    given_here(options)
    options.entry = chosen or sorted(read(results[0]).names - {LATENCY})


def _is_elf(path: Path) -> bool:
    try:
        return read_input(path, LARGEST).startswith(ELF)
    except Unreadable as error:
        raise UsageError(f"{path} {error}", hint="give an ELF, or a result as JSON") from error


def _record(options: argparse.Namespace, path: Path) -> BaselineRecord:
    """The record of an ELF, or read from a file. Raises WcetError."""
    if not _is_elf(path):
        return read(path)
    stages = StageLog(verbose=not options.quiet)
    result = analyse(path, requested(options, options.entry), stages)
    return recorded(result, options.source_dir or Path())
