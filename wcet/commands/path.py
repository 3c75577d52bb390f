"""``wcet path``: the worst path of one entry, as a tree, a trace, a listing, or a flame graph."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ilp.constraints.constraint import Constraint, resolve_constraints
from ilp.ipet import build_ipet
from ilp.longest_path import proved_maximum
from ilp.paths.outline import PathOutline, PathSection, outline
from ilp.paths.solution import IlpSolution
from ilp.solvers.solve import solver_named
from ilp.worst_case import solution_of
from pipeline.costs import CostCause
from quoll.errors import InfeasibleError, SolverError, UsageError
from quoll.facts.count_facts import AtMostFact
from quoll.facts.fact import FactSource
from quoll.facts.guidance import RequireFact
from quoll.facts.located import locate
from quoll.facts.read import Facts
from wcet import numbers
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.atomic import STANDARD_OUTPUT, publish_document
from wcet.process import send_output
from wcet.project_options import add_project_kernel, given
from wcet.proving.doubts import path_doubts
from wcet.refinement.carry_over import carry_over
from wcet.reports.doubt_text import doubts_json, doubts_text
from wcet.reports.path_document import step_lines
from wcet.reports.path_text import TreeFolding, collapsed, loop_name, source_listing, tree
from wcet.reports.result_text import CAUSES, TextStyle, full_path
from wcet.request import (
    add_analysis,
    add_color,
    add_command,
    add_count,
    add_json,
    colored,
    requested,
)

__all__ = ["add_to", "explain"]

SCHEMA_VERSION = 1
DEEPEST = 400  # levels of a JSON document: readers accept 1,000, and a section has two
SEARCH = 30.0  # seconds on the clock, for pairs of --doubt
SHOWN = 12  # changes of calls printed by --why
TOGETHER = 1_000  # steps written at once

DESCRIPTION = """\
Print the worst path of one entry of a kernel, with the cycles by cause; without --entry, of the
entry with the largest bound.

By default it is a tree: a row is a call, or a loop with the number of its iterations, in the order
of the path. Rows below 1 % of the bound are folded (--min, --depth). Cached results of 'wcet
analyse' for the same kernel are reused, so that this takes about a second.

--why PLACE excludes a place of the path and solves the program again. If the bound falls by little,
another path is about as long, and the exclusion is not worth a fact. For a place outside the path
it prints how long a path through the place can be.

--doubt lists pairs of decisions on the path that look exclusive: their conditions exclude each
other if words that look the same are one word, as a field that is read twice. For each it prints
the two decisions in source terms (--source-dir), the bound without the pair, and the line to state
in a facts file if no execution takes both. It proves nothing but pairs that 'wcet refine' finds.
"""

EXAMPLES = """\
examples:
  wcet path                              the worst entry of the kernel that wcet.toml names
  wcet path kernel.elf --entry syscall
  wcet path kernel.elf --entry syscall --depth 4 --min 5
  wcet path kernel.elf --entry syscall --source | less
  wcet path kernel.elf --entry syscall --flame syscall.folded    # speedscope, flamegraph.pl
  wcet path kernel.elf --entry syscall --why resolve.h:38
  wcet path kernel.elf --entry syscall --full | wc -l
  wcet path kernel.elf --entry syscall --doubt --source-dir src
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "the worst path of an entry: tree, trace, source listing, flame graph, why"
    p = add_command(commands, "path", text, DESCRIPTION, EXAMPLES, run)
    add_project_kernel(p)
    text = "one, as for 'wcet analyse' (default: the worst)"
    p.add_argument("--entry", metavar="ENTRY", help=text)
    form = p.add_mutually_exclusive_group()
    form.add_argument("--flat", action="store_true", help="every block in order")
    form.add_argument(
        "--full", action="store_true", help="every step, a JSON object a line, as they are made"
    )
    form.add_argument(
        "--source", action="store_true", help="the source lines on the path, with runs and cycles"
    )
    form.add_argument("--why", metavar="PLACE", help="why this place is on the path, or is not")
    p.add_argument(
        "--doubt",
        action="store_true",
        help="instead: pairs of decisions on the path that look exclusive, with the fact to state",
    )
    p.add_argument(
        "--flame",
        metavar="FILE",
        help="write collapsed stacks for flame-graph viewers ('-': stdout)",
    )
    p.add_argument(
        "--min",
        type=numbers.percentage("--min"),
        default=1.0,
        metavar="PERCENT",
        help="fold smaller rows (default: 1)",
    )
    add_count(p, "--depth", 0, "fold deeper rows (default: none)")
    add_json(p, "the tree")
    add_analysis(p)
    add_color(p)


