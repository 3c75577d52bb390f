"""A drawn function with its share of a worst path: colours, cycles, and a legend."""

from __future__ import annotations

import networkx as nx

from wcet.reports.loads import HEAT, OFF, FunctionLoad, heat

__all__ = ["LEGEND", "painted"]

LEGEND = (
    (OFF, "not on the worst path"),
    (HEAT[1], "few cycles"),
    (heat(1, 4), "a quarter of the most"),
    (HEAT[-1], "most cycles"),
)


def painted(graph: nx.MultiDiGraph, load: FunctionLoad) -> nx.MultiDiGraph:
    """``graph``, as ``control_flow`` gives it, with executions, cycles, bounds and colours.

    Two edges between the same blocks, as of a branch to the next instruction, both show the sum of
    their executions.
    """
    found = graph.copy()
    most = max((cycles for _, cycles in load.blocks.values()), default=0)
    for _, block in found.nodes(data=True):
        executions, cycles = load.blocks.get(block["address"], (0, 0))
        low, high = load.loops.get(block["address"], (0, 0))
        lines = [block["label"]]
        if high:
            lines.append(f"loop: at most {high if low == high else f'{low} to {high}'}")
        if executions:
            lines.append(f"{cycles:,} cycles, {executions:,}×")
        block["label"] = "\n".join(lines)
        block["executions"], block["cycles"] = executions, cycles
        block["fill"] = heat(cycles, most) if executions else OFF
    for source, target, edge in found.edges(data=True):
        ends = found.nodes[source]["address"], found.nodes[target]["address"]
        edge["executions"] = load.edges.get(ends, 0)
    return found
