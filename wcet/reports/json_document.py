"""A result as JSON. The schema is versioned; fields are only ever added within a version."""

from __future__ import annotations

import json
from typing import Any

from ilp.parametric import ParametricBound
from quoll.assumptions import table
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.analysis.seen_executions import SeenExecution
from wcet.latency.summarised_calls import summarised_calls
from wcet.reports.path_document import nest_json
from wcet.reports.proved_text import exclusion_json

__all__ = ["SCHEMA_VERSION", "seen_json", "to_json"]

SCHEMA_VERSION = 2  # 1 had every step of a path


def to_json(result: AnalysisResult) -> str:
    """The whole result; addresses are hexadecimal strings, times cycles, microseconds, seconds."""
    from importlib.metadata import version  # loading takes 20 ms

    latency = result.latency
    document = {
        "schema_version": SCHEMA_VERSION,
        "version": version("quoll"),
        "question": dict(result.configuration),
        "kernel": {
            "path": str(result.kernel),
            "sha256": result.image.sha256,
            "cpu": result.image.cpu,
        },
        "platform": {
            "name": result.platform.name,
            "chosen": result.platform_reason,
            "clock_hz": result.platform.clock_hz,
            "l2": result.platform.l2_enabled,
        },
        "facts": list(result.facts_files),
        "fact_labels": [
            {"source": f.source, "fact": f.text, "label": f.label} for f in result.facts
        ],
        "entries": {name: entry_json(result, e) for name, e in result.entries.items()},
        "unbounded": {
            name: {"message": error.message, "hint": error.hint}
            for name, error in result.unbounded.items()
        },
        "interrupt_latency": latency
        and {
            "cycles": latency.cycles,
            "microseconds": result.microseconds(latency.cycles),
            "longest_masked_path": latency.longest,
            "longest_masked_cycles": latency.longest_cycles,
            "interrupt_entry": latency.interrupt,
            "interrupt_cycles": latency.interrupt_cycles,
            "interrupts": latency.together,
            "controller_cycles": latency.delay,
        },
        "assumptions": list(map(str, result.assumptions)),
        "assumption_kinds": table(result.assumptions),
        "stages": {
            name: {"seconds": round(use.seconds, 4), "peak_mib": round(use.peak_mib, 1)}
            for name, use in result.stages.items()
        },
    }
    return json.dumps(document, indent=1) + "\n"


def entry_json(result: AnalysisResult, entry: EntryResult) -> dict[str, Any]:
    """One entry: the bound, its causes, and the worst path as a nest of calls and loops."""
    graph = entry.graph
    return {
        "symbol": entry.symbol,
        "address": hex(entry.address),
        "cycles": entry.bound_cycles,
        "microseconds": None if entry.parametric else result.microseconds(entry.cycles),
        "parametric": entry.parametric and parametric_json(result, entry, entry.parametric),
        "may_unmask_at": list(entry.unmasking),
        "never_returning": list(entry.never_returning),
        "optimal": entry.solution.optimal,
        "solver": entry.solution.solver,
        "proved_by": entry.solution.method,
        "causes": {cause.name.lower(): cycles for cause, cycles in entry.cycles_by_cause().items()},
        "contexts": [
            {
                "parent": c.parent,
                "call_site": None if c.call_site is None else hex(c.call_site),
                "function": result.function(c.function),
            }
            for c in graph.contexts
        ],
        "starts": [
            {
                "place": None if s.place is None else result.image.place(s.place),
                "context": s.context,
                "inside": None if s.inside is None else result.function(s.inside),
                "cycles": None if entry.parametric else s.cycles,
            }
            for s in entry.starts
        ],
        "blocks": len(graph.nodes),
        "edges": len(graph.edges),
        "loops": [
            {
                "place": result.image.place(graph.nodes[loop.header].block.addr),
                "context": graph.nodes[loop.header].context,
                "bound": bound.iterations(graph),
                "first_apart": bool(graph.apart(loop)),
                "exact": bound.exact,
                "method": bound.method,
                "evidence": bound.explained,
                "seconds": round(bound.seconds, 4),
            }
            for loop, bound in zip(graph.loops, entry.bounds, strict=True)
        ],
        "shared_functions": [
            {
                "function": result.function(call.function.address),
                "calls": call.calls,
                "cycles": call.cycles,
                "cycles_of_a_call": call.function.solution.cycles,
                "depth": call.depth,
            }
            for call in summarised_calls(entry)
        ],
        "infeasible_edges": [
            {
                "from": hex(edge.source),
                "to": hex(edge.target),
                "context": edge.context,
                "why": edge.why,
            }
            for edge in entry.infeasible
        ],
        "proved_exclusions": [exclusion_json(one) for one in entry.proved],
        "seen": seen_json(entry.seen),
        "path": nest_json(result, entry),
        "path_unrealisable": entry.path.unrealisable,
        "assumptions": list(map(str, entry.assumptions)),
    }


def seen_json(seen: SeenExecution | None) -> dict[str, Any] | None:
    """The longest known execution of an entry."""
    if seen is None:
        return None
    return {
        "cycles": seen.cycles,
        "charged_cycles": seen.charged,
        "evidence": seen.evidence,
        "state": None if seen.state is None else dict(seen.state),
    }


def parametric_json(
    result: AnalysisResult, entry: EntryResult, bound: ParametricBound
) -> dict[str, Any]:
    """A bound as a function; ``path`` and ``causes`` are for ``example``.

    A piece holds from ``first`` to ``last`` (null: unlimited) of the first parameter.
    """
    return {
        "text": str(bound),
        "exact": bound.exact,
        "reason": bound.reason,
        "parameters": list(bound.names),
        "pieces": [
            {
                "first": affine.first,
                "last": affine.last,
                "constant": affine.constant,
                "slopes": dict(zip(bound.names, affine.slopes, strict=True)),
            }
            for affine in bound.pieces
        ],
        "cycles_per_iteration": [
            {
                "place": result.image.place(header.block.addr),
                "context": header.context,
                "cycles": cycles,
            }
            for loop, cycles in bound.per_iteration
            if (header := entry.graph.nodes[entry.graph.loops[loop].header])
        ],
        "example": dict(entry.example),
        "example_cycles": entry.cycles,
    }