def run(options: argparse.Namespace) -> int:
    """Analyse, or use the cached result, and print; returns the exit status."""
    if options.full and STANDARD_OUTPUT in (options.json, options.flame):
        raise UsageError("--full prints the steps: name a file for the other output")
    options.entry = [] if options.entry is None else [options.entry]
    given(options)
    wanted = requested(options, options.entry)
    if options.doubt:
        return print_doubts(options, wanted)
    carry_over(options.kernel, wanted, stages := StageLog(verbose=not options.quiet))
    result = analyse(options.kernel, wanted, stages)
    entry = max(result.entries.values(), key=lambda one: one.cycles)
    if not entry.solution.nodes:
        raise SolverError(
            "no counts are known that reach the bound",
            hint="a longer --time-limit, or smaller bounds of loops",
        )
    whole = outline(entry.graph, entry.costs, entry.solution, entry.path.steps)
    style = TextStyle(color=colored(options), paths="full", stats=False)
    if options.why:
        with stages.stage("why"):
            why = explain(result, entry, options.why, wanted)
        stages.done()
        document = partial(why_json, result, entry, why)
        lines = why_text(result, entry, why, style)
    else:
        document = partial(path_json, result, entry, whole)
        lines = path_text(result, entry, whole, options, style)
    flame = (options.flame, lambda: "\n".join(collapsed(result, entry, whole)) + "\n")
    if options.full:
        lines = iter(())
    publish_document(options, document, lambda: lines, [flame])
    if options.full:
        stream(step_lines(result, entry))
    return 0


def stream(lines: Iterator[str]) -> None:
    """Print ``lines`` as they are made; errors as for ``send_output``."""
    while some := list(islice(lines, TOGETHER)):
        send_output("".join(f"{line}\n" for line in some))


def print_doubts(options: argparse.Namespace, wanted: AnalysisOptions) -> int:
    """Print the pairs of decisions that look exclusive; returns the exit status."""
    if options.flame or options.flat or options.full or options.source or options.why:
        raise UsageError("--doubt prints no path", hint="use it without an option for its form")
    stages = StageLog(verbose=not options.quiet)
    inputs = AnalysisRun.begin(options.kernel, wanted, stages)
    if len(inputs.entries) != 1:
        raise UsageError("wcet path --doubt is about one entry", hint="name it with --entry")
    found = path_doubts(inputs, SEARCH)
    stages.done()
    (name,) = inputs.entries
    style = TextStyle(color=colored(options), paths="full", stats=False)
    folder = options.source_dir or Path()
    publish_document(
        options,
        lambda: doubts_json(name, found, inputs.image),
        lambda: doubts_text(name, found, inputs.image, folder, style),
    )
    return 0


def path_text(
    result: AnalysisResult,
    entry: EntryResult,
    whole: PathOutline,
    options: argparse.Namespace,
    style: TextStyle,
) -> Iterator[str]:
    """The requested form, below the bound and its causes."""
    yield from heading(result, entry, whole, style)
    if options.flat:
        yield from full_path(result, entry, style)
    elif options.source:
        yield from source_listing(result, entry, whole, options.source_dir or Path(), style)
    else:
        folding = TreeFolding(options.min / 100, options.depth)
        yield from tree(result, entry, whole, folding, style)


