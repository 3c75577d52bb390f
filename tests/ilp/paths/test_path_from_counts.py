"""Paths from counts, and the checker that judges them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from ilp.constraints.constraint import Constraint
from ilp.constraints.nest import LoopNest
from ilp.ipet import build_ipet
from ilp.paths.path_check import check_path
from ilp.paths.path_from_counts import build_path
from ilp.paths.solution import PathStep
from ilp.solvers.highs import Highs
from ilp.worst_case import worst_case
from pipeline.costs import Costs
from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import EdgeKind
from quoll.errors import ControlFlowError, InfeasibleError, SolverError
from quoll.facts.count_facts import ConsistentFact
from quoll.inlining.supergraph import Supergraph
from tests.testing.harness.cases import cases
from tests.testing.ilp.drawn import bounded, conflict, consistent, costs, draw, most
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.programs import insn, random_case

CALL, RETURN = EdgeKind.CALL, EdgeKind.RETURN

LOOP = draw([(0, 1), (1, 2), (2, 1), (1, 3)], exits=[3])
NESTED = draw([(0, 1), (1, 2), (2, 3), (3, 2), (2, 4), (4, 1), (1, 5)], exits=[5])
# 0 -call-> 1; 1 -> 2 or 3 (exit); 2 returns to 4 (exit)
CALLING = draw(
    [(0, 1, CALL), (1, 2), (1, 3), (2, 4, RETURN)],
    exits=[3, 4],
    contexts=[0, 1, 1, 1, 0],
    functions=[(None, 0x1000), (0, 0x2000)],
    returns=[2],
)


def steps_along(graph: Supergraph, nodes: list[int]) -> tuple[PathStep, ...]:
    """The steps through ``nodes``."""
    edges = []
    for src, dst in pairwise(nodes):
        edges.append(next(e for e in graph.successors[src] if graph.edges[e].dst == dst))
    return tuple(PathStep(n, e) for n, e in zip(nodes, [*edges, None], strict=True))


@pytest.mark.slow("many random integer programs")
def test_any_walk_can_be_rebuilt_from_its_counts() -> None:
    """Counts of random walks within the bounds, which are not optimal, give a path as well."""
    rebuilt = 0
    for seed in range(cases(130)):
        rng = Random(seed)
        try:
            case = random_case(seed)
            nest = LoopNest.build(case.graph, case.bounds)
        except ControlFlowError:
            continue
        walk = random_walk(rng, case.graph, case.bounds)
        if walk is None:
            continue
        counts = Counter(s.edge for s in walk if s.edge is not None)
        edges = [counts[e] for e in range(len(case.graph.edges))]
        for order in (min, max, rng.choice):
            steps = build_path(nest, edges, walk[-1].node, order)
            assert check_path(case.graph, case.bounds, (), steps) == ()
            assert Counter(s.edge for s in steps if s.edge is not None) == counts
        rebuilt += 1
    assert rebuilt > 90


def random_walk(
    rng: Random, graph: Supergraph, bounds: tuple[int, ...]
) -> tuple[PathStep, ...] | None:
    """A walk from the entry to an exit, or None if it gets stuck at a bound."""
    node = graph.entry
    steps: list[PathStep] = []
    runs = [int(loop.header == node) for loop in graph.loops]
    while True:
        if node in graph.exits and (not graph.successors[node] or rng.random() < 0.5):
            return (*steps, PathStep(node, None))
        allowed = [
            e
            for e in graph.successors[node]
            if not any(
                e in loop.backs and runs[loop.index] >= bounds[loop.index] for loop in graph.loops
            )
        ]
        if not allowed:
            return None
        e = rng.choice(allowed)
        for loop in graph.loops:
            if e in loop.entries:
                runs[loop.index] = 1
            runs[loop.index] += e in loop.backs
        steps.append(PathStep(node, e))
        node = graph.edges[e].dst


@pytest.mark.slow("paths of many thousand steps")
def test_long_paths_are_built_and_checked_in_linear_time() -> None:
    got = worst_case(NESTED, costs(NESTED, {3: 1}), bounded(NESTED, 300, 400), solver=Highs())
    assert len(got.path.steps) == 4 + 299 * (2 + 400 + 399) - 1
    assert got.path.unrealisable is None


def test_a_path_too_long_to_write_out_is_refused() -> None:
    got = worst_case(NESTED, costs(NESTED, {3: 1}), bounded(NESTED, 10_000, 10_000), solver=Highs())
    assert got.solution.cycles == 9_999 * 9_999
    assert got.path.steps == ()
    assert "too many to write out" in (got.path.unrealisable or "")


@pytest.mark.parametrize(
    ("counts", "last", "message"),
    [
        ([1, 0, 0, 0, 0, 0, 1], 5, None),
        ([1, 0, 3, 3, 0, 0, 1], 5, "a path can follow only 3"),
        ([1, 1, 0, 0, 0, 0, 1], 5, "not a flow"),
        ([1, 0, 0, 0, 0, 0, 2], 5, "not a flow|can follow only"),
        ([1, 0, 0, 0, 0, 0, 0], 5, "not a flow"),
    ],
)
def test_counts_that_are_no_path_are_refused(
    counts: list[int], last: int, message: str | None
) -> None:
    nest = LoopNest.build(NESTED, [3, 3])
    if message is None:
        assert [s.node for s in build_path(nest, counts, last)] == [0, 1, 5]
        return
    with pytest.raises(SolverError, match=message):
        build_path(nest, counts, last)


def test_the_checker_accepts_and_refuses_loop_counts() -> None:
    path = steps_along(NESTED, [0, 1, 2, 3, 2, 4, 1, 5])
    assert check_path(NESTED, [2, 2], (), path) == ()
    assert check_path(NESTED, [2, 1], (), path) == (
        "the loop at 0x1020 in context 0 runs more than 1 times per entry",
    )
    assert len(check_path(NESTED, [1, 1], (), path)) == 2


def test_the_checker_counts_a_loop_per_entry_of_the_loop_around_it() -> None:
    path = steps_along(NESTED, [0, 1, 2, 3, 2, 4, 1, 2, 4, 1, 5])
    assert check_path(NESTED, [3, 2], (), path, {1: 3}) == ()
    assert check_path(NESTED, [3, 2], (), path, {1: 2}) == (
        "the loop at 0x1020 in context 0 runs more than 2 times per entry of the loop around it",
    )
    again = draw(
        [(0, 1), (1, 2), (2, 3), (3, 2), (2, 4), (4, 1), (1, 5), (5, 6), (6, 0), (5, 7)], exits=[7]
    )
    twice = steps_along(again, [0, 1, 2, 4, 1, 5, 6, 0, 1, 2, 4, 1, 5, 7])
    inner = next(loop.index for loop in again.loops if loop.header == 2)
    assert check_path(again, [9] * 3, (), twice, {inner: 1}) == ()


def test_the_checker_refuses_what_is_not_contiguous() -> None:
    good = steps_along(LOOP, [0, 1, 2, 1, 3])
    assert check_path(LOOP, [2], (), good) == ()
    for broken in (
        (),
        good[1:],
        good[:-1],
        good[:2] + good[3:],
        (*good[:-1], PathStep(3, 0)),
        (replace(good[0], edge=None), *good[1:]),
        (*good[:1], replace(good[1], edge=3), *good[2:]),
    ):
        assert check_path(LOOP, [2], (), broken) != ()


@pytest.mark.slow("many random integer programs")
def test_every_change_of_a_random_path_is_noticed() -> None:
    """The checker refuses an accepted path in which one step is dropped or doubled."""
    noticed = 0
    for seed in range(60):
        rng = Random(seed)
        try:
            case = random_case(seed)
            path = worst_case(
                case.graph, case.costs, case.loop_bounds, case.constraints, solver=InProcess()
            ).path
        except (ControlFlowError, InfeasibleError):
            continue
        if path.unrealisable or len(path.steps) < 4:
            continue
        at = rng.randrange(1, len(path.steps) - 1)
        for changed in (
            path.steps[:at] + path.steps[at + 1 :],
            path.steps[: at + 1] + path.steps[at:],
        ):
            step = path.steps[at]
            if step.edge is not None and case.graph.edges[step.edge].dst != step.node:
                assert check_path(case.graph, case.bounds, case.constraints, changed) != ()
                noticed += 1
    assert noticed > 60


def test_returns_go_to_the_open_call() -> None:
    path = steps_along(CALLING, [0, 1, 2, 4])
    assert check_path(CALLING, (), (), path) == ()
    stray = replace(CALLING, edges=(replace(CALLING.edges[0], kind=EdgeKind.TAKEN),
                                    *CALLING.edges[1:]))  # fmt: skip
    assert check_path(stray, (), (), path) == ("edge 0 returns to an invocation that is not open",)


@pytest.mark.parametrize(
    ("constraint", "nodes", "accepted"),
    [
        (most(1, 0), [0, 1, 2, 4], False),
        (most(1, 1), [0, 1, 2, 4], True),
        (most(1, 0, 0x2000), [0, 1, 2, 4], False),
        (conflict(1, 2, 0x2000), [0, 1, 2, 4], False),
        (conflict(1, 2, 0x2000), [0, 1, 3], True),
        (conflict(0, 2, 0x1000), [0, 1, 2, 4], False),
        (consistent(1, 2, 0x2000), [0, 1, 2, 4], True),
        (consistent(1, 2, 0x2000), [0, 1, 3], False),  # ends with its own exception return
        (consistent(0, 4, 0x1000), [0, 1, 2, 4], True),
        (consistent(0, 4, 0x1000), [0, 1, 3], True),  # cut short: the path ends in a callee
        (consistent(0, 3, 0x1000), [0, 1, 2, 4], False),
    ],
)
def test_constraints_are_judged_per_invocation(
    constraint: Constraint, nodes: list[int], accepted: bool
) -> None:
    """The checker gives the expected verdict, and the integer program agrees with it."""
    path = steps_along(CALLING, nodes)
    assert (check_path(CALLING, (), [constraint], path) == ()) == accepted
    assert feasible_along(CALLING, constraint, path) == accepted


def test_a_named_end_point_cuts_its_function_short() -> None:
    stop = replace(
        CALLING.nodes[3],
        block=replace(CALLING.nodes[3].block, insns=(insn(0x2030, ControlFlow.TRAP),)),
    )
    graph = replace(CALLING, nodes=(*CALLING.nodes[:3], stop, CALLING.nodes[4]))
    path, constraint = steps_along(graph, [0, 1, 3]), consistent(1, 2, 0x2000)
    assert check_path(graph, (), [constraint], path) == ()
    assert feasible_along(graph, constraint, path)


def test_a_tail_callee_ends_in_place_of_its_caller() -> None:
    call = replace(CALLING.nodes[0], block=replace(CALLING.nodes[0].block, tail=True))
    graph = replace(CALLING, nodes=(call, *CALLING.nodes[1:]))
    path, constraint = steps_along(graph, [0, 1, 3]), consistent(0, 4, 0x1000)
    assert check_path(graph, (), [constraint], path) != ()
    assert not feasible_along(graph, constraint, path)


def test_a_caller_limits_which_invocations_are_meant() -> None:
    constraint = conflict(1, 2, 0x2000)
    for caller, accepted in ((0x1000, False), (0x3000, True)):
        limited = replace(constraint, caller=caller)
        path = steps_along(CALLING, [0, 1, 2, 4])
        assert (check_path(CALLING, (), [limited], path) == ()) == accepted


def test_an_invocation_that_began_before_the_path_may_be_inconsistent() -> None:
    graph = replace(CALLING, entry=1)
    path = steps_along(graph, [1, 2, 4])
    outer = replace(consistent(0, 4, 0x1000), fact=ConsistentFact(most(0, 0).fact.source, "a", "b",
                                                              "0x1000"))  # fmt: skip
    assert check_path(graph, (), [outer], path) == ()
    assert feasible_along(graph, outer, path)


def feasible_along(graph: Supergraph, constraint: Constraint, path: tuple[PathStep, ...]) -> bool:
    """Whether the integer program allows the counts of ``path``."""
    none = costs(graph, {})
    reward = tuple(
        (int(any(s.edge == e for s in path)), *none.edges[0][1:]) for e in range(len(graph.edges))
    )
    try:
        got = worst_case(graph, Costs(none.nodes, reward), (), [constraint], solver=Highs())
    except InfeasibleError:
        return False
    return got.solution.cycles == len(path) - 1


def test_the_integer_program_has_the_sizes_it_says() -> None:
    model = build_ipet(CALLING, costs(CALLING, {}), ()).model
    assert len(model.names) == len(CALLING.edges) + len(CALLING.exits)
    assert [row.rhs for row in model.rows] == [1, 0, 0, 0, 0]
