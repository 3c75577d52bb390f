"""``wcet advise``: what would lower the bound of an entry, and the line that says it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from quoll.errors import UsageError
from wcet import numbers
from wcet.advice.advise import advice
from wcet.advice.lever import Lever
from wcet.advice.recorded import recorded
from wcet.analysis.analyse import analyse
from wcet.analysis.result import EntryResult, Result
from wcet.analysis.stages import Stages
from wcet.atomic import publish
from wcet.project import add_project, given
from wcet.reports.text import Style
from wcet.request import add_analysis, add_color, add_command, colored, requested

__all__ = ["add_to"]

SCHEMA_VERSION = 1
LEVERS = 10

DESCRIPTION = """\
Print suggestions that lower a bound, the largest effect first: counts of loops and calls on the
worst path, undescribed memory, options. Each has the line for a facts file, or the option, and the
cycles that it saves. Each is tried: the entry is bounded again.

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
    p = add_command(
        commands,
        "advise",
        "facts and options that lower a bound, with the cycles saved",
        DESCRIPTION,
        EXAMPLES,
    )
    add_project(p)
    p.add_argument(
        "--levers",
        type=numbers.whole("--levers", 1),
        default=LEVERS,
        metavar="N",
        help=f"how many to print, the largest first (default: {LEVERS})",
    )
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
    p.add_argument("--json", metavar="FILE", help="write them as JSON ('-': standard output)")
    add_analysis(p)
    add_color(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Analyse, try, print. Raises UsageError where there is no number to lower."""
    given(options)
    wanted = requested(options, options.entry)
    stages = Stages(verbose=not options.quiet)
    result = analyse(options.kernel, wanted, stages)
    if len(options.entry) > 1:
        raise UsageError("wcet advise is about one entry", hint="name it with --entry")
    entry = max(result.entries.values(), key=lambda one: one.cycles)
    with stages.stage("advise", entry.name):
        seen = recorded(options.kernel, wanted, entry, options.traces)

        def progress(line: str) -> None:
            stages.say(f"trying: {line}")

        levers = advice(result, entry, wanted, options.levers, seen, progress)
    stages.done()
    style = Style(color=colored(options), paths="full", stats=False)
    publish(
        options,
        [(options.json, lambda: json.dumps(to_json(result, entry, levers), indent=1) + "\n")],
        lambda: "".join(f"{line}\n" for line in to_text(result, entry, levers, style)),
    )
    return 0


def to_text(
    result: Result, entry: EntryResult, levers: tuple[Lever, ...], style: Style
) -> Iterator[str]:
    """Two lines a lever, or more: what to write, and what is charged today."""
    bound = f"{entry.cycles:,} cycles, {result.microseconds(entry.cycles):,.1f} µs"
    yield style.bold(f"{entry.name}: {bound}; what would lower it, each line alone:")
    if not levers:
        yield "  nothing that is tried here lowers it"
        return
    yield style.dim(f"{'cycles less':>13}{'share':>8}  write, if it is true")
    for lever in levers:
        share = f"{lever.saves / entry.cycles:.1%}"
        first, *others = lever.line.split("\n")
        yield f"{lever.saves:>13,}{share:>8}  {style.bold(first)}"
        for line in others:
            yield f"{'':>23}{style.bold(line)}"
        each = f"; one less saves {lever.each:,}" if lever.each is not None else ""
        yield style.dim(f"{'':>23}now: {lever.now}{each}")
        yield style.dim(f"{'':>23}if: {lever.condition}")


def to_json(result: Result, entry: EntryResult, levers: tuple[Lever, ...]) -> dict[str, object]:
    """The same as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kernel": str(result.kernel),
        "platform": result.platform.name,
        "entry": entry.name,
        "cycles": entry.cycles,
        "levers": [
            {
                "line": lever.line,
                "is_option": lever.is_option,
                "saves": lever.saves,
                "each": lever.each,
                "condition": lever.condition,
                "now": lever.now,
            }
            for lever in levers
        ],
    }
