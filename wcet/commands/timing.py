"""``wcet timing``: a function instruction by instruction, as a pipeline diagram."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from cache.reference import Reference, ReferenceKind
from pipeline.charge import ChargedCosts, InsnTime
from pipeline.costs import CostCause
from quoll.errors import UsageError
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import undivided
from wcet.analysis.entry_stages import AnalysisTarget, block_timer, charged, timed
from wcet.analysis.preparation import valued
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish, publish_document
from wcet.commands.values import chosen_context, contexts_of
from wcet.reports.result_text import CAUSES, TextStyle
from wcet.request import add_color, add_command, add_function, colored, columns_of, requested

__all__ = ["add_to"]

SCHEMA_VERSION = 1
WIDTH = 32  # columns of the diagram
NOTES = 17  # columns before notes below an instruction

DESCRIPTION = """\
Print when each instruction of a function issues, its stalls with their reasons, and its cycles
beyond the first-level caches.

FUNCTION is timed within ENTRY, in one of its calling contexts: the most expensive one, unless
--context gives another (--contexts lists them). Without --entry the function is the entry, called
from anywhere, with nothing known of caches and registers.

Cycles count from the first issue slot of the block, all references hitting; two instructions with
one cycle issue together. In the diagram '.' is waiting and '#' issuing. An access that may miss is
charged in full, outside the pipeline: its cycles are in the right column. The cycles of a transfer
of control beyond its own slot stand below the block, for each way out.
"""

EXAMPLES = """\
examples:
  wcet timing kernel.elf cspace_lookup
  wcet timing kernel.elf cspace_lookup --entry syscall --contexts
  wcet timing kernel.elf cspace_lookup --entry syscall --context 17
  wcet timing kernel.elf exit_to_user --json - | jq '.blocks[].insns[].stall'
