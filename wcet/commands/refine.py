"""``wcet refine``: a lower bound of one entry, by proofs that worst paths are infeasible."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from quoll.assumptions import table
from wcet import numbers
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish_document
from wcet.refinement.refine import STEPS, RefinedBound, refine
from wcet.refinement.rounds import Ending
from wcet.reports.json_document import seen_json
from wcet.reports.proved_text import exclusion_json, exclusions_text
from wcet.reports.result_text import TextStyle
from wcet.request import (
    add_analysis,
    add_color,
    add_command,
    add_count,
    add_json,
    add_kernel,
    colored,
    requested,
)

__all__ = ["add_to"]

SCHEMA_VERSION = 1
SECONDS = 60.0

DESCRIPTION = """\
Lower the bound of one entry by proofs: no execution takes its worst path.

The worst path of 'wcet analyse' may test a word twice and take it for 0 first and for 1 then. Each
round collects the decisions of the worst path, and an SMT solver looks for some that contradict
each other. If it finds any, no execution takes these edges together: that is proved over all code
between them, and so holds on every path. The integer program is solved again with this
constraint. The rounds end when the solver refutes the worst path no longer. Then a state at the
entry is searched for whose execution takes this path as far as possible, and changed step by step
as long as its path is charged more (--climb). Its cycles are stored as the lower end of the bound's
interval.

The bound of every round is valid. Constraints are printed as proved; they need no line in a facts
file. They are stored like proofs of loops (--cache): while kernel, facts, platform and options stay
the same, 'wcet analyse', 'wcet check', 'wcet latency' and a later 'wcet refine' use them. In
another build of the kernel they are proved again first.

'not refuted' does not mean that an execution takes the path: words at unknown addresses, and words
that a loop changes, are any words here (docs/refinement.md).
"""
EXAMPLES = """\
examples:
  wcet refine kernel.elf --entry syscall
  wcet refine kernel.elf --entry syscall --time 300
  wcet refine kernel.elf --entry syscall --json - | jq '.rounds[].cycles'
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "a lower bound, by proofs that worst paths are infeasible"
    p = add_command(commands, "refine", text, DESCRIPTION, EXAMPLES, run)
    add_kernel(p)
    p.add_argument("--entry", required=True, metavar="ENTRY", help="one, as for 'wcet analyse'")
    p.add_argument(
        "--time",
        type=numbers.seconds("--time"),
        default=SECONDS,
        metavar="SECONDS",
        help="begin no round after this processor time, without the analysis before the first "
        f"round (default: {SECONDS:g})",
    )
    add_count(
        p, "--climb", 0,
        "most steps of the search for a longer execution, which takes as much time as "
        f"--time (default: {STEPS})", default=STEPS,
    )  # fmt: skip
    add_json(p, "the rounds")
    add_analysis(p)
    add_color(p)


def run(options: argparse.Namespace) -> int:
    """Refine, and print; returns the exit status."""
    wanted = requested(options, [options.entry])
    stages = StageLog(verbose=not options.quiet)
    found = refine(options.kernel, wanted, options.time, stages, options.climb)
    style = TextStyle(color=colored(options), paths="full", stats=False)
    publish_document(options, lambda: to_json(found), lambda: to_text(found, style))
    return 0


def to_text(found: RefinedBound, style: TextStyle) -> Iterator[str]:
    """The bounds, the rounds with their constraints, and the assumptions."""
    took = found.cycles * 1e6 / found.platform.clock_hz
    before = found.entry.cycles
    less = before - found.cycles
    yield style.bold(
        f"{found.entry.name}: at most {found.cycles:,} cycles, {took:,.1f} µs; before "
        f"{before:,}: {less:,} less ({less / before:.1%})"
    )
    last = before
    for number, one in enumerate(found.rounds, 1 - sum(one.stored for one in found.rounds)):
        name = "proved by earlier runs" if one.stored else f"round {number}"
        yield style.bold(f"{name}: {one.cycles:,} cycles, {last - one.cycles:,} less")
        last = one.cycles
        yield from exclusions_text(one.exclusions)
    yield ending_text(found.ending)
    seen = found.entry.seen
    if seen is not None:
        yield seen.within(found.cycles)
        words = [f"{name} = {value:#x}" for name, value in seen.state or ()]
        yield from (f"from the state {', '.join(words)}; other words are 0",) if words else ()
    for assumption in found.assumptions:
        yield f"assumed: {assumption}"


def ending_text(ending: Ending) -> str:
    """The reason for which there is no further round."""
    return f"ends because {ending.value}"


def to_json(found: RefinedBound) -> dict[str, Any]:
    """The rounds as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "platform": found.platform.name,
        "clock_hz": found.platform.clock_hz,
        "entry": found.entry.name,
        "cycles_before": found.entry.cycles,
        "cycles": found.cycles,
        "ending": found.ending.name.lower(),
        "seen": seen_json(found.entry.seen),
        "rounds": [
            {
                "cycles": one.cycles,
                "stored": one.stored,
                "exclusions": [exclusion_json(exclusion) for exclusion in one.exclusions],
            }
            for one in found.rounds
        ],
        "assumptions": list(map(str, found.assumptions)),
        "assumption_kinds": table(found.assumptions),
    }
