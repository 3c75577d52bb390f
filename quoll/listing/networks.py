"""The graphs that people look at and script, as networkx has them; DOT and GraphML come from them.

``Program.call_graph`` is the graph of functions. Attributes of nodes and edges are strings,
integers and Booleans, so that every writer of networkx takes them. ``label`` is what a drawing
shows.
"""

from __future__ import annotations

from io import BytesIO

import networkx as nx

from quoll.cfg.cfg import Cfg, EdgeKind
from quoll.image.image import Image
from quoll.listing.listing import function_loops

__all__ = ["call_graph_dot", "cfg_dot", "control_flow", "loop_nest", "to_graphml"]

STYLES = {
    EdgeKind.FALLTHROUGH.value: "solid",
    EdgeKind.TAKEN.value: "bold",
    EdgeKind.INDIRECT.value: "dashed",
    EdgeKind.ACROSS.value: "dotted",
}


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


def loop_nest(cfg: Cfg, image: Image) -> nx.DiGraph:
    """The loops of one function; an edge leads from each to those directly inside it."""
    graph = nx.DiGraph(name=cfg.name)
    loops, _ = function_loops(cfg)
    for number, loop in enumerate(loops):
        header = cfg.blocks[loop.header].addr
        graph.add_node(number, label=image.place(header), header=header, blocks=len(loop.nodes))
        if loop.parent is not None:
            graph.add_edge(loop.parent, number)
    return graph


def cfg_dot(graph: nx.MultiDiGraph) -> str:
    """The graph of one function for Graphviz."""
    lines = [f"digraph {_quote(graph.name)} {{", '  node [shape=box, fontname="monospace"];']
    lines += [f"  b{block} [label={_quote(label)}];" for block, label in graph.nodes(data="label")]
    lines += [f"  b{a} -> b{b} [style={STYLES[kind]}];" for a, b, kind in graph.edges(data="kind")]
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
