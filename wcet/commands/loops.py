"""``wcet loops``: every loop of a binary in every calling context, with its bound or the reason."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopbounds.proof.checkers import substituted
from loopbounds.written_loops import loops_not_found
from quoll.assumptions import table
from quoll.cfg.cfg import Program
from quoll.errors import InputError, SolverError, UnboundedLoop, UsageError, WcetError
from quoll.exchange.otawa_xml import write_ffx
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.listing.program_text import loops_text
from wcet.analysis.entries import find_entries
from wcet.analysis.entry_stages import AnalysisTarget, Arrival, PathOrigin
from wcet.analysis.raw_memory import refuse_several
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish, publish_document
from wcet.commands.listing import listed_program
from wcet.reports.entry_loops import EntryLoops, LoopInContext, loops_of
from wcet.request import add_analysis, add_command, add_json, requested

__all__ = ["add_to"]

SCHEMA_VERSION = 1

DESCRIPTION = """\
List every loop that is reached from the entries, in each calling context, with its bound: the
maximum number of header executions per entry. Each bound comes with its method and evidence:

  nusmv    proved by the model checker; "exact" when an execution of
           the model reaches it for the stated initial ranges, else
           "not known to be tight"
  smt      the same, proved by the SMT solver: NuSMV is missing or
           slow, or --checker smt
  fact     stated in a facts file, and assumed; with --prove-stated
           only if no smaller bound is proved
  execution, parameter
           counted in the concrete execution of the entry; a name
           that a fact gives (--set)
  pending  the loop has no further iteration while an interrupt is
           pending: its code tests for one, and each path from the
           arrival of an interrupt on is bounded by itself
  -        none: the reason names the values that nothing bounds, and
           the fact that would help