def heading(
    result: AnalysisResult, entry: EntryResult, whole: PathOutline, style: TextStyle
) -> Iterator[str]:
    """The bound and its cycles by cause."""
    yield style.bold(
        f"worst path of {entry.name}{entry.for_what}: "
        f"{entry.cycles:,} cycles, {result.microseconds(entry.cycles):,.1f} µs"
    )
    if entry.parametric:
        yield f"bound: {entry.parametric}"
    if whole.cycles != entry.cycles:
        yield f"the counts known reach {whole.cycles:,} cycles ({entry.solution.method})"
    if entry.path.unrealisable:
        yield entry.path.unrealisable
    causes = (
        f"{CAUSES[c]} {whole.total[c]:,} ({whole.total[c] / whole.cycles:.1%})"
        for c in CostCause
        if whole.total[c]
    )
    yield "by cause: " + ", ".join(causes)
    yield ""


def why_text(
    result: AnalysisResult, entry: EntryResult, why: PathExplanation, style: TextStyle
) -> Iterator[str]:
    """The place, its cycles, and the alternative path."""
    blocks = ", ".join(result.image.place(addr) for addr in why.addresses)
    yield style.bold(f"{why.place} in the worst path of {entry.name}{entry.for_what}")
    yield f"  blocks: {blocks}"
    if why.executions:
        yield f"  on the path {why.executions:,} times; these executions take {why.own:,} cycles"
        said = "without it"
        if why.other is None:
            yield "  every path that the facts allow executes it"
            return
    else:
        yield "  not on the path"
        said = "through it"
        if why.other is None:
            yield "  no path that the facts allow executes it"
            return
    fall = why.bound - why.other
    yield (
        f"  bound{entry.for_what} {why.bound:,}; {said} {style.bold(f'{why.other:,}')}: "
        f"{fall:,} cycles less ({fall / why.bound:.1%})"
    )
    if not fall:
        yield f"  a path {said} is equally long"
    if why.changes:
        yield style.dim(f"{'worst path':>12}{said:>12}{'change':>12}  call or loop, own cycles")
    for change in why.changes[:SHOWN]:
        yield (
            f"{change.before:>12,}{change.after:>12,}{change.after - change.before:>+12,}  "
            f"{stretch_text(result, entry, change.stretch.context, change.stretch.loop)}"
        )
    if len(why.changes) > SHOWN:
        yield f"{'':>38}… and {len(why.changes) - SHOWN} more"


def stretch_text(result: AnalysisResult, entry: EntryResult, context: int, loop: int | None) -> str:
    """A call by its call string, innermost first; a loop before its function."""
    chain = entry.graph.call_string(context)
    text = " < ".join(result.function(c.function) for c in reversed(chain))
    if loop is None:
        return text
    header = entry.graph.nodes[entry.graph.loops[loop].header].block.addr
    return f"loop {result.image.line(header) or hex(header)} in {text}"


