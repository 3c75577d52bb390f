"""``wcet analyse``: bound the execution time of kernel entries."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from loopbounds.bounds import BoundOptions
from loopbounds.prove import Budget
from quoll.errors import UnboundedLoop, UsageError
from wcet.analyse import Options, analyse
from wcet.atomic import write_atomically
from wcet.json_report import to_json
from wcet.stages import Stages
from wcet.text_report import Style, to_text

__all__ = ["add_to"]

DESCRIPTION = """\
Bound the worst-case execution time of one or more entries of a kernel.

The ELF is decoded from each entry, every call is analysed in its calling context, memory
references are classified against the board's caches, loops are bounded by model checking or
by facts, and an integer program finds the longest path. The bound holds under the
assumptions printed at the end of the report.

A loop that nothing bounds leaves out the entries that reach it; the others are printed, and the
exit status is 6. With the fact 'loop PLACE at most n + 1' the bound is a function of n.
"""

EXAMPLES = """\
examples:
  wcet analyse build/bilby/kzm-after/kernel.elf --entry all
  wcet analyse kernel.elf --entry syscall --facts my.facts --paths full
  wcet analyse kernel.elf --entry wake --facts queue.facts --set waiting=12
  wcet analyse kernel.elf --entry schedule --json - | jq .entries.schedule.cycles
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    p = commands.add_parser(
        "analyse",
        help="bound the execution time of kernel entries",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("kernel", type=Path, metavar="KERNEL.ELF", help="the kernel, as it is run")
    p.add_argument(
        "--entry",
        action="append",
        default=[],
        metavar="ENTRY",
        help="a name of the platform (syscall, undefined, prefetch-abort, data-abort, interrupt), "
        "a symbol, an address, or 'all' for every entry of the platform; repeatable (default: all)",
    )
    p.add_argument(
        "--platform",
        metavar="NAME|FILE.toml",
        help="core, caches, latencies, clock, exits (default: chosen from the ELF's build "
        "attributes and printed)",
    )
    p.add_argument(
        "--l2",
        choices=["on", "off"],
        help="whether the level-2 cache is enabled (default: as the platform file says)",
    )
    p.add_argument(
        "--facts",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="loop bounds and constraints; repeatable; kernel.facts beside kernel.elf is read too",
    )
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=N",
        help="a number for the parameter of a loop ('loop PLACE at most NAME'); without it the "
        "bound is a function of NAME; repeatable",
    )
    p.add_argument(
        "--no-facts", action="store_true", help="do not read the facts file beside the ELF"
    )
    p.add_argument(
        "--end",
        action="append",
        default=[],
        metavar="PLACE",
        help="a path also ends after the instruction here; repeatable",
    )
    p.add_argument(
        "--solver", choices=["cbc", "highs"], default="cbc", help="integer solver (default: cbc)"
    )
    p.add_argument(
        "--time-limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for each loop and for each integer program (default: 60)",
    )
    p.add_argument(
        "--paths",
        choices=["none", "brief", "full"],
        default="brief",
        help="how much of each worst path to print: the functions and the blocks that cost most, "
        "or every block in order (default: brief)",
    )
    p.add_argument("--json", metavar="FILE", help="write the result as JSON ('-': standard output)")
    p.add_argument("--lp", type=Path, metavar="FILE", help="write the integer program (one entry)")
    p.add_argument(
        "--smv", type=Path, metavar="DIR", help="keep the model of each loop that is proved now"
    )
    p.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="where proofs of loop bounds are kept, and what else was found out about this very "
        "input (default: quoll in the user's cache folder)",
    )
    p.add_argument("--no-cache", action="store_true", help="find out and prove everything again")
    p.add_argument("--stats", action="store_true", help="print time and memory of each stage")
    p.add_argument("--quiet", action="store_true", help="no progress on standard error")
    p.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="colours in the text report (default: on a terminal)",
    )
    p.set_defaults(run=run)


def default_cache() -> Path:
    """The user's cache folder, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "quoll" / "loopbounds"


def store_of(proofs: Path | None) -> Path | None:
    """Where whole entries are kept, given the folder of proofs."""
    return None if proofs is None else proofs / "entries"


def run(options: argparse.Namespace) -> int:
    """Analyse, then print; files are written only when an entry at least has a bound."""
    if options.time_limit <= 0:
        raise UsageError("--time-limit must be more than 0 seconds")
    stages = Stages(verbose=not options.quiet)
    cache = None if options.no_cache else options.cache or default_cache()
    result = analyse(
        options.kernel,
        Options(
            entries=tuple(options.entry) or ("all",),
            platform=options.platform,
            l2=None if options.l2 is None else options.l2 == "on",
            facts=tuple(options.facts),
            neighbouring_facts=not options.no_facts,
            ends=tuple(options.end),
            solver=options.solver,
            time_limit=options.time_limit,
            lp=options.lp,
            bounds=BoundOptions(
                cache=cache,
                models=options.smv,
                budget=Budget(seconds=max(1, round(options.time_limit))),
            ),
            parameters=parameters(options.set),
            store=store_of(cache),
        ),
        stages,
    )
    if options.json:
        text = to_json(result)
        if options.json == "-":
            sys.stdout.write(text)
        else:
            write_atomically(Path(options.json), text)
    if options.json != "-":
        color = options.color == "always" or (options.color == "auto" and sys.stdout.isatty())
        style = Style(color=color, paths=options.paths, stats=options.stats)
        sys.stdout.write(to_text(result, style))
    for name, error in result.unbounded.items():
        print(f"wcet: error: entry {name}: {error}", file=sys.stderr)
    return UnboundedLoop.exit_status if result.unbounded else 0


def parameters(texts: Sequence[str]) -> dict[str, int]:
    """The values in ``NAME=N``. Raises UsageError for what is not that, or given twice."""
    values: dict[str, int] = {}
    for text in texts:
        match = re.fullmatch(r"([A-Za-z_]\w*)=([0-9]+)", text)
        if match is None or values.get(match[1], int(match[2])) != int(match[2]):
            raise UsageError(f"--set {text} is not NAME=N, or not the only one for its name")
        values[match[1]] = int(match[2])
    return values
