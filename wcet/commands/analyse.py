"""``wcet analyse``: bound the execution time of kernel entries."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ilp.solvers.integer_program import IntegerProgram
from quoll.errors import UsageError, WcetError
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.fact_survey import SECONDS, FactSurvey, survey
from wcet.analysis.result import AnalysisResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog, StageLog
from wcet.atomic import publish
from wcet.numbers import seconds
from wcet.project_options import add_project, given
from wcet.refinement.carry_over import carry_over
from wcet.reports.assumption_text import by_origin
from wcet.reports.json_document import to_json
from wcet.reports.missing_facts import suggested_facts, to_lines
from wcet.reports.outside_memory import outside_warnings
from wcet.reports.result_text import TextStyle, to_text
from wcet.reports.screen import Screen, to_screen
from wcet.request import (
    add_analysis,
    add_color,
    add_command,
    add_json,
    colored,
    columns_of,
    requested,
)

if TYPE_CHECKING:
    from wcet.gate.record import BaselineRecord

__all__ = ["add_to"]

DESCRIPTION = """\
Bound the worst-case execution time of one or more entries of a kernel.

The ELF is decoded from each entry, every call is analysed in its calling context, memory
references are classified against the board's caches, loops are bounded by model checking or
by facts, and an integer program finds the longest path. The bound holds under the
assumptions printed at the end of the report.

An entry that reaches a loop without a bound is omitted; the others are printed, and the exit status
is 6. With the fact 'loop PLACE at most n + 1' the bound is a function of n. --suggest-facts FILE
lists the missing facts of all entries.
"""

EXAMPLES = """\
examples:
  wcet analyse build/bilby/kzm-after/kernel.elf --entry all
  wcet analyse kernel.elf --entry syscall --facts my.facts --paths full
  wcet analyse kernel.elf --entry wake --facts queue.facts --set waiting=12
  wcet analyse kernel.elf --suggest-facts kernel.facts    then complete the file
  wcet analyse kernel.elf --html report.html --source-dir src
  wcet analyse kernel.elf --entry schedule --json - | jq .entries.schedule.cycles
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "bound the execution time of kernel entries"
    p = add_command(commands, "analyse", text, DESCRIPTION, EXAMPLES, run)
    add_project(p)
    add_analysis(p)
    p.add_argument(
        "--paths",
        choices=["none", "brief", "full"],
        help="how much of each worst path to print: the functions and the blocks that cost most, "
        "or every block in order (default: brief)",
    )
    add_json(p)
    p.add_argument(
        "--html",
        metavar="FILE",
        help="write an offline HTML report: worst paths with source and instructions, control "
        "flow, calls, loops, caches, assumptions; only "
        "files in --source-dir are included",
    )
    p.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="of --html: compare with a file of 'wcet baseline' or --json (default: as in "
        "wcet.toml)",
    )
    for form, text in (("lp", "LP"), ("mps", "free MPS")):
        p.add_argument(
            f"--{form}",
            type=Path,
            metavar="FILE",
            help=f"write the integer program in {text} format; of several entries, each to a file "
            "with its name before the suffix",
        )
    p.add_argument(
        "--smv", type=Path, metavar="DIR", help="keep the model of each loop that is proved now"
    )
    p.add_argument(
        "--suggest-facts",
        type=Path,
        metavar="FILE",
        help="list all facts that are missing before every entry has a bound, print them one "
        "a line, and write it to FILE as facts to fill in; nothing else is printed",
    )
    p.add_argument(
        "--suggest-within",
        type=seconds("--suggest-within"),
        default=SECONDS,
        metavar="SECONDS",
        help="of --suggest-facts: list the facts that are found within this processor time "
        f"(default: {SECONDS:.0f})",
    )
    p.add_argument(
        "--details",
        action="store_true",
        help="all paths, loops and assumptions on a terminal, too, which otherwise shows one "
        "screen; as do --paths, --stats and --wide",
    )
    p.add_argument(
        "--assumptions",
        action="store_true",
        help="print the assumptions only: stated ones, those that executions may contradict, those "
        "about the board",
    )
    p.add_argument("--stats", action="store_true", help="print time and memory of each stage")
    add_color(p)


