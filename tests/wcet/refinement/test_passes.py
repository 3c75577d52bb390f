"""Passes of random paths, compared with the path cut at each execution of a header."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.errors import ControlFlowError
from quoll.inlining.supergraph import Supergraph
from tests.testing.harness.cases import cases
from tests.testing.ilp.programs import random_case
from tests.testing.wcet.refined_runs import random_path
from wcet.refinement.passes import passes_of


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
