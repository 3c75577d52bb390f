"""The outline of a path against a walk over its steps with stacks of calls and loops."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ilp.paths.outline import PathSection, outline
from ilp.paths.solution import PathStep
from ilp.worst_case import worst_case
from pipeline.costs import CostCause, Costs
from quoll.cfg.cfg import EdgeKind
from quoll.errors import ControlFlowError, InfeasibleError
from tests.testing.harness.cases import cases
from tests.testing.ilp.drawn import C, R, bounded, costs, draw
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.programs import Case, random_case

# f: 0, loop 1-2 with a call of g (3-4) in it, 5; g begins with a loop: 3 to itself
CALLED = draw(
    [(0, 1), (1, 3, C), (3, 3), (3, 4), (4, 2, R), (2, 1), (1, 5)],
    exits=[5],
    contexts=[0, 0, 0, 1, 1, 0],
    functions=[(None, 0x1000), (0, 0x2000)],
    returns=[4],
)


def test_loops_and_calls_inside_each_other() -> None:
    cycles = costs(CALLED, {0: 1, 1: 10, 2: 100, 3: 1000, 4: 10_000, 5: 7})
    bounds = bounded(CALLED, *(3 if loop.header == 1 else 4 for loop in CALLED.loops))
    answer = worst_case(CALLED, cycles, bounds, solver=InProcess())
    whole = outline(CALLED, cycles, answer.solution, answer.path.steps)
    parts = [(p.stretch.context, p.stretch.loop is None, p.entries, p.iterations, p.cycles)
             for _, p in whole.walk()]  # fmt: skip
    assert parts == [
        (0, True, 1, 0, 1 + 3 * 10 + 2 * (100 + 4 * 1000 + 10_000) + 7),
        (0, False, 1, 3, 3 * 10 + 2 * (100 + 4 * 1000 + 10_000)),
        (1, True, 2, 0, 2 * (4 * 1000 + 10_000)),
        (1, False, 2, 8, 8 * 1000),
    ]
    assert [len(around) for around, _ in whole.walk()] == [0, 1, 2, 3]


def test_a_tree_of_calls_by_hand() -> None:
    graph = draw(
        [(0, 1), (1, 2, C), (2, 3, R), (3, 1), (1, 4)],
        exits=[4],
        contexts=[0, 0, 1, 0, 0],
        functions=[(None, 0x1000), (0, 0x2000)],
        returns=[2],
    )
    plain = costs(graph, {1: 2, 2: 10})
    branch = tuple(
        tuple(3 if (e, cause) == (3, CostCause.BRANCH) else 0 for cause in CostCause)
        for e in range(len(graph.edges))
    )
    charged = Costs(plain.nodes, branch)
    answer = worst_case(graph, charged, bounded(graph, 4), solver=InProcess())
    tree = outline(graph, charged, answer.solution, answer.path.steps, loops=False)
    assert (tree.cycles, tree.entries, tree.stretch) == (
        4 * 2 + 3 * 10 + 3 * 3, 1, PathSection(0, None),
    )  # fmt: skip
    (callee,) = tree.children
    assert (callee.cycles, callee.entries, callee.stretch) == (30, 3, PathSection(1, None))
    own = {CostCause(number): cycles for number, cycles in enumerate(tree.own) if cycles}
    assert own == {CostCause.ISSUE: 8, CostCause.BRANCH: 9}
    assert tree.blocks[1] == (1, 4, 8)


def walked(case: Case, steps: tuple[PathStep, ...]) -> dict[PathSection, tuple[int, int, int]]:
    """Entries, rounds and own cycles of each stretch, step by step."""
    graph = case.graph
    entries: Counter[PathSection] = Counter()
    rounds: Counter[PathSection] = Counter()
    own: Counter[PathSection] = Counter()
    came: int | None = None
    for step in steps:
        context = graph.nodes[step.node].context
        call = PathSection(context, None)
        if came is None:
            entries.update(PathSection(c, None) for c in ancestors(case, context))
        elif graph.edges[came].kind is EdgeKind.CALL:
            entries[call] += 1
        around = [loop for loop in graph.loops if step.node in loop.nodes]
        for loop in around:
            at = PathSection(graph.nodes[loop.header].context, loop.index)
            entries[at] += came is None or came in loop.entries
            rounds[at] += step.node == loop.header
        inner = [loop for loop in around if graph.nodes[loop.header].context == context]
        here = PathSection(context, inner[-1].index) if inner else call
        own[here] += case.costs.node_cycles(step.node)
        own[here] += 0 if step.edge is None else case.costs.edge_cycles(step.edge)
        own[here] += sum(case.costs.start) if came is None else 0
        came = step.edge
    return {s: (entries[s], rounds[s], own[s]) for s in {*entries, *rounds, *own}}


def ancestors(case: Case, context: int) -> list[int]:
    """The context and its callers."""
    found: list[int] = []
    at: int | None = context
    while at is not None:
        found.append(at)
        at = case.graph.contexts[at].parent
    return found


@pytest.mark.slow("many random integer programs")
def test_the_counts_say_what_a_walk_says() -> None:
    compared = 0
    for seed in range(cases(100)):
        try:
            case = random_case(seed + 90_000)
            answer = worst_case(case.graph, case.costs, case.loop_bounds, solver=InProcess())
        except (ControlFlowError, InfeasibleError):
            continue
        whole = outline(case.graph, case.costs, answer.solution, answer.path.steps)
        said = {p.stretch: (p.entries, p.iterations, sum(p.own)) for _, p in whole.walk()}
        counts = answer.solution.nodes, answer.solution.edges
        case = replace(case, costs=case.costs.on_path(*counts))
        assert said == walked(case, answer.path.steps), seed
        assert whole.cycles == answer.solution.cycles
        for _, part in whole.walk():
            assert part.total == tuple(
                part.own[c] + sum(inner.total[c] for inner in part.children) for c in CostCause
            )
            assert sum(c for _, _, c in part.blocks) == sum(part.own)
        tree = outline(case.graph, case.costs, answer.solution, answer.path.steps, loops=False)
        calls = {p.stretch: (p.entries, sum(p.own)) for _, p in tree.walk()}
        own = Counter[int]()
        for at, (_, _, cycles) in said.items():
            own[at.context] += cycles
        assert calls == {
            at: (entries, own[at.context])
            for at, (entries, _, _) in said.items()
            if at.loop is None
        }
        blocks = (block for _, call in tree.walk() for block in call.blocks)
        assert sum(executions for _, executions, _ in blocks) == len(answer.path.steps)
        compared += 1
    assert compared > 80
