"""``wcet latency``: the longest stretches without a test for interrupts, and the latency."""

from __future__ import annotations

import argparse
import sys

from quoll.errors import InputError, UsageError, WcetError
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish_document
from wcet.comparison_output import CLOSED, UNDONE, own_status
from wcet.gate.project_file import FILE, in_cycles
from wcet.gate.record import LATENCY
from wcet.latency.view import latency_view
from wcet.project_options import add_project, given
from wcet.refinement.carry_over import carry_over
from wcet.reports.latency_document import to_document
from wcet.reports.latency_text import to_lines, total_lines
from wcet.reports.result_text import TextStyle, assumptions
from wcet.request import (
    add_analysis,
    add_color,
    add_command,
    add_count,
    add_json,
    colored,
    requested,
)

__all__ = ["add_to"]

STRETCHES = 10
DESCRIPTION = """\
Print the longest stretches between two points where an interrupt can be taken, by operation, and
the worst interrupt latency: the longest stretch and then the interrupt path.

A stretch begins at an entry, or behind a test that sees no interrupt. It ends with the path, which
the next test cuts short. For each one:

  operation  the call or loop with most of its cycles
  decided    the branch that selects the operation: the last one among several cases, as of a
             decoder; without one, the last condition
  loops      executions and cycles, and the evidence of their bounds
  without    the longest stretch if the selected place never executes, nor those above: the next
             place for a preemption point is worth the difference

The line 'PLACE never executes' in a facts file gives that bound or a lower one. A test for
interrupts is as the platform file says. For an entry that unmasks interrupts, the stretches are its
masked regions, as of 'wcet masked'.

exit status: 0 the latency is at most as declared, or none is declared; 1 it is higher or not known;
2 an entry cannot be analysed; 3 the command line or a file is wrong
"""
EXAMPLES = """\
examples:
  wcet latency kernel.elf
  wcet latency kernel.elf --at-most 350us
  wcet latency kernel.elf --entry syscall --stretches 3
  wcet latency kernel.elf --json - | jq '.stretches[0].without'
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "the longest stretches without a test for interrupts, by operation"
    p = add_command(commands, "latency", text, DESCRIPTION, EXAMPLES, run)
    add_project(p)
    text = f"how many to print, the longest first (default: {STRETCHES})"
    add_count(p, "--stretches", 1, text, default=STRETCHES)
    p.add_argument(
        "--at-most",
        metavar="LIMIT",
        help="the declared latency: cycles, or a number with us, ms or s (default: the budget of "
        f"'{LATENCY}' in {FILE})",
    )
    add_json(p)
    add_analysis(p)
    add_color(p)


def run(options: argparse.Namespace) -> int:
    """Analyse and print; an error has the status of a comparison (``own_status``)."""
    try:
        return _printed(options)
    except WcetError as fault:
        raise own_status(fault) from fault


def _printed(options: argparse.Namespace) -> int:
    """The exit status."""
    project = given(options)
    budgets = {} if project is None else project.budgets
    wanted = requested(options, options.entry)
    stages = StageLog(verbose=not options.quiet)
    carry_over(options.kernel, wanted, stages)
    view = latency_view(options.kernel, wanted, stages, options.stretches)
    result = view.result
    at_most = declared(options.at_most or budgets.get(LATENCY), result.platform.clock_hz)
    style = TextStyle(color=colored(options), paths="none", stats=False)
    publish_document(
        options,
        lambda: to_document(view, wanted.interrupts, at_most),
        lambda: (
            *to_lines(view, style),
            "",
            assumptions(result, style),
            "",
            *total_lines(result, wanted.interrupts, at_most, style),
        ),
    )
    for name, error in result.unbounded.items():
        for paragraph in error.paragraphs or (str(error),):
            print(f"wcet: error {error.code}: entry {name}: {paragraph}", file=sys.stderr)
    if result.unbounded:
        return UNDONE
    exceeds = result.latency is None or (at_most is not None and result.latency.cycles > at_most)
    return CLOSED if at_most is not None and exceeds else 0


def declared(limit: str | None, clock_hz: int) -> int | None:
    """The limit in cycles, rounded down. Raises UsageError for other text."""
    if limit is None:
        return None
    try:
        return in_cycles(limit, clock_hz)
    except InputError:
        raise UsageError(
            f"--at-most {limit} is no latency", hint="cycles, or a number with us, ms or s: 350us"
        ) from None
