"""Passes of random paths, compared with the path cut at each execution of a header."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from ilp.constraints.exclusion import EdgeExclusion
from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.errors import ControlFlowError
from quoll.inlining.supergraph import Supergraph
from tests.testing.harness.cases import cases
from tests.testing.ilp.programs import random_case
from wcet.refinement.passes import passes_of

LONGEST = 200  # edges


def random_path(graph: Supergraph, random: Random) -> list[int]:
    node, path = graph.entry, list[int]()
    while graph.successors[node] and len(path) < LONGEST:
        path.append(random.choice(graph.successors[node]))
        node = graph.edges[path[-1]].dst
    return path


def iterations(graph: Supergraph, path: list[int], header: int) -> list[list[int]]:
    """The edges between executions of a header, before the first and after the last, too."""
    after = [i + 1 for i, e in enumerate(path) if graph.edges[e].dst == header]
    return [path[a:b] for a, b in pairwise([0, *after, len(path)])]


@pytest.mark.parametrize("seed", range(cases(40)))
def test_a_pass_takes_each_edge_once_within_one_iteration(seed: int) -> None:
    try:
        graph = random_case(seed).graph
    except ControlFlowError:
        return
    if any(graph.entry in loop.nodes for loop in graph.loops):
        return
    path = random_path(graph, Random(seed))
    for one in passes_of(AcyclicGraph.of(graph), path):
        assert len({*one.edges}) == len(one.edges)
        header = None if one.loop is None else graph.loops[one.loop].header
        parts = [path] if header is None else iterations(graph, path, header)
        assert any({*one.edges} <= {*part} for part in parts)


@pytest.mark.parametrize("seed", range(cases(40)))
def test_edges_of_no_common_pass_satisfy_the_row(seed: int) -> None:
    """Any edges of the passes of one loop that no pass of a path takes together."""
    try:
        graph = random_case(seed).graph
    except ControlFlowError:
        return
    if any(graph.entry in loop.nodes for loop in graph.loops):
        return
    random = Random(seed)
    path = random_path(graph, random)
    passes = passes_of(AcyclicGraph.of(graph), path)
    for scope in {one.loop for one in passes}:
        edges = [e for one in passes if one.loop == scope for e in one.edges]
        chosen = tuple(dict.fromkeys(random.choices(edges, k=random.randint(1, 3))))
        if any({*chosen} <= {*one.edges} for one in passes if one.loop == scope):
            continue
        into = () if scope is None else graph.predecessors[graph.loops[scope].header]
        decisions = tuple(frozenset({e}) for e in chosen)
        row = EdgeExclusion(decisions, frozenset(into), int(scope is None)).row(0)
        assert row.holds([path.count(e) for e in range(len(graph.edges))])
