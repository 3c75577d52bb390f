"""Decisions that lead to a node, against all paths of small graphs."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from ilp.paths.solution import IlpSolution
from quoll.inlining.supergraph import Supergraph
from tests.testing.harness.cases import cases
from tests.testing.ilp.drawn import draw
from wcet.latency.decision import Decision, decisions

NODES = 9


def drawn(random: Random) -> Supergraph:
    """A random graph without loops, whose last node is an exit, as are some others."""
    edges = {
        (n, random.randrange(n + 1, NODES)) for n in range(NODES - 1) for _ in range(3)
        if random.random() < 0.7
    } | {(n, n + 1) for n in range(NODES - 1)}  # fmt: skip
    exits = {NODES - 1, *(n for n in range(1, NODES) if random.random() < 0.2)}
    return draw(sorted(edges), sorted(exits))


def paths(graph: Supergraph) -> Iterator[tuple[int, ...]]:
    """All paths from the entry to an end."""
    pending: list[tuple[int, ...]] = [(graph.entry,)]
    while pending:
        path = pending.pop()
        if path[-1] in graph.exit_nodes:
            yield path
        pending += [(*path, graph.edges[e].dst) for e in graph.successors[path[-1]]]


def found(graph: Supergraph, path: tuple[int, ...], node: int) -> list[Decision]:
    counts = tuple(int(n in path) for n in range(len(graph.nodes)))
    return decisions(graph, IlpSolution(0, True, counts, (), ""), node, {0})


def test_the_selected_node_is_on_every_path_to_the_place_and_can_be_avoided() -> None:
    random = Random(1)
    switches = conditions = 0
    for _ in range(cases(150)):
        graph = drawn(random)
        every = list(paths(graph))
        path = random.choice([one for one in every if len(one) > 2])
        node = random.choice(path[1:])
        for one in found(graph, path, node):
            assert path.index(one.branch) < path.index(one.selected) <= path.index(node)
            assert all(one.selected in other for other in every if node in other)
            assert any(one.branch in other and one.selected not in other for other in every)
            switches += one.is_switch
            conditions += not one.is_switch
    assert switches > cases(20)
    assert conditions > cases(20)


@pytest.mark.parametrize(
    ("edges", "ways"),
    [
        ([(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)], 3),  # a jump table
        ([(0, 1), (0, 5), (5, 2), (5, 3), (1, 4), (2, 4), (3, 4)], 3),  # compares
        ([(0, 1), (0, 2), (1, 4), (2, 4)], 2),
    ],
)
def test_ways_are_the_targets_of_a_tree_of_branches(
    edges: list[tuple[int, int]], ways: int
) -> None:
    graph = draw(edges, [4])
    (one,) = found(graph, (0, 1, 4), 1)
    assert one == Decision(0, ways, 1)


def test_cases_with_the_same_code_are_one_operation() -> None:
    """Two of three ways meet in node 4, and the place is behind it."""
    graph = draw([(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (4, 5), (3, 6), (5, 6)], [6])
    (one,) = found(graph, (0, 1, 4, 5, 6), 5)
    assert one == Decision(0, 3, 4)


def test_a_place_that_only_another_way_avoids_is_decided_by_the_choice_of_ways() -> None:
    """From node 1 the place is certain; from node 2 it may be avoided."""
    graph = draw([(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 4)], [4])
    (one,) = found(graph, (0, 1, 3, 4), 3)
    assert one.selected == 3


def test_a_place_on_every_path_has_no_decision() -> None:
    graph = draw([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)], [4])
    assert found(graph, (0, 1, 3, 4), 3) == []
