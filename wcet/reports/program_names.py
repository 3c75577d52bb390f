"""Names in a written integer program that say what is counted.

    x17.cspace_resolve_3c.cspace_resolve_74.c4    edge 17, between two blocks, in context 4
    end.return_to_current.c9                      the path ends after this block
    flow.n9.cspace_resolve_3c.c4                  the flow row of node 9

Letters, digits, ``_`` and ``.`` only: every solver reads them. Numbers keep names unique.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ilp.solvers.model import Model
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph

__all__ = ["readable"]


def readable(model: Model, graph: Supergraph, image: Image) -> Model:
    """The same program with other names for its edges, ends and flow rows."""
    places = [place(image, node.block.addr) for node in graph.nodes]
    edges = [
        f"x{i}.{places[e.src]}.{places[e.dst]}.c{graph.nodes[e.src].context}"
        for i, e in enumerate(graph.edges)
    ]
    ends = [f"end{n}.{places[n]}.c{graph.nodes[n].context}" for n in graph.exits]
    others = model.names[len(edges) + len(ends) :]
    rows = [
        replace(row, name=f"flow.n{n}.{places[n]}.c{node.context}")
        for n, (node, row) in enumerate(zip(graph.nodes, model.rows, strict=False))
    ]
    return replace(model, names=(*edges, *ends, *others), rows=(*rows, *model.rows[len(rows) :]))


def place(image: Image, addr: int) -> str:
    """``cspace_resolve_3c``, or the address."""
    found = image.symbol_at(addr)
    if found is None:
        return f"{addr:x}"
    symbol, offset = found
    name = re.sub(r"\W", "_", symbol.name, flags=re.ASCII)
    return f"{name}_{offset:x}" if offset else name
