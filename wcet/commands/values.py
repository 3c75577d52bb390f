"""``wcet values``: values of registers, stack and addresses in a function."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterator
from typing import Any

from quoll.arm.insn import LR, SP
from quoll.errors import UsageError
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY
from wcet.analysis.entries import find_entry
from wcet.analysis.entry_stages import AnalysisTarget
from wcet.analysis.preparation import ValuedEntry, valued
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish, publish_document
from wcet.request import add_command, add_function, requested

__all__ = ["add_to", "chosen_context", "contexts_of"]

SCHEMA_VERSION = 1
NAMES = {SP: "sp", LR: "lr"}

DESCRIPTION = """\
Print the result of value analysis at the start of each block of FUNCTION: registers, words on the
stack, the addresses of its data accesses, and edges that cannot be taken in this context.

FUNCTION is seen in one of its calling contexts of ENTRY, the first one unless --context gives
another (--contexts lists them). Without --entry the function is the entry, called from anywhere.
"""

EXAMPLES = """\
examples:
  wcet values kernel.elf cspace_lookup
  wcet values kernel.elf cspace_lookup --entry syscall --contexts
  wcet values kernel.elf cspace_lookup --entry syscall --context 17 --json -
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "registers, stack and addresses known at each block of a function"
    p = add_command(commands, "values", text, DESCRIPTION, EXAMPLES, run)
    add_function(p)


def run(options: argparse.Namespace) -> int:
    """Analyse values, and print; returns the exit status."""
    function = options.function if options.entry is None else options.entry
    wanted = requested(options, [function])
    stages = StageLog(verbose=not options.quiet)
    analysis = AnalysisRun.begin(options.kernel, wanted, stages)
    if len(analysis.entries) != 1:
        raise UsageError("wcet values looks at one entry", hint="name it with --entry")
    ((name, address),) = analysis.entries.items()
    found = valued(AnalysisTarget(analysis, name, address))
    stages.done()
    contexts = contexts_of(analysis, found.graph, options.function, name, found.values.reached)
    if options.contexts:
        lines = (f"{n:>6}  {chain(analysis, found.graph, n)}" for n in contexts)
        publish(options, [], lambda: lines)
        return 0
    context = chosen_context(options, contexts, name, next(iter(contexts)))
    blocks = [block_json(analysis, found, node) for node in contexts[context]]
    document = {
        "schema_version": SCHEMA_VERSION,
        "function": options.function,
        "entry": name,
        "context": context,
        "called": chain(analysis, found.graph, context),
        "blocks": blocks,
    }
    publish_document(options, lambda: document, lambda: to_text(document))
    return 0


def contexts_of(
    analysis: AnalysisRun,
    graph: Supergraph,
    function: str,
    entry: str,
    executed: Callable[[int], object],
) -> dict[int, list[int]]:
    """Contexts of ``function`` with its ``executed`` nodes. Raises UsageError if there is none."""
    addr = find_entry(analysis.image, analysis.platform, function) & ~1
    found: dict[int, list[int]] = {}
    for index, node in enumerate(graph.nodes):
        if graph.contexts[node.context].function & ~1 == addr and executed(index):
            found.setdefault(node.context, []).append(index)
    if not found:
        raise UsageError(
            f"{function} is never executed by {entry}",
            hint="'wcet callgraph' shows who calls it; without --entry it is its own entry",
        )
    return found


def chosen_context(
    options: argparse.Namespace, contexts: Container[int], entry: str, likely: int
) -> int:
    """The requested context, else the ``likely`` one. Raises UsageError for an unknown one."""
    context: int = likely if options.context is None else options.context
    if context not in contexts:
        raise UsageError(
            f"{options.function} has no context {context} in {entry}", hint="--contexts lists them"
        )
    return context


def chain(analysis: AnalysisRun, graph: Supergraph, context: int) -> str:
    """The calls that lead to a context, innermost first."""
    places = (analysis.image.place(c.function) for c in reversed(graph.call_string(context)))
    return " < ".join(place.split()[:2][-1] for place in places)  # the symbol, if any


def block_json(analysis: AnalysisRun, entry: ValuedEntry, node: int) -> dict[str, Any]:
    """The values at one block, without unknown registers."""
    values, block = entry.values, entry.graph.nodes[node].block
    registers = {r: values.register(node, r) for r in range(15)}
    accesses = {i: values.access(node, i) for i in range(len(block.insns))}
    return {
        "place": analysis.image.place(block.addr),
        "registers": {
            NAMES.get(r, f"r{r}"): str(known) for r, known in registers.items() if known != ANY
        },
        "stack": {f"{addr:#x}": str(known) for addr, known in values.stack(node)},
        "accesses": [
            {"place": analysis.image.place(block.insns[i].addr), "text": block.insns[i].text,
             "address": str(known)}
            for i, known in accesses.items() if known is not None
        ],
        "never_taken": [
            {"target": analysis.image.place(edge.target), "why": edge.why}
            for edge in entry.infeasible
            if edge.source == block.last.addr
            and edge.context == entry.graph.nodes[node].context
        ],
    }  # fmt: skip


def to_text(document: dict[str, Any]) -> Iterator[str]:
    """One paragraph per block."""
    yield f"{document['function']} in context {document['context']}: {document['called']}"
    for block in document["blocks"]:
        yield ""
        yield block["place"]
        known = ", ".join(f"{r} = {v}" for r, v in block["registers"].items())
        yield f"  registers  {known or 'nothing is known'}"
        if block["stack"]:
            yield "  stack      " + ", ".join(f"[{a}] = {v}" for a, v in block["stack"].items())
        for access in block["accesses"]:
            yield f"  {access['place'].split()[0]}  {access['text']:<34.34}  {access['address']}"
        for edge in block["never_taken"]:
            yield f"  never to {edge['target']}: {edge['why']}"
