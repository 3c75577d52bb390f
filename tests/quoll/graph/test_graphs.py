"""Dominators, loops and node splitting against definitions, on random graphs."""

from __future__ import annotations

from collections import deque

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoll.graph.closure import closure
from quoll.graph.components import components
from quoll.graph.dominators import dominators, reverse_postorder
from quoll.graph.levels import levels
from quoll.graph.natural_loops import find_loops, retreating_edges
from quoll.graph.node_splitting import TooManyCopies, split_nodes
from tests.testing.harness.cases import cases

Graph = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> Graph:
    n = draw(st.integers(1, most))
    node = st.integers(0, n - 1)
    return [draw(st.lists(node, max_size=3, unique=True)) for _ in range(n)]


def reached(graph: Graph, root: int, without: int | None = None) -> set[int]:
    """Nodes on some path from the root that avoids one node."""
    seen: set[int] = set()
    pending = [root] if root != without else []
    while pending:
        at = pending.pop()
        if at not in seen:
            seen.add(at)
            pending.extend(n for n in graph[at] if n != without)
    return seen


def in_networkx(graph: Graph) -> nx.DiGraph:
    """The same graph, nodes and edges in the same order."""
    same = nx.DiGraph()
    same.add_nodes_from(range(len(graph)))
    same.add_edges_from((n, after) for n, following in enumerate(graph) for after in following)
    return same


@pytest.mark.slow("many random graphs")
@given(graphs(30))
def test_components_are_those_of_networkx(graph: Graph) -> None:
    """In the same order, too: the component entered first comes first."""
    same = in_networkx(graph)
    found = components(range(len(graph)), graph.__getitem__)
    assert list(map(set, found)) == list(nx.strongly_connected_components(same))
    done: set[int] = set()
    for component in found:
        done |= {*component}
        assert all(after in done for node in component for after in graph[node])


@pytest.mark.slow("many random graphs")
@given(graphs())
def test_dominance_is_its_definition(graph: Graph) -> None:
    tree = dominators(graph, 0)
    live = reached(graph, 0)
    for b in range(len(graph)):
        if b not in live:
            assert tree.idom[b] == -1
            continue
        strict = {a for a in live if a != b and b not in reached(graph, 0, a)}
        for a in live:
            assert tree.dominates(a, b) == (a == b or a in strict)
        if b != 0:
            assert tree.idom[b] in strict
            assert strict <= {a for a in live if tree.dominates(a, tree.idom[b])}


@pytest.mark.slow("many random graphs")
@given(graphs(30))
def test_dominators_are_those_of_networkx(graph: Graph) -> None:
    same = in_networkx(graph)
    tree = dominators(graph, 0)
    above = nx.immediate_dominators(same, 0)
    assert {n: d for n, d in enumerate(tree.idom) if n and d >= 0} == {
        n: d for n, d in above.items() if n
    }


@given(graphs(), st.sets(st.integers(0, 8)))
def test_closure_is_what_is_reached(graph: Graph, part: set[int]) -> None:
    starts = part & set(range(len(graph)))
    expected = {n for start in starts for n in reached(graph, start)}
    assert closure(starts, lambda node: graph[node]) == expected


@given(graphs())
def test_only_edges_that_close_a_cycle_lead_up(graph: Graph) -> None:
    level = levels(range(len(graph)), lambda node: graph[node])
    assert level.keys() == set(range(len(graph)))
    for node, following in enumerate(graph):
        down = [after for after in following if level[after] < level[node]]
        up = set(following) - set(down)
        assert all(node in reached(graph, after) for after in up)
        assert up or level[node] == max((level[after] + 1 for after in down), default=0)


@given(graphs())
def test_reverse_postorder_visits_what_is_reached(graph: Graph) -> None:
    order = reverse_postorder(graph, 0)
    assert order[0] == 0
    assert len(order) == len(set(order))
    assert set(order) == reached(graph, 0)


