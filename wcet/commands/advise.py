"""``wcet advise``: suggestions that lower the bound of an entry."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from quoll.errors import UsageError
from quoll.fitting import fitted
from quoll.terminal import clearing
from wcet.advice.recorded import recorded
from wcet.advice.search import Advice, AdviceSearch
from wcet.advice.suggestion import Suggestion
from wcet.analysis.analysis import analyse
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish_document
from wcet.numbers import seconds
from wcet.process import send_output
from wcet.project_options import add_project, given
from wcet.reports.result_text import TextStyle
from wcet.request import (
    add_analysis,
    add_color,
    add_command,
    add_count,
    add_json,
    colored,
    columns_of,
    requested,
)

__all__ = ["add_to"]

SCHEMA_VERSION = 1
SUGGESTIONS = 10

DESCRIPTION = """\
Print suggestions that lower a bound: counts of loops and calls on the worst path, undescribed
memory, options. Each has the lines for a facts file, or the option, and the cycles that it saves;
those that save most for each line come first. Each is tried: the entry is bounded again. On a
terminal each is printed when it is found. Ctrl-C, or --within, ends the search early.

Write a line only if it is true. 'wcet check-facts' and 'wcet replay' test it on recorded
executions.
"""
EXAMPLES = """\
examples:
  wcet advise kernel.elf --entry syscall
  wcet advise kernel.elf --entry syscall --recording tests.trace
  wcet advise                            the worst entry of the kernel that wcet.toml names
  wcet advise kernel.elf --entry syscall --json - | jq '.levers[0].line'
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "facts and options that lower a bound, with the cycles saved"
    p = add_command(commands, "advise", text, DESCRIPTION, EXAMPLES, run)
    add_project(p)
    text = f"how many to print, the largest first (default: {SUGGESTIONS})"
    add_count(p, "--levers", 1, text, default=SUGGESTIONS)
    p.add_argument(
        "--recording",
        action="append",
        dest="traces",
        type=Path,
        default=[],
        metavar="TRACE",
        help="a recording of kernels/recorder: counts are then the largest of its executions; "
        "places that run as often as on the worst path give no suggestion; repeatable",
    )
    p.add_argument(
        "--within",
        type=seconds("--within"),
        metavar="SECONDS",
        help="try no longer than that (default: until all is tried)",
    )
    add_json(p, "them")
    add_analysis(p)
    add_color(p)


def run(options: argparse.Namespace) -> int:
    """Analyse, try, print; returns the exit status. Raises UsageError without a numeric bound."""
    if len(options.entry) > 1:
        raise UsageError("wcet advise is about one entry", hint="without --entry, the worst one")
    given(options)
    wanted = requested(options, options.entry)
    stages = StageLog(verbose=not options.quiet)
    result = analyse(options.kernel, wanted, stages)
    entry = max(result.entries.values(), key=lambda one: one.cycles)
    with stages.stage("advise", entry.name):
        recordings = recorded(options.kernel, wanted, entry, options.traces)

        def progress(line: str) -> None:
            stages.say(f"trying: {line}")

        live = sys.stdout.isatty() and not options.json
        found = (
            partial(send_found, entry, columns_of(options)) if live else (lambda suggestion: None)
        )
        search = AdviceSearch(options.levers, options.within, progress, found)
        advice = search(result, entry, wanted, recordings)
    stages.done()
    style = TextStyle(color=colored(options), paths="full", stats=False)
    publish_document(
        options,
        lambda: to_json(result, entry, advice.suggestions),
        lambda: to_text(result, entry, advice, style),
    )
    return 0


def send_found(entry: EntryResult, columns: int | None, suggestion: Suggestion) -> None:
    """Print a suggestion at once, in one line; the table of all of them comes at the end."""
    line = "; ".join(suggestion.line.split("\n"))
    share = f"{suggestion.saves / entry.cycles:.1%}"
    text = f"found: {suggestion.saves:,} cycles less, {share}: {line}"
    send_output(f"{clearing()}{text if columns is None else fitted(text, columns)}\n")


def to_text(
    result: AnalysisResult,
    entry: EntryResult,
    advice: Advice,
    style: TextStyle,
) -> Iterator[str]:
    """Two or more lines per suggestion: the line to write, and the present charge."""
    bound = f"{entry.cycles:,} cycles, {result.microseconds(entry.cycles):,.1f} µs"
    yield style.bold(f"{entry.name}: {bound}; suggestions, each applied alone:")
    if not advice.complete:
        yield "  the search was ended: more may be found"
    if not advice.suggestions:
        yield f"  nothing that {'is' if advice.complete else 'was'} tried here lowers it"
        return
    yield style.dim(f"{'cycles less':>13}{'share':>8}  write, if it is true")
    for suggestion in advice.suggestions:
        share = f"{suggestion.saves / entry.cycles:.1%}"
        first, *others = suggestion.line.split("\n")
        yield f"{suggestion.saves:>13,}{share:>8}  {style.bold(first)}"
        for line in others:
            yield f"{'':>23}{style.bold(line)}"
        each = f"; one less saves {suggestion.each:,}" if suggestion.each is not None else ""
        yield style.dim(f"{'':>23}now: {suggestion.now}{each}")
        yield style.dim(f"{'':>23}if: {suggestion.condition}")


def to_json(
    result: AnalysisResult, entry: EntryResult, suggestions: tuple[Suggestion, ...]
) -> dict[str, object]:
    """The suggestions as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kernel": str(result.kernel),
        "platform": result.platform.name,
        "entry": entry.name,
        "cycles": entry.cycles,
        "levers": [
            {
                "line": suggestion.line,
                "is_option": suggestion.is_option,
                "saves": suggestion.saves,
                "each": suggestion.each,
                "condition": suggestion.condition,
                "now": suggestion.now,
            }
            for suggestion in suggestions
        ],
    }
