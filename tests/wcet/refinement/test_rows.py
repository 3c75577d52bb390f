"""Rows of the paths from any node: the rest of each execution satisfies them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from ilp.constraints.proved_exclusions import InfeasibleCore
from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.errors import ControlFlowError
from quoll.inlining.supergraph import Supergraph, SuperLoop
from quoll.preemption.segments import undivided
from tests.testing.harness.cases import cases
from tests.testing.ilp.programs import random_case
from tests.testing.wcet.refined_runs import has_all, most_returns, most_taken, random_path
from wcet.refinement.exclusions import SegmentEdges
from wcet.refinement.passes import passes_of


def distance(graph: Supergraph, loop: SuperLoop, edge: int, path: list[int]) -> int:
    """The least number of iterations between two that take ``edge``, within an entry."""
    times: list[int | None] = []
    number = 0
    for taken in path:
        if taken == edge:
            times.append(number)
        number += graph.edges[taken].dst == loop.header
        if taken in loop.entries:
            times.append(None)
    near = [b - a for a, b in pairwise(times) if a is not None and b is not None]
    return min(near, default=8)


def most_iterations(graph: Supergraph, loop: SuperLoop, path: list[int]) -> int:
    """The most executions of the header per entry."""
    most = now = 0
    for taken in path:
        now = 0 if taken in loop.entries else now
        now += graph.edges[taken].dst == loop.header
        most = max(most, now)
    return most


def drawn_cores(graph: Supergraph, path: list[int], random: Random) -> list[InfeasibleCore]:
    """Cores that hold of one path, as if it were the only execution."""
    passes = passes_of(AcyclicGraph.of(graph), path)
    found = []
    for scope in sorted({one.loop for one in passes}, key=str):
        own = [{*one.edges} for one in passes if one.loop == scope]
        edges = sorted(set().union(*own))
        chosen = tuple(dict.fromkeys(random.choices(edges, k=random.randint(1, 3))))
        inner = sorted({loop for one in passes if one.loop == scope for loop, _ in one.counts})
        counts = tuple((loop, random.randint(1, 4)) for loop in inner if random.random() < 0.5)
        core = InfeasibleCore(scope, chosen, (), counts=counts)
        if not any(has_all(core, one) for one in passes):
            found.append(core)
        edge = random.choice(edges)
        if scope is not None and (far := distance(graph, graph.loops[scope], edge, path)) > 1:
            found.append(InfeasibleCore(scope, (edge,), (), far))
        if len(inner) > 1:
            both = tuple((loop, 2) for loop in random.sample(inner, 2))
            lengths = InfeasibleCore(scope, (), (), counts=both, most=1)
            found.append(replace(lengths, most=max(1, most_returns(lengths, passes))))
        if scope is not None:
            limit = InfeasibleCore(scope, (edge,), (), most=1)
            most = max(1, most_taken(graph, limit, path))
            found.append(replace(limit, most=most))
    return found


@pytest.mark.parametrize("seed", range(cases(60)))
def test_the_rest_of_an_execution_satisfies_each_row(seed: int) -> None:
    try:
        graph = random_case(seed).graph
    except ControlFlowError:
        return
    if any(graph.entry in loop.nodes for loop in graph.loops):
        return
    random = Random(seed)
    path = random_path(graph, random)
    cores = drawn_cores(graph, path, random)
    bounds = [most_iterations(graph, loop, path) for loop in graph.loops]
    for first in sorted({0, *random.choices(range(len(path)), k=4)}) if path else ():
        start = graph.edges[path[first]].src
        segment = undivided(replace(graph, entry=start))
        counts = [path[first:].count(e) for e in range(len(graph.edges))]
        for core in cores:
            rows = SegmentEdges(segment, graph).row(core, AcyclicGraph.of(graph))
            found = () if rows is None else rows.rows(0, bounds)
            assert all(row.holds(counts) for row in found), (first, core)
