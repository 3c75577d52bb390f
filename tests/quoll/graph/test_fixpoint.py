"""The fixed-point engine on a toy language with one variable and no ARM."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoll.errors import WcetError
from quoll.graph import fixpoint
from quoll.graph.fixpoint import Fixpoint, solve
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder
from quoll.intervals import interval_arithmetic as ar
from quoll.intervals.interval_comparison import ComparisonOperator, refine
from quoll.intervals.strided_interval import ValueSet, join, leq, widen
from tests.testing.harness.cases import cases


@dataclass(frozen=True)
class Step:
    """x := x + add, if x ``relation`` limit holds before."""

    add: int
    relation: ComparisonOperator | None = None
    limit: int = 0


def graph_of(count: int, edges: Sequence[tuple[int, int]], entry: int = 0) -> FlowGraph:
    successors: list[list[int]] = [[] for _ in range(count)]
    for index, (source, _) in enumerate(edges):
        successors[source].append(index)
    return FlowGraph(entry, [s for s, _ in edges], [t for _, t in edges], successors)


class Toy:
    """The domain: one strided interval. ``flaw`` breaks one operation on purpose."""

    def __init__(self, steps: Sequence[Step], thresholds: Sequence[int] = (), flaw: str = ""):
        self.steps, self.thresholds, self.flaw = steps, sorted(thresholds), flaw

    def transfer(self, edge: int, state: ValueSet) -> ValueSet | None:
        step = self.steps[edge]
        if step.relation is not None:
            refined = refine(step.relation, state, ValueSet.of(step.limit))
            if refined is None:
                return None
            state = refined[0]
        return ar.add(state, ValueSet.of(step.add))

    def join(self, node: int, a: ValueSet, b: ValueSet) -> ValueSet:
        return a if self.flaw == "join" else join(a, b)

    def widen(self, node: int, old: ValueSet, new: ValueSet) -> ValueSet:
        return join(old, new) if self.flaw == "widen" else widen(old, new, self.thresholds)

    def leq(self, a: ValueSet, b: ValueSet) -> bool:
        return leq(a, b)


def analyse(
    count: int,
    program: dict[tuple[int, int], Step],
    thresholds: Sequence[int] = (),
    flaw: str = "",
    start: int = 0,
) -> Fixpoint[ValueSet]:
    graph = graph_of(count, list(program))
    domain = Toy(list(program.values()), thresholds, flaw)
    return solve(graph, WeakOrder.of(graph), domain, ValueSet.of(start))


COUNT_TO_TEN = {
    (0, 1): Step(0),
    (1, 2): Step(0, ComparisonOperator.ULT, 10),
    (2, 1): Step(1),
    (1, 3): Step(0, ComparisonOperator.NE, 0),
}


def test_counting_loop_is_exact_after_narrowing() -> None:
    result = analyse(4, COUNT_TO_TEN)
    assert result.narrowed
    assert result.states[1] == ValueSet(0, 10, 1)
    assert result.states[2] == ValueSet(0, 9, 1)


def test_threshold_stops_widening() -> None:
    program = {(0, 1): Step(0), (1, 1): Step(4, ComparisonOperator.NE, 40), (1, 2): Step(0)}
    assert analyse(3, program).states[1] != ValueSet(0, 40, 4)
    assert analyse(3, program, thresholds=[40]).states[1] == ValueSet(0, 40, 4)


def test_dead_edges() -> None:
    program = {
        (0, 1): Step(0, ComparisonOperator.EQ, 7),
        (0, 2): Step(0, ComparisonOperator.NE, 7),
        (1, 3): Step(0),
        (2, 3): Step(1),
    }
    result = analyse(4, program, start=5)
    assert result.states == (ValueSet.of(5), None, ValueSet.of(5), ValueSet.of(6))
    assert result.dead == {0, 2}


def test_entry_inside_a_loop() -> None:
    program = {(0, 1): Step(1, ComparisonOperator.ULT, 3), (1, 0): Step(0), (0, 2): Step(0)}
    assert analyse(3, program).states[0] == ValueSet(0, 3, 1)


def test_wrong_join_is_caught() -> None:
    with pytest.raises(WcetError, match="does not hold along"):
        analyse(4, COUNT_TO_TEN, flaw="join")


def test_endless_widening_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixpoint, "VISITS", 100)
    program = {(0, 1): Step(0), (1, 1): Step(1), (1, 2): Step(0)}
    with pytest.raises(WcetError, match="does not end"):
        analyse(3, program, flaw="widen")


STEPS = st.builds(
    Step,
    st.integers(-3, 5),
    st.one_of(st.none(), st.sampled_from(ComparisonOperator)),
    st.integers(0, 30),
)


@st.composite
def programs(draw: st.DrawFn) -> tuple[int, dict[tuple[int, int], Step]]:
    count = draw(st.integers(2, 8))
    node = st.integers(0, count - 1)
    edges = draw(st.lists(st.tuples(node, node), min_size=1, max_size=14, unique=True))
    return count, {edge: draw(STEPS) for edge in edges}


@pytest.mark.slow("many random graphs")
@settings(max_examples=cases(100))
@given(programs(), st.integers(0, 12), st.lists(st.integers(0, 40), max_size=3))
def test_covers_every_execution(
    program: tuple[int, dict[tuple[int, int], Step]], x: int, thresholds: list[int]
) -> None:
    count, steps = program
    result = analyse(count, steps, thresholds, start=x)
    seen, work = {(0, x)}, [(0, x)]
    edges = list(steps)
    while work and len(seen) < 400:
        node, value = work.pop(0)
        state = result.states[node]
        assert state is not None
        assert value in state
        for index, (source, target) in enumerate(edges):
            step = steps[edges[index]]
            if source != node:
                continue
            limit = ValueSet.of(step.limit)
            if step.relation and refine(step.relation, ValueSet.of(value), limit) is None:
                continue
            assert index not in result.dead
            reached = (target, (value + step.add) % (1 << 32))
            if reached not in seen:
                seen.add(reached)
                work.append(reached)


@pytest.mark.slow("many random graphs")
@settings(max_examples=cases(100))
@given(programs())
def test_weak_order(program: tuple[int, dict[tuple[int, int], Step]]) -> None:
    count, steps = program
    graph = graph_of(count, list(steps))
    order = WeakOrder.of(graph)
    reached, work = {0}, [0]
    while work:
        for edge in graph.successors[work.pop()]:
            if graph.targets[edge] not in reached:
                reached.add(graph.targets[edge])
                work.append(graph.targets[edge])
    assert set(order.nodes) == reached
    assert len(order.nodes) == len(reached)
    assert all(order.nodes[order.position[n]] == n for n in reached)
    for source, target in steps:
        if source in reached and order.position[target] <= order.position[source]:
            assert order.is_head(target)
            assert order.position[source] < order.end[target]
    spans = [(order.position[h], order.end[h]) for h in order.nodes if order.is_head(h)]
    assert all(
        b <= c or d <= a or (a <= c and d <= b) or (c <= a and b <= d)
        for a, b in spans
        for c, d in spans
    )


def test_natural_loops_have_their_headers_as_heads() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 2), (3, 1), (1, 4), (4, 0), (4, 5)]
    graph = graph_of(6, edges)
    order = WeakOrder.of(graph)
    assert [n for n in range(6) if order.is_head(n)] == [0, 1, 2]


@pytest.mark.slow("a graph of 50,000 nodes")
def test_fifty_thousand_nodes_in_a_second() -> None:
    """Five hundred loops of depth two in a row, a hundred nodes each."""
    edges: list[tuple[int, int]] = []
    for base in range(0, 50_000, 100):
        edges += [(base + i, base + i + 1) for i in range(100)]
        edges += [(base + 40, base + 20), (base + 80, base + 10)]
    steps = [Step(1, ComparisonOperator.ULT, 500) if t < s else Step(0) for s, t in edges]
    graph = graph_of(50_001, edges)
    start = time.process_time()
    result = solve(graph, WeakOrder.of(graph), Toy(steps, [500]), ValueSet.of(0))
    seconds = time.process_time() - start
    assert all(state is not None for state in result.states)
    assert result.visits < 400_000
    assert seconds < 20
    print(f"{result.visits} visits, {seconds:.2f} s")
