"""The data of a page: one document of JSON values, which the scripts of the page show.

Addresses are numbers here, as scripts find blocks by them. Functions, files, assumptions and
entries are referred to by index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ilp.paths.outline import PathOutline
from loopbounds.proof.bound import LoopBound
from quoll.assumptions import table
from quoll.facts.fact import Fact
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.gate.compare import RecordChange
from wcet.latency.summarised_calls import summarised_calls
from wcet.page.analysed_code import AnalysedCode, SourceLines
from wcet.page.caches import MemoryUse
from wcet.page.comparison_document import comparison_document
from wcet.reports.loads import HEAT, CountedPath, counted_paths
from wcet.reports.painted import LEGEND
from wcet.reports.path_text import loop_name
from wcet.reports.proved_text import exclusion_line
from wcet.reports.result_text import CAUSES, start_text

__all__ = ["page_document"]

SCHEMA_VERSION = 1
NOTHING = MemoryUse((), {})


def page_document(
    result: AnalysisResult,
    sources: Path,
    memory: Mapping[str, MemoryUse],
    comparison: RecordChange | None,
) -> dict[str, Any]:
    """The document. ``memory``: by name of the entry; ``sources``: the compiler's folder."""
    lines = SourceLines(result.image, sources)
    functions = AnalysedCode(result).document(lines)
    latency = result.latency
    return {
        "schema_version": SCHEMA_VERSION,
        "version": version("quoll"),
        "kernel": {"path": str(result.kernel), "sha256": result.image.sha256},
        "platform": {
            "name": result.platform.name,
            "description": result.platform.description,
            "chosen": result.platform_reason,
            "megahertz": result.platform.clock_hz / 1e6,
            "l2": result.platform.l2_enabled,
        },
        "facts_files": list(result.facts_files),
        "causes": list(CAUSES.values()),
        "heat": list(HEAT),
        "legend": [list(row) for row in LEGEND],
        "latency": latency
        and {
            "cycles": latency.cycles,
            "microseconds": result.microseconds(latency.cycles),
            "longest": latency.longest,
            "longest_cycles": latency.longest_cycles,
            "interrupt_cycles": latency.interrupt_cycles,
            "interrupts": latency.together,
            "controller_cycles": latency.delay,
        },
        "functions": functions,
        "files": lines.document(),
        "entries": [
            _entry(result, e, memory.get(e.name, NOTHING)) for e in result.entries.values()
        ],
        "unbounded": [
            {"name": name, "message": str(error)} for name, error in result.unbounded.items()
        ],
        "loops": _loops(result),
        "assumptions": _listed(result),
        "facts": [
            {
                "source": f.source,
                "text": f.text,
                "label": f.label,
                "places": _code_named(result, f.fact),
            }
            for f in result.facts
        ],
        "comparison": comparison and comparison_document(comparison),
    }


def _code_named(result: AnalysisResult, fact: Fact) -> list[int]:
    """The addresses of code that a fact names; facts about memory name none."""
    places = (result.located.at(fact, text) for text in (*fact.places(), *fact.functions()))
    found = {address for place in places for address in place.addresses}
    return sorted(address for address in found if result.image.is_executable(address))


def _entry(result: AnalysisResult, entry: EntryResult, memory: MemoryUse) -> dict[str, Any]:
    start = start_text(result, entry, entry.starts[0]) if len(entry.starts) > 1 else ""
    return {
        "name": entry.name,
        "symbol": entry.symbol,
        "address": entry.address,
        "cycles": entry.cycles,
        "microseconds": result.microseconds(entry.cycles),
        "formula": "" if entry.parametric is None else str(entry.parametric),
        "for_what": entry.for_what.strip(),
        "seen": None if entry.seen is None else entry.seen.cycles,
        "interval": entry.interval,
        "causes": list(entry.cycles_by_cause().values()),
        "solver": entry.solution.solver,
        "method": entry.solution.method,
        "optimal": entry.solution.optimal,
        "unrealisable": entry.path.unrealisable or "",
        "unmasking": list(entry.unmasking),
        "never_returning": list(entry.never_returning),
        "proved": list(map(exclusion_line, entry.proved)),
        "start": start,
        "contexts": len(entry.graph.contexts),
        "blocks": len(entry.graph.nodes),
        "paths": [_path(result, entry, path, memory) for path in counted_paths(entry)],
        "caches": [use.document() for use in memory.caches],
    }


