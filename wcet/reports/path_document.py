"""A worst path as JSON values: the nest of its calls and loops, and its single steps.

The nest has each block once, however often it executes, so its size grows with the program and not
with the path. ``wcet path --full`` writes the steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ilp.paths.outline import PathOutline, PathSection, outline, spent_at
from ilp.paths.solution import PathStep
from pipeline.costs import CostCause
from quoll.inlining.supergraph import SuperEdge
from wcet.analysis.result import AnalysisResult, EntryResult

__all__ = ["nest_json", "step_lines"]

STEPS_VERSION = 1  # of the lines of ``step_lines``


def nest_json(result: AnalysisResult, entry: EntryResult) -> list[dict[str, Any]]:
    """The calls and loops of the worst path, each after the one around it; [] without counts.

    ``inside`` is the position of the one around it in the list.
    """
    if not entry.solution.nodes:
        return []
    whole = outline(entry.graph, entry.costs, entry.solution, entry.path.steps)
    positions: dict[PathSection, int] = {}
    sections = []
    for around, at in whole.walk():
        positions[at.stretch] = len(positions)
        inside = positions[around[-1].stretch] if around else None
        sections.append({"inside": inside, **section_json(result, entry, at)})
    return sections


def section_json(result: AnalysisResult, entry: EntryResult, at: PathOutline) -> dict[str, Any]:
    """A call or loop with its own blocks; ``cycles`` includes the calls and loops inside it."""
    return {
        "context": at.stretch.context,
        "loop": at.stretch.loop,
        "entries": at.entries,
        "iterations": None if at.stretch.loop is None else at.iterations,
        "cycles": at.cycles,
        "blocks": [block_json(result, entry, node) for node, _, _ in at.blocks],
    }


def block_json(result: AnalysisResult, entry: EntryResult, node: int) -> dict[str, Any]:
    """A block with the cycles of all its executions, and the edges that the path takes from it."""
    graph, solution = entry.graph, entry.solution
    block = graph.nodes[node].block
    line = result.image.line(block.addr)
    spent = spent_at(graph, entry.costs, solution, node)
    return {
        "address": hex(block.addr),
        "end": hex(block.end),
        "line": None if line is None else str(line),
        "executions": solution.nodes[node],
        "cycles": sum(spent),
        "causes": causes_json(spent),
        "edges": [
            edge_json(entry, graph.edges[e], solution.edges[e])
            for e in graph.successors[node]
            if solution.edges[e]
        ],
    }


def edge_json(entry: EntryResult, edge: SuperEdge, count: int) -> dict[str, Any]:
    """An edge with its destination and its number of traversals."""
    to = entry.graph.nodes[edge.dst]
    return {
        "kind": edge.kind.value,
        "to": hex(to.block.addr),
        "context": to.context,
        "traversals": count,
    }


def causes_json(cycles: list[int] | tuple[int, ...]) -> dict[str, int]:
    """The causes with cycles."""
    return {cause.name.lower(): cycles[cause] for cause in CostCause if cycles[cause]}


def step_lines(result: AnalysisResult, entry: EntryResult) -> Iterator[str]:
    """A JSON object for the path, then one for each of its steps."""
    yield json.dumps(
        {
            "schema_version": STEPS_VERSION,
            "entry": entry.name,
            "cycles": entry.bound_cycles,
            "path_unrealisable": entry.path.unrealisable,
            "steps": len(entry.path.steps),
        }
    )
    known: dict[tuple[PathStep, tuple[int, ...]], str] = {}
    for charged in entry.charged_steps():
        if charged not in known:
            known[charged] = json.dumps(step_json(result, entry, *charged))
        yield known[charged]


def step_json(
    result: AnalysisResult, entry: EntryResult, step: PathStep, causes: tuple[int, ...]
) -> dict[str, Any]:
    """One block of the worst path, with its outgoing edge."""
    node = entry.graph.nodes[step.node]
    line = result.image.line(node.block.addr)
    return {
        "address": hex(node.block.addr),
        "end": hex(node.block.end),
        "function": result.function(entry.graph.contexts[node.context].function),
        "line": None if line is None else str(line),
        "context": node.context,
        "edge": None if step.edge is None else entry.graph.edges[step.edge].kind.value,
        "cycles": sum(causes),
        "causes": causes_json(causes),
    }