def run(options: argparse.Namespace) -> int:
    """Analyse, then print; writes files only if at least one entry has a bound."""
    project = given(options)
    options.wide |= options.assumptions  # to be read as they are
    if options.baseline and not options.html:
        raise UsageError("--baseline is of the report that --html writes")
    if options.html:
        from wcet.page.web_scripts import script_texts

        script_texts()  # a missing one is reported before the analysis
        if project and not options.baseline and project.baseline.is_file():
            options.baseline = project.baseline
    old = baseline(options.baseline) if options.baseline else None
    stages = StageLog(verbose=not options.quiet)
    wanted = requested(
        options, options.entry, options.smv, programs=bool(options.lp or options.mps)
    )
    if options.suggest_facts:
        found = survey(options.kernel, wanted, stages, options.suggest_within)
        return suggest(options, found)
    try:
        carry_over(options.kernel, wanted, stages)
        result = analyse(options.kernel, wanted, stages)
    except WcetError as fault:
        if fault.missing:
            more = "all that is missing, at once: --suggest-facts FILE"
            fault.hint = f"{fault.hint}; {more}" if fault.hint else more
        raise
    for warning in outside_warnings(result):
        stages.warn(warning)
    html = page_text(options, wanted, result, old) if options.html else str
    style = TextStyle(
        color=colored(options),
        paths=options.paths or "brief",
        stats=options.stats,
        columns=columns_of(options),
    )
    publish(
        options,
        [
            *programs(result, options.lp, options.mps),
            (options.json, lambda: to_json(result)),
            (options.html, html),
        ],
        lambda: printed(result, options, style),
    )
    for name, error in result.unbounded.items():
        for paragraph in error.paragraphs or (str(error),):
            print(f"wcet: error {error.code}: entry {name}: {paragraph}", file=sys.stderr)
    for unsound in result.unsound:
        print(*(f"wcet: {text}" for text in unsound.coded), file=sys.stderr)
    errors = (*result.unsound, *result.unbounded.values())
    return max((error.exit_status for error in errors), default=0)


def printed(result: AnalysisResult, options: argparse.Namespace, style: TextStyle) -> str:
    """The whole report, a requested part, or one screen on a terminal."""
    if options.assumptions:
        return "\n\n".join(by_origin(result, style)) + "\n"
    all_of_it = options.details or options.paths or options.stats or options.wide
    screen = None if all_of_it else Screen.of_output()
    return to_text(result, style) if screen is None else to_screen(result, style, screen)


def baseline(file: Path) -> BaselineRecord:
    """The record with which ``--html`` compares; its reader is imported on demand."""
    from wcet.gate.record import read

    return read(file)


def page_text(
    options: argparse.Namespace,
    wanted: AnalysisOptions,
    result: AnalysisResult,
    old: BaselineRecord | None,
) -> Callable[[], str]:
    """The page of ``--html``.

    The classes of references, which a cached result lacks, are computed.
    """
    from wcet.gate.compare import compare
    from wcet.gate.record import LATENCY, recorded
    from wcet.gate.same_configuration import differences
    from wcet.page.caches import memory_uses  # takes as long to load as all stages
    from wcet.page.write import to_html

    change = None
    if old is not None:
        earlier = old.restricted_to(frozenset((*result.entries, *result.unbounded, LATENCY)))
        new = recorded(result, wanted.sources)
        change = compare(earlier, new, {}, Fraction(0))
        change = replace(change, differences=differences(earlier, new))
    run = AnalysisRun.begin(options.kernel, wanted, SilentStageLog())
    memory = memory_uses(run, result)
    return lambda: to_html(result, wanted.sources, memory, change)


def suggest(options: argparse.Namespace, found: FactSurvey) -> int:
    """The status of the first error, after printing and writing the missing facts."""
    publish(
        options,
        [(options.suggest_facts, lambda: suggested_facts(found, options.kernel.name))],
        lambda: to_lines(found),
    )
    return found.status


def programs(
    result: AnalysisResult, lp: Path | None, mps: Path | None
) -> Iterator[tuple[Path, Callable[[], str]]]:
    """The files of ``--lp`` and ``--mps``, with names that describe each variable."""
    if not (lp or mps):
        return
    from ilp.solvers.pulp_problem import to_lp, to_mps  # PuLP takes 0.2 s to load

    for name, entry in result.entries.items():
        assert entry.model is not None, "it is solved where it is to be written"
        model = readable(entry.model, entry.graph, result.image)
        for path, text in ((lp, to_lp), (mps, to_mps)):
            if path:
                several = len(result.entries) + len(result.unbounded) > 1
                file = path.with_stem(f"{path.stem}.{name}") if several else path
                yield file, partial(text, model)


def readable(model: IntegerProgram, graph: Supergraph, image: Image) -> IntegerProgram:
    """The same program with readable names for its edges, path ends and flow rows."""
    places = [place(image, node.block.addr) for node in graph.nodes]
    edges = [
        f"x{i}.{places[e.src]}.{places[e.dst]}.c{graph.nodes[e.src].context}"
        for i, e in enumerate(graph.edges)
    ]
    exits = [f"end{n}.{places[n]}.c{graph.nodes[n].context}" for n in graph.exits]
    others = model.names[len(edges) + len(exits) :]
    rows = [
        replace(row, name=f"flow.n{n}.{places[n]}.c{node.context}")
        for n, (node, row) in enumerate(zip(graph.nodes, model.rows, strict=False))
    ]
    return replace(model, names=(*edges, *exits, *others), rows=(*rows, *model.rows[len(rows) :]))


def place(image: Image, addr: int) -> str:
    """A name for an address: ``cspace_resolve_3c``, or the address itself."""
    found = image.symbol_at(addr)
    if found is None:
        return f"{addr:x}"
    symbol, offset = found
    name = re.sub(r"\W", "_", symbol.name, flags=re.ASCII)
    return f"{name}_{offset:x}" if offset else name
