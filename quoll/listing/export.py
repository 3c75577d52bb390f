"""Programs for other tools: JSON, and networkx graphs for DOT and GraphML.

Attributes of nodes and edges are strings, integers and Booleans, so that every writer of networkx
accepts them. ``label`` is the text in a drawing. ``Program.call_graph`` is the graph of functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import networkx as nx

from quoll.assumptions import table
from quoll.cfg.call_graph import Recursion, recursions
from quoll.cfg.cfg import Cfg, EdgeKind, Program
from quoll.graph.natural_loops import NaturalLoop
from quoll.image.image import Image
from quoll.inlining.context_count import ContextCounter
from quoll.inlining.vivu import FULL, VivuSettings
from quoll.listing.program_text import function_loops

__all__ = [
    "SCHEMA_VERSION",
    "call_graph_dot",
    "cfg_dot",
    "control_flow",
    "program_json",
    "to_graphml",
]

SCHEMA_VERSION = 3  # schema of ``program_json``

Json = dict[str, object]


def program_json(program: Program, image: Image, vivu: VivuSettings = FULL) -> Json:
    """All data about ``program`` in plain values; addresses are integers, places text.

    ``vivu`` distinguishes the contexts that are counted.
    """
    cfgs = list(program.functions.values())
    described = [_function_json(program, cfg, image) for cfg in cfgs]
    loops = sum(len(found) for _, found in described)
    count = ContextCounter(program, image, vivu)
    contexts = {
        program.functions[entry].name: size.contexts if (size := count.of(entry)) else None
        for entry in program.entries
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "sha256": image.sha256,
        "entries": list(program.entries),
        "functions": [function for function, _ in described],
        "instructions": sum(len(b.insns) for cfg in cfgs for b in cfg.blocks),
        "blocks": sum(len(cfg.blocks) for cfg in cfgs),
        "edges": sum(len(cfg.edges) for cfg in cfgs),
        "loops": loops,
        "contexts": contexts,
        "jump_tables": [
            {
                "address": table.addr,
                "place": image.place(table.addr),
                "table": table.table,
                "entries": list(table.targets),
            }
            for table in program.jump_tables
        ],
        "unresolved": [
            {
                "address": u.addr,
                "place": u.where,
                "reason": u.reason,
                "hint": u.hint,
                "proposal": u.proposal and u.proposal.fact,
                "note": u.proposal.note if u.proposal else "",
            }
            for u in program.unresolved
        ],
        "noreturn": [cfg.name for cfg in cfgs if not cfg.returns],
        "recursion": [_recursion_json(program, r) for r in recursions(program)],
        "assumptions": list(map(str, program.assumptions)),
        "assumption_kinds": table(program.assumptions),
    }


def _recursion_json(program: Program, recursion: Recursion) -> Json:
    functions, depths = program.functions, program.guidance.depths
    return {
        "functions": [functions[f].name for f in sorted(recursion.functions)],
        "cycle": [functions[call.caller].name for call in recursion.cycle],
        "depths": {
            functions[f].name: depths[f].activations
            for f in sorted(recursion.functions & depths.keys())
        },
        "proved": [
            functions[f].name
            for f in sorted(recursion.functions & depths.keys())
            if not depths[f].facts
        ],
        "bounded": recursion.bounded,
    }


def _function_json(
    program: Program, cfg: Cfg, image: Image
) -> tuple[Json, tuple[NaturalLoop, ...]]:
    loops, irreducible = function_loops(cfg)
    function: Json = {
        "name": cfg.name,
        "address": cfg.entry,
        "place": image.place(cfg.entry),
        "thumb": cfg.thumb,
        "returns": cfg.returns,
        "blocks": [
            {
                "address": block.addr,
                "end": block.end,
                "line": str(image.line(block.addr) or ""),
                "calls": [program.functions[c].name for c in block.calls],
                "replaced": [image.place(c) for c in block.passes],
                "tail": block.tail,
                "returns": block.returns,
                "exits": block.exits,
            }
            for block in cfg.blocks
        ],
        "edges": [[edge.src, edge.dst, edge.kind.value] for edge in cfg.edges],
        "loops": [
            {"header": loop.header, "blocks": sorted(loop.nodes), "parent": loop.parent}
            for loop in loops
        ],
        "irreducible": [list(edge) for edge in irreducible],
    }
    return function, loops


STYLES = {
    EdgeKind.FALLTHROUGH.value: "solid",
    EdgeKind.TAKEN.value: "bold",
    EdgeKind.INDIRECT.value: "dashed",
    EdgeKind.ACROSS.value: "dotted",
}


ON_PATH = "#d6481a"  # colour of edges on a path


def control_flow(cfg: Cfg, image: Image) -> nx.MultiDiGraph:
    """The blocks of one function by index; labels have one instruction a line."""
    graph = nx.MultiDiGraph(name=cfg.name)
    for block in cfg.blocks:
        text = [image.place(block.addr), *(f"{i.addr:08x} {i.text}" for i in block.insns)]
        text += [f"{'tail call' if block.tail else 'call'} {image.place(c)}" for c in block.calls]
        text += [f"call {image.place(c)}, replaced" for c in block.passes]
        text += ["return"] * block.returns + ["end of path"] * block.exits
        graph.add_node(block.index, label="\n".join(text), address=block.addr, end=block.end)
    for edge in cfg.edges:
        graph.add_edge(edge.src, edge.dst, kind=edge.kind.value)
    return graph


def cfg_dot(graph: nx.MultiDiGraph, legend: Sequence[tuple[str, str]] = ()) -> str:
    """The graph of one function for Graphviz.

    A block with ``fill`` has that colour, and an edge with ``executions`` is thick; ``legend``
    explains the colours.
    """
    lines = [f"digraph {_quote(graph.name)} {{", '  node [shape=box, fontname="monospace"];']
    for block, data in graph.nodes(data=True):
        fill = f', style=filled, fillcolor="{data["fill"]}"' if "fill" in data else ""
        lines.append(f"  b{block} [label={_quote(data['label'])}{fill}];")
    for a, b, data in graph.edges(data=True):
        count = data.get("executions", 0)
        path = f', color="{ON_PATH}", penwidth=3, label="{count:,}×"' if count else ""
        lines.append(f"  b{a} -> b{b} [style={STYLES[data['kind']]}{path}];")
    if legend:
        lines.append("  subgraph cluster_legend {")
        lines += [
            f'    l{n} [label={_quote(text)}, style=filled, fillcolor="{fill}"];'
            for n, (fill, text) in enumerate(legend)
        ]
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def call_graph_dot(graph: nx.DiGraph) -> str:
    """The call graph for Graphviz: tail calls dashed."""
    lines = ["digraph calls {", "  node [shape=box];"]
    lines += [f"  f{entry:x} [label={_quote(name)}];" for entry, name in graph.nodes(data="label")]
    for caller, callee, made in sorted(graph.edges(data=True), key=lambda edge: edge[:2]):
        edge = f"  f{caller:x} -> f{callee:x}"
        lines += [f"{edge};"] * (made["calls"] > 0)
        lines += [f"{edge} [style=dashed];"] * (made["tail_calls"] > 0)
    return "\n".join([*lines, "}"]) + "\n"


def to_graphml(graph: nx.DiGraph) -> str:
    """The graph as GraphML."""
    content = BytesIO()
    nx.write_graphml(graph, content)
    return content.getvalue().decode("utf-8") + "\n"


def _quote(text: str) -> str:
    """A dot string; lines are left-aligned when there are several."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return (
        f'"{escaped[0]}"' if len(escaped) == 1 else '"' + "".join(f"{e}\\l" for e in escaped) + '"'
    )