"""
SHORT = {
    ReferenceKind.FETCH: "fetch",
    ReferenceKind.PREFETCH: "prefetch",
    ReferenceKind.LOAD: "load",
    ReferenceKind.STORE: "store",
    ReferenceKind.WRITE_BACK: "write-back",
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "pipeline diagram of a function: issue cycles, stalls, misses"
    p = add_command(commands, "timing", text, DESCRIPTION, EXAMPLES, run)
    add_function(p)
    add_color(p)


@dataclass(frozen=True, slots=True)
class TimedEntry:
    """An entry with the cycles of every node and edge, and their causes."""

    graph: Supergraph
    charges: ChargedCosts


def times(analysis: AnalysisRun, name: str, address: int) -> TimedEntry:
    """The stages up to cycles, for whole paths: tests for interrupts do not divide them here."""
    entry = valued(AnalysisTarget(analysis, name, address))
    part = undivided(entry.graph)
    with entry.code.stage("pipeline"):
        known = timed(entry, part, block_timer(analysis))
        return TimedEntry(entry.graph, charged(entry, part, known, {}))


@dataclass(frozen=True, slots=True)
class FunctionTiming:
    """A function in one context of an entry: its nodes in the order of their addresses."""

    run: AnalysisRun
    entry: str
    timed: TimedEntry
    context: int
    nodes: tuple[int, ...]


def run(options: argparse.Namespace) -> int:
    """Time a function, choose a context, and print; returns the exit status."""
    name = options.function if options.entry is None else options.entry
    stages = StageLog(verbose=not options.quiet)
    analysis = AnalysisRun.begin(options.kernel, requested(options, [name]), stages)
    if len(analysis.entries) != 1:
        raise UsageError("wcet timing looks at one entry", hint="name it with --entry")
    ((name, address),) = analysis.entries.items()
    timed = times(analysis, name, address)
    stages.done()
    graph, rows_of = timed.graph, timed.charges.explain
    contexts = contexts_of(analysis, graph, options.function, name, rows_of)
    if options.contexts:
        publish(options, [], lambda: listed(analysis, timed, contexts))
        return 0
    costliest = max(contexts, key=lambda c: cost(timed, contexts[c]))
    context = chosen_context(options, contexts, name, costliest)
    nodes = tuple(sorted(contexts[context], key=lambda i: graph.nodes[i].block.addr))
    timing = FunctionTiming(analysis, name, timed, context, nodes)
    style = TextStyle(
        color=colored(options), paths="none", stats=False, columns=columns_of(options)
    )
    publish_document(options, lambda: to_json(timing), lambda: to_text(timing, style))
    return 0


def cost(timed: TimedEntry, nodes: Sequence[int]) -> int:
    """Cycles of the blocks of one context, each once."""
    return sum(timed.charges.costs.node_cycles(n) for n in nodes)


def chain(image: Image, graph: Supergraph, context: int) -> list[str]:
    """The places of the calls that lead to a context, the innermost first."""
    names: list[str] = []
    at: int | None = context
    while at is not None:
        names.append(image.place(graph.contexts[at].function))
        at = graph.contexts[at].parent
    return names


def listed(
    analysis: AnalysisRun, timed: TimedEntry, contexts: dict[int, list[int]]
) -> Iterator[str]:
    """Every context, the costliest first."""
    yield f"{'context':>8}{'cycles':>10}  blocks, each once; called from"
    for context in sorted(contexts, key=lambda c: -cost(timed, contexts[c])):
        cycles = cost(timed, contexts[context])
        yield (
            f"{context:>8}{cycles:>10,}  {' < '.join(chain(analysis.image, timed.graph, context))}"
        )


def to_text(timing: FunctionTiming, style: TextStyle) -> Iterator[str]:
    """The diagram."""
    image, platform, graph = timing.run.image, timing.run.platform, timing.timed.graph
    level2 = "L2 on" if platform.l2_enabled else "L2 off"
    core = platform.timing
    yield f"platform  {style.bold(platform.name)}, {level2}; core {core.core}, {core.profile.value}"
    yield f"entry     {timing.entry}"
    yield f"context   {timing.context}: {' < '.join(chain(image, graph, timing.context))}"
    costs = timing.timed.charges.costs
    for node in timing.nodes:
        block = graph.nodes[node].block
        amounts = ", ".join(f"{CAUSES[c]} {costs.nodes[node][c]:,}" for c in CostCause
                          if costs.nodes[node][c])  # fmt: skip
        yield ""
        yield style.bold(
            f"{image.place(block.addr)}  {costs.node_cycles(node):,} cycles: {amounts}"
        )
        for row in timing.timed.charges.explain(node):
            yield from insn_lines(row, style)
        for edge in graph.successors[node]:
            yield edge_line(timing, edge, style)


def insn_lines(row: InsnTime, style: TextStyle) -> Iterator[str]:
    """One instruction: cycle, address, text, diagram; reason and misses behind it.

    They move to the next line where the terminal is too narrow.
    """
    step = row.step
    waited = "." * max(0, min(step.stall, WIDTH - 4))
    column = max(0, step.start - step.stall)
    bar = " " * min(column, WIDTH - 2) + waited + "#" * max(step.issue, 1)
    bar = bar if len(bar) <= WIDTH else bar[: WIDTH - 1] + ">"
    notes = []
    if step.reason:
        notes.append(f"{step.stall} for {step.reason}" if step.stall else f"after {step.reason}")
    notes += [reference_text(r, cycles) for r, cycles in row.references]
    note = "; ".join(notes)
    text = f"{step.start:>5}  {row.insn.addr:08x}  {row.insn.text:<32.32} {bar:<{WIDTH}}  "
    if style.columns is None or len(text) + len(note) <= style.columns:
        yield f"{text}{style.dim(note)}".rstrip()
        return
    yield text.rstrip()
    for line in wrap(note, max(style.columns - NOTES, 20)):
        yield f"{'':{NOTES}}{style.dim(line)}"


def reference_text(reference: Reference, cycles: int) -> str:
    """The class of an access, and its charge."""
    place = "" if reference.low is None else f" {reference.low:#x}"
    if reference.low is not None and reference.high != reference.low:
        place += f"..{reference.high:#x}"
    hit = "credited" if reference.credited else reference.l1.value
    return f"{SHORT[reference.kind]}{place} {hit}" + (f" +{cycles:,}" if cycles else "")


def edge_line(timing: FunctionTiming, edge: int, style: TextStyle) -> str:
    """An edge out of a block and the cycles that it adds."""
    graph, costs = timing.timed.graph, timing.timed.charges.costs
    taken = graph.edges[edge]
    amounts = ", ".join(
        f"{CAUSES[c]} {costs.edges[edge][c]:,}" for c in CostCause if costs.edges[edge][c]
    )
    place = timing.run.image.place(graph.nodes[taken.dst].block.addr)
    return style.dim(f"       -> {taken.kind.value} {place}: {amounts or '0'}")


def to_json(timing: FunctionTiming) -> dict[str, Any]:
    """The timing as JSON values: cycles by cause, and each instruction's step and references."""
    image, graph, costs = timing.run.image, timing.timed.graph, timing.timed.charges.costs
    return {
        "schema_version": SCHEMA_VERSION,
        "platform": timing.run.platform.name,
        "core": timing.run.platform.timing.core,
        "profile": timing.run.platform.timing.profile.value,
        "entry": timing.entry,
        "context": timing.context,
        "called": chain(image, graph, timing.context),
        "blocks": [
            {
                "address": graph.nodes[node].block.addr,
                "place": image.place(graph.nodes[node].block.addr),
                "cycles": by_cause(costs.nodes[node]),
                "insns": [insn_json(row) for row in timing.timed.charges.explain(node)],
                "edges": [
                    {
                        "kind": graph.edges[edge].kind.value,
                        "to": graph.nodes[graph.edges[edge].dst].block.addr,
                        "cycles": by_cause(costs.edges[edge]),
                    }
                    for edge in graph.successors[node]
                ],
            }
            for node in timing.nodes
        ],
    }


def by_cause(cycles: Sequence[int]) -> dict[str, int]:
    """Cycles by cause, under the names of the text report."""
    return {CAUSES[cause]: cycles[cause] for cause in CostCause if cycles[cause]}


def insn_json(row: InsnTime) -> dict[str, Any]:
    """One instruction as JSON values."""
    return {
        "address": row.insn.addr,
        "text": row.insn.text,
        "cycle": row.step.start,
        "issue": row.step.issue,
        "stall": row.step.stall,
        "waits_for": row.step.reason,
        "references": [
            {"kind": SHORT[r.kind], "low": r.low, "high": r.high, "l1": r.l1.value,
             "cycles": cycles}
            for r, cycles in row.references
        ],
    }  # fmt: skip
