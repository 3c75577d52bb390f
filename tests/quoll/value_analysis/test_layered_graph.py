"""Layers of a graph: paths, numbers and the order of iteration."""

from __future__ import annotations

import random

from quoll.extraction.extract import extract
from quoll.graph.weak_topological_order import WeakOrder
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from quoll.value_analysis.context_domain import flow_of
from quoll.value_analysis.layered_graph import LayeredGraph
from tests.testing.quoll.sketch import assemble

LAYERS = 3
NESTED = """
main:   mov  r1, #3
outer:  mov  r2, #2
inner:  subs r2, r2, #1
        bne  inner
        tst  r1, #1
        beq  even
        add  r3, r3, #1
even:   subs r1, r1, #1
        bne  outer
        bx   lr
"""


def nested() -> Supergraph:
    image = assemble(NESTED)
    symbol = image.symbol("main")
    assert symbol is not None
    return expand(extract(image, [symbol.addr]), symbol.addr, image)


def layered(graph: Supergraph, seed: int) -> LayeredGraph:
    """Layers with random nodes between them."""
    draw = random.Random(seed)
    step = {n: draw.randrange(LAYERS) for n in range(len(graph.nodes)) if draw.random() < 0.4}
    return LayeredGraph.of(graph, LAYERS, lambda node, layer: max(layer, step.get(node, 0)))


def test_every_path_has_one_path_of_the_layers() -> None:
    graph = nested()
    for seed in range(20):
        found = layered(graph, seed)
        for number, edge in enumerate(found.edges):
            old = graph.edges[found.edge(number)]
            assert (found.node(edge.src), found.node(edge.dst)) == (old.src, old.dst)
            assert found.layer(edge.src) == found.edge_layer(number) <= found.layer(edge.dst)
            assert number in found.successors[edge.src]
            assert number in found.predecessors[edge.dst]
        for node in range(len(graph.nodes) * LAYERS):
            out = [found.edge(e) for e in found.successors[node]]
            assert out == list(graph.successors[found.node(node)])


def test_edges_go_backwards_only_to_the_head_of_their_component() -> None:
    graph = nested()
    whole = WeakOrder.of(flow_of(graph))
    for seed in range(20):
        found = layered(graph, seed)
        order = found.order(whole)
        for edge in found.edges:
            source, target = order.position[edge.src], order.position[edge.dst]
            if target <= source:
                assert order.is_head(edge.dst)
                assert source < order.end[edge.dst]