def _path(
    result: AnalysisResult, entry: EntryResult, path: CountedPath, memory: MemoryUse
) -> dict[str, Any]:
    """A worst path: its outline as rows, inner sections after outer ones, and loads of functions.

    A row has its parent's index, function, call site or header, name of the loop or "", entries,
    iterations, bound of the loop or null, own cycles by cause, and blocks. A block has its address,
    executions, cycles, and the charges of its instructions' references as (position, cycles).
    """
    whole, called = path.outline(), path.call
    waits = memory.waits if called is None else {}
    rows: list[list[Any]] = []
    pending: list[tuple[PathOutline, int]] = [(whole, -1)]
    while pending:
        at, parent = pending.pop()
        pending += [(child, len(rows)) for child in reversed(at.children)]
        rows.append(_row(result, path, at, parent, waits))
    return {
        "title": f"worst path of {entry.name}{entry.for_what}"
        if called is None
        else f"inside {result.function(called.function.address)}, "
        f"one of {called.calls:,} calls that each take as long",
        "cycles": whole.cycles,
        "rows": rows,
        "loads": [
            [
                function,
                [[addr, *use] for addr, use in load.blocks.items()],
                [[*exits, count] for exits, count in load.edges.items()],
                [[header, *bounds] for header, bounds in load.loops.items()],
            ]
            for function, load in path.loads(whole).items()
        ],
    }


def _row(
    result: AnalysisResult,
    path: CountedPath,
    at: PathOutline,
    parent: int,
    waits: Mapping[int, Mapping[int, int]],
) -> list[Any]:
    graph = path.graph
    context, loop = graph.contexts[at.stretch.context], at.stretch.loop
    if loop is None:
        where, name, limit = context.call_site, "", None
    else:
        where = graph.nodes[graph.loops[loop].header].block.addr
        name, limit = loop_name(result, graph, at), path.bounds[loop].iterations(graph)
    return [
        parent,
        context.function & ~1,
        where,
        name,
        at.entries,
        at.iterations,
        limit,
        list(at.own),
        [
            [
                *(graph.nodes[node].block.addr, executions, cycles),
                [list(wait) for wait in waits.get(node, {}).items()],
            ]
            for node, executions, cycles in at.blocks
        ],
    ]


def _loops(result: AnalysisResult) -> list[dict[str, Any]]:
    """Every loop by header, method and entry, with its bounds over all contexts.

    Loops of functions with a summary are included.
    """
    numbers = {assumption: n for n, assumption in enumerate(result.assumptions)}
    found: dict[tuple[int, str, int], dict[str, Any]] = {}
    for number, entry in enumerate(result.entries.values()):
        for graph, bounds, counts in _bounded(entry):
            for loop, bound in zip(graph.loops, bounds, strict=True):
                header = graph.nodes[loop.header]
                address = header.block.addr
                row = found.setdefault((address, bound.method, number), _no_loop(bound.method))
                row["entry"], row["header"] = number, address
                row["function"] = graph.contexts[header.context].function & ~1
                row["place"] = result.image.place(address)
                row["contexts"] += 1
                row["exact"] &= bound.exact is True
                row["executions"] += counts[loop.header] if counts else 0
                if bound.bound is not None:
                    iterations = bound.bound + graph.apart(loop)
                    if row["high"] is None or iterations > row["high"]:
                        row["high"], row["evidence"] = iterations, bound.explained
                    row["low"] = iterations if row["low"] is None else min(row["low"], iterations)
                row["evidence"] = row["evidence"] or bound.explained or str(bound.reason)
                numbers_of_assumptions = {numbers[a] for a in bound.assumptions if a in numbers}
                row["assumptions"] = sorted({*row["assumptions"], *numbers_of_assumptions})
    return [found[key] for key in sorted(found)]


def _bounded(
    entry: EntryResult,
) -> Iterator[tuple[Supergraph, Sequence[LoopBound], Sequence[int]]]:
    """The graphs of an entry, with loop bounds, and counts of nodes on the worst path."""
    yield entry.graph, entry.bounds, entry.solution.nodes
    counts = [[0] * len(one.paths.graph.nodes) for one in entry.summaries]
    for call in summarised_calls(entry):
        for node, count in enumerate(call.function.solution.nodes):
            counts[call.earlier][node] += call.calls * count
    for one, nodes in zip(entry.summaries, counts, strict=True):
        yield one.paths.graph, one.paths.bounds, nodes


def _no_loop(method: str) -> dict[str, Any]:
    return {
        "method": method,
        "contexts": 0,
        "low": None,
        "high": None,
        "executions": 0,
        "exact": True,
        "evidence": "",
        "assumptions": [],
    }


def _listed(result: AnalysisResult) -> list[dict[str, Any]]:
    """Each assumption with its kind, and the entries and loops whose bounds depend on it."""
    entries = list(result.entries.values())
    return [
        {**row, "entries": [n for n, e in enumerate(entries) if assumption in e.assumptions]}
        for assumption, row in zip(result.assumptions, table(result.assumptions), strict=True)
    ]