These are the bounds that 'wcet analyse' uses, under the same options. Loops of a function that is
analysed once for all its calls (--share) are listed once, for any context of that function.
"""

EXAMPLES = """\
examples:
  wcet loops build/bilby/kzm-after/kernel.elf
  wcet loops program.elf --entry main --json - | jq '.loops[] | select(.bound == null)'
  wcet loops program.elf --smv models/     then check any of them: NuSMV -source ... models/*.smv
  wcet loops program.elf --nest            only the nesting, without bounds: fast

exit status: 0, or 6 when a loop has no bound, 8 if because the solver is missing or failed (the
listing is complete all the same). An entry that 'wcet analyse' refuses is left out, and its error
gives the status
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "loops in every calling context, with bound, method and evidence"
    p = add_command(commands, "loops", text, DESCRIPTION, EXAMPLES, run)
    p.add_argument(
        "binary",
        type=Path,
        metavar="FILE.ELF",
        help="a little-endian ARM ELF for a known platform; with --nest for any",
    )
    p.add_argument(
        "--entry",
        action="append",
        default=[],
        metavar="ENTRY",
        help="an entry of the platform, a symbol, an address, or 'all'; repeatable (default: the "
        "entries of the platform if the ELF has them, else every function symbol, each by itself)",
    )
    p.add_argument("--nest", action="store_true", help="only the loops of each function, nested")
    add_json(p, "loops[]")
    p.add_argument("--ffx", metavar="FILE", help="write the bounds as flow facts for OTAWA, too")
    p.add_argument("--smv", type=Path, metavar="DIR", help="keep the proved models here")
    add_analysis(p)


def run(options: argparse.Namespace) -> int:
    """List the loops; the exit status tells whether all are bounded."""
    stages = StageLog(verbose=not options.quiet)
    if options.nest:
        image, program = nested(options, stages)
        publish(options, [], lambda: loops_text(program, image))
        return 0
    inputs, arrival = read_inputs(options, stages)
    image, refused = inputs.image, list[WcetError]()
    analysed = list(each(inputs, arrival, refused))
    stages.done()
    found = [(entry.name, one) for entry in analysed for one in entry.loops]
    assumptions = tuple(dict.fromkeys(a for entry in analysed for a in entry.assumptions))
    depths = [depth for entry in analysed for depth in depths_json(image, entry)]
    document = {
        "schema_version": SCHEMA_VERSION,
        "loops": [as_json(image, name, one) for name, one in found],
        "recursion": depths,
        "assumptions": list(map(str, assumptions)),
        "assumption_kinds": table(assumptions),
    }
    loops = [one for _, one in found]
    lines = [
        f"recursion: {d['entry']}: at most {d['activations']} activations of {d['function']} "
        f"at a time: {d['evidence']}"
        for d in depths
    ]
    lines += [f"assumed: {a}" for a in assumptions]
    publish_document(
        options,
        lambda: document,
        lambda: (*as_text(image, loops), *lines),
        [(options.ffx, lambda: to_ffx(image, loops, options.binary.name))],
    )
    unanswered = dict.fromkeys(
        f"{image.place(one.header)}: {one.bound.unanswered}"
        for one in loops
        if one.bound.unanswered
    )
    graphs = [graph for entry in analysed for graph in entry.graphs]
    marked = substituted(options.checker, (one.bound for one in loops))
    for text in (*marked, *unanswered, *loops_not_found(graphs, image, inputs.facts)):
        stages.warn(text)
    if refused:
        return refused[0].exit_status
    if any(one.bound.failed for one in loops):
        return SolverError.exit_status
    missing = (one.bound.bound is None and one.bound.method != "parameter" for one in loops)
    return UnboundedLoop.exit_status if any(missing) else 0


def read_inputs(options: argparse.Namespace, stages: StageLog) -> tuple[AnalysisRun, Arrival]:
    """The inputs with the entries to be listed, and the way in which control gets to them.

    Without ``--entry`` and entries of the platform, each function of the file is an entry.
    """
    wanted = requested(options, options.entry, options.smv)
    inputs = AnalysisRun.begin(options.binary, replace(wanted, entries=()), stages)
    try:
        entries = find_entries(inputs.image, inputs.platform, wanted.entries)
    except UsageError:
        if options.entry:
            raise
        if options.from_reset:
            raise UsageError(
                "--from-reset is about paths from an entry", hint="name it with --entry"
            ) from None
        return replace(inputs, entries=functions(inputs.image)), Arrival.FUNCTION
    if options.from_reset:
        refuse_several(entries)
    return replace(inputs, entries=entries), Arrival.ENTRY


def functions(image: Image) -> dict[str, int]:
    """The functions of the file by symbol, or by address where several share the name."""
    symbols = [
        symbol
        for symbol in image.symbols.symbols
        if symbol.kind == "func" and image.is_executable(symbol.addr)
    ]
    found: dict[str, int] = {}
    for symbol in symbols:
        address, only = symbol.addr | symbol.thumb, image.only_symbol(symbol.name)
        if only is None or only == symbol:
            found[symbol.name if only == symbol else hex(address)] = address
    return found or {hex(image.entry): image.entry}


def nested(options: argparse.Namespace, stages: StageLog) -> tuple[Image, Program]:
    """The functions whose loop nest is listed, also for a file without a known platform."""
    try:
        inputs, _ = read_inputs(options, stages)
    except InputError:
        if options.platform:
            raise
        return listed_program(options, [])
    entries = sorted({*inputs.entries.values()})
    return inputs.image, extract(inputs.image, entries, inputs.facts, inputs.exits)


def each(inputs: AnalysisRun, arrival: Arrival, refused: list[WcetError]) -> Iterator[EntryLoops]:
    """The loops of each entry; ``refused`` collects the errors of entries that are left out.

    Raises the error if there is only one entry.
    """
    for name, address in inputs.entries.items():
        inputs.stages.say(f"loops of {name}")
        try:
            yield loops_of(AnalysisTarget(inputs, name, address, PathOrigin(arrival)))
        except WcetError as error:
            if len(inputs.entries) == 1:
                raise
            refused.append(error)
            inputs.stages.warn(f"{name}: {error}")


def depths_json(image: Image, entry: EntryLoops) -> list[dict[str, Any]]:
    """The recursion depths below an entry, as JSON values."""
    return [
        {
            "entry": entry.name,
            "function": _function(image, function),
            "activations": depth.activations,
            "evidence": "; ".join(map(str, depth.facts)) or depth.evidence,
        }
        for function, depth in sorted(entry.depths.items())
    ]


def as_json(image: Image, entry: str, item: LoopInContext) -> dict[str, Any]:
    """One loop in one context; ``context`` lists the calls that lead there, outermost first."""
    graph, bound = item.graph, item.bound
    node = graph.nodes[item.loop.header]
    line = image.line(item.header)
    calls = [c for c in graph.call_string(node.context) if c.call_site is not None]
    return {
        "entry": entry,
        "place": image.place(item.header),
        "address": hex(item.header),
        "line": f"{line.file}:{line.line}" if line else None,
        "function": _function(image, graph.contexts[node.context].function),
        "any_context_of": None if item.summary is None else _function(image, item.summary),
        "context": [image.place(c.call_site) for c in calls if c.call_site is not None],
        "bound": item.iterations,
        "exact": bound.exact,
        "method": bound.method,
        "evidence": bound.explained,
        "seconds": round(bound.seconds, 4),
        "reason": "" if bound.reason is None else str(bound.reason),
    }


def _function(image: Image, entry: int) -> str:
    found = image.symbol_at(entry)
    return found[0].name if found else hex(entry)


def to_ffx(image: Image, found: Sequence[LoopInContext], name: str) -> str:
    """The loops with a bound in every context, as flow facts for OTAWA.

    A bound that holds only while an interrupt is pending does not count.
    """
    most: dict[int, int] = {}
    open_loops = {i.header for i in found if i.iterations is None or i.bound.method == "pending"}
    for item in found:
        if item.header not in open_loops and item.iterations:
            most[item.header] = max(item.iterations, most.get(item.header, 0))
    loops = [(header, bound, image.place(header)) for header, bound in sorted(most.items())]
    return write_ffx(loops, f"loops of {name}, sha256 {image.sha256}: back edges for each entry")


def as_text(image: Image, found: Sequence[LoopInContext]) -> list[str]:
    """A line per place and result, with the number of such contexts."""
    if not found:
        return ["no loops"]
    groups: dict[tuple[int, int | None, str, str], list[LoopInContext]] = {}
    for item in found:
        b = item.bound
        reason = b.explained if b.reason is None else str(b.reason)
        if item.summary is not None:
            reason = f"in any context of {_function(image, item.summary)}: {reason}"
        groups.setdefault((item.header, item.iterations, b.method, reason), []).append(item)
    lines = [f"{'bound':>10}  {'method':<8}{'contexts':>8}{'seconds':>9}  place"]
    for (header, bound, method, reason), items in sorted(
        groups.items(), key=lambda g: (g[0][0], str(g[0][1:]))
    ):
        seconds = max(item.bound.seconds for item in items)
        number = "-" if bound is None else f"{bound:,}"
        lines.append(
            f"{number:>10}  {method or '-':<8}{len(items):>8}{seconds:>9.2f}  {image.place(header)}"
        )
        lines.append(f"{'':>12}{reason}")
    bounded = sum(item.iterations is not None for item in found)
    exact = sum(bool(item.bound.exact) for item in found)
    lines.append(f"{len(found)} loops in their contexts: {bounded} bounded, {exact} of them exact")
    return lines