@given(graphs())
def test_loops_are_their_definition(graph: Graph) -> None:
    live = reached(graph, 0)
    tree = dominators(graph, 0)
    backs = {(t, h) for t in live for h in graph[t] if tree.dominates(h, t)}
    loops = find_loops(graph, 0)
    assert [loop.header for loop in loops] == list(dict.fromkeys(lp.header for lp in loops))
    assert {(t, loop.header) for loop in loops for t in loop.tails} == backs
    reversed_: Graph = [[p for p in live if n in graph[p]] for n in range(len(graph))]
    for loop in loops:
        body = {loop.header}
        for tail in loop.tails:
            body |= reached(reversed_, tail, loop.header)
        assert loop.nodes == body
    for i, loop in enumerate(loops):
        around = [j for j, o in enumerate(loops) if j != i and loop.header in o.nodes]
        if not retreating_edges(graph, 0):
            innermost = min(around, key=lambda j: len(loops[j].nodes), default=None)
            assert loop.parent == innermost
            assert all(j < i for j in around)


def is_reducible(graph: Graph, root: int) -> bool:
    """Whether T1 and T2 (drop a self-loop, merge into the only predecessor) leave one node."""
    live = reached(graph, root)
    successors = {n: {a for a in graph[n] if a != n} for n in live}
    changed = True
    while changed:
        changed = False
        for node in sorted(successors):
            before = [p for p in successors if node in successors[p]]
            if node != root and len(before) == 1:
                merged = successors.pop(node)
                successors[before[0]] = (successors[before[0]] | merged) - {node, before[0]}
                changed = True
    return len(successors) == 1


@given(graphs())
def test_retreating_edges_say_what_is_irreducible(graph: Graph) -> None:
    assert (not retreating_edges(graph, 0)) == is_reducible(graph, 0)


def walks(graph: Graph, labels: list[int], length: int) -> set[tuple[int, ...]]:
    """The label sequences of all walks of a length from node 0."""
    found: set[tuple[int, ...]] = set()
    pending: deque[tuple[int, tuple[int, ...]]] = deque([(0, (labels[0],))])
    while pending:
        node, word = pending.popleft()
        found.add(word)
        if len(word) < length:
            pending.extend((a, (*word, labels[a])) for a in graph[node])
    return found


@pytest.mark.slow("many random graphs")
@settings(max_examples=cases(60))
@given(graphs(most=7))
def test_splitting_keeps_the_walks_and_makes_loops(graph: Graph) -> None:
    split = split_nodes(graph, 0, limit=10_000)
    after = [list(s) for s in split.successors]
    assert is_reducible(after, 0)
    assert split.origin[: len(graph)] == tuple(range(len(graph)))
    if is_reducible(graph, 0):
        assert after == graph
    identity = list(range(len(graph)))
    assert walks(after, list(split.origin), 6) == walks(graph, identity, 6)
    for node, following in enumerate(after):
        assert [split.origin[a] for a in following] == graph[split.origin[node]]


def test_the_smallest_irreducible_graph() -> None:
    split = split_nodes([[1, 2], [2], [1, 3], []], 0, limit=1)
    assert split.origin == (0, 1, 2, 3, 2)
    assert split.successors == ((1, 4), (2,), (1, 3), (), (1, 3))


def test_the_limit_of_copies_names_the_region() -> None:
    with pytest.raises(TooManyCopies) as caught:
        split_nodes([[1, 2], [2], [1, 3], []], 0, limit=0)
    assert caught.value.region == [1, 2]


@pytest.mark.slow("graphs of many thousand nodes")
def test_deep_graphs_do_not_recurse() -> None:
    n = 200_000
    chain: Graph = [[i + 1] for i in range(n - 1)] + [[0]]
    (loop,) = find_loops(chain, 0)
    assert (loop.header, loop.tails, len(loop.nodes)) == (0, (n - 1,), n)