def why_json(result: AnalysisResult, entry: EntryResult, why: PathExplanation) -> dict[str, Any]:
    """The explanation as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "entry": entry.name,
        "place": why.place,
        "addresses": [hex(addr) for addr in why.addresses],
        "executions": why.executions,
        "own_cycles": why.own,
        "bound": why.bound,
        "bound_without" if why.executions else "bound_through": why.other,
        "changes": [
            {
                "place": stretch_text(result, entry, c.stretch.context, c.stretch.loop),
                "before": c.before,
                "after": c.after,
            }
            for c in why.changes
        ],
    }


def path_json(result: AnalysisResult, entry: EntryResult, whole: PathOutline) -> dict[str, Any]:
    """The tree as JSON values."""

    def row(at: PathOutline) -> dict[str, Any]:
        context = entry.graph.contexts[at.stretch.context]
        is_call = at.stretch.loop is None
        return {
            "kind": "call" if is_call else "loop",
            "name": result.function(context.function)
            if is_call
            else loop_name(result, entry.graph, at),
            "context": at.stretch.context,
            "entries": at.entries,
            "rounds": None if is_call else at.iterations,
            "cycles": at.cycles,
            "own": {c.name.lower(): at.own[c] for c in CostCause if at.own[c]},
            "parts": [],
        }

    rows: dict[PathSection, dict[str, Any]] = {}
    for around, at in whole.walk():
        if len(around) == DEEPEST:
            raise UsageError(
                f"the worst path is in more than {DEEPEST} calls and loops at once, and programs "
                "that read JSON refuse values that are so deep inside each other",
                hint="leave out --json: the text and --flame have any depth",
            )
        rows[at.stretch] = row(at)
        if around:
            rows[around[-1].stretch]["parts"].append(rows[at.stretch])
    return {
        "schema_version": SCHEMA_VERSION,
        "entry": entry.name,
        "cycles": entry.bound_cycles,
        "microseconds": None if entry.parametric else result.microseconds(entry.cycles),
        "example": dict(entry.example),
        "example_cycles": entry.cycles if entry.parametric else None,
        "path_unrealisable": entry.path.unrealisable,
        "causes": {c.name.lower(): whole.total[c] for c in CostCause},
        "tree": rows[whole.stretch],
    }


@dataclass(frozen=True, slots=True)
class CallChange:
    """Cycles of a call on both paths, without inner calls and loops."""

    stretch: PathSection
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class PathExplanation:
    """The explanation of one place, in cycles."""

    place: str
    addresses: tuple[int, ...]  # of the blocks at the place
    executions: int  # on the worst path
    own: int  # cycles of these blocks on the worst path
    bound: int
    other: (
        int | None
    )  # the bound without the place, or through it if ``executions`` is 0; None: no such path
    changes: tuple[CallChange, ...]  # the largest first


def explain(
    result: AnalysisResult, entry: EntryResult, place: str, options: AnalysisOptions
) -> PathExplanation:
    """The cost of ``place``: solve again without it, or through it if the worst path avoids it.

    ``changes`` compares the two paths call by call.

    Raises FactsError if the place does not exist or cannot be counted, UsageError if the entry
    does not reach it.
    """
    source = FactSource("--why", 1, f"{place} never executes")
    fact = AtMostFact(source, place, 0, None)
    found = resolve_constraints(entry.graph, locate(Facts((fact,)), result.image))
    if not found:
        raise UsageError(f"--why {place}: entry {entry.name} does not reach it")
    nodes = found[0].a
    executions = sum(entry.solution.nodes[n] for n in nodes)
    before = outline(entry.graph, entry.costs, entry.solution)
    own = sum(c for _, section in before.walk() for n, _, c in section.blocks if n in nodes)
    addresses = tuple(sorted({entry.graph.nodes[n].block.addr for n in nodes}))
    extra = found[0] if executions else replace(found[0], fact=RequireFact(source, place))
    try:
        solution = solve(entry, (*entry.constraints, extra), options)
    except InfeasibleError:
        return PathExplanation(place, addresses, executions, own, entry.cycles, None, ())
    changes = differences(before, outline(entry.graph, entry.costs, solution))
    return PathExplanation(
        place, addresses, executions, own, entry.cycles, solution.cycles, changes
    )


def solve(
    entry: EntryResult, constraints: tuple[Constraint, ...], options: AnalysisOptions
) -> IlpSolution:
    """The solution of the entry's program with other constraints."""
    ipet = build_ipet(
        entry.graph, entry.costs, entry.numbers, constraints, exclusions=entry.exclusions
    )
    proof = proved_maximum(ipet, solver_named(options.solver), options.time_limit)
    return solution_of(ipet, proof)


def differences(before: PathOutline, after: PathOutline) -> tuple[CallChange, ...]:
    """The calls and loops whose own cycles differ between the two paths."""
    cycles = [
        {section.stretch: sum(section.own) for _, section in whole.walk()}
        for whole in (before, after)
    ]
    stretches = dict.fromkeys([*cycles[0], *cycles[1]])
    changes = (CallChange(s, cycles[0].get(s, 0), cycles[1].get(s, 0)) for s in stretches)
    different = (c for c in changes if c.before != c.after)
    return tuple(sorted(different, key=lambda c: -abs(c.before - c.after)))
