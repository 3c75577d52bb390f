"""The integer program on graphs drawn by hand: counts and refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from ilp.constraints.nest import LoopNest, checked_bounds
from ilp.ipet import build_ipet, total_row
from ilp.solvers.highs import Highs
from ilp.worst_case import WorstCase, worst_case
from loopbounds.execution.counts import ExecutionCounts
from loopbounds.proof.bound import LoopBound, NoBound, NoBoundKind
from quoll.cfg.cfg import EdgeKind
from quoll.errors import ControlFlowError, InfeasibleError, UnboundedLoop
from quoll.inlining.supergraph import Supergraph
from tests.testing.ilp.drawn import bounded, conflict, consistent, costs, draw, most

CALL, RETURN = EdgeKind.CALL, EdgeKind.RETURN

DIAMONDS = draw([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)], exits=[6])
LOOP = draw([(0, 1), (1, 2), (2, 1), (1, 3)], exits=[3])
NESTED = draw([(0, 1), (1, 2), (2, 3), (3, 2), (2, 4), (4, 1), (1, 5)], exits=[5])
# 0 -> header 1 -> call f (nodes 2..8: two diamonds) -> back to 1 -> 9
REPEATED = draw(
    [(0, 1), (1, 2, CALL), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6), (5, 7), (6, 8), (7, 8),
     (8, 1, RETURN), (1, 9)],
    exits=[9],
    contexts=[0, 0, 1, 1, 1, 1, 1, 1, 1, 0],
    functions=[(None, 0x1000), (0, 0x2000)],
    returns=[8],
)  # fmt: skip


def answer(graph: Supergraph, cycles: dict[int, int], bounds=(), constraints=()) -> WorstCase:  # type: ignore[no-untyped-def]
    return worst_case(
        graph, costs(graph, cycles), bounded(graph, *bounds), constraints, solver=Highs()
    )


def test_the_longer_branches_are_taken() -> None:
    got = answer(DIAMONDS, {0: 1, 1: 5, 2: 3, 4: 2, 5: 7, 6: 1})
    assert got.solution.cycles == 1 + 5 + 7 + 1
    assert [s.node for s in got.path.steps] == [0, 1, 3, 5, 6]
    assert got.solution.method == "exact dual certificate"


def test_a_bound_counts_header_executions_per_entry() -> None:
    got = answer(LOOP, {1: 1, 2: 10}, [4])
    assert (got.solution.nodes[1], got.solution.nodes[2]) == (4, 3)
    got = answer(NESTED, {2: 1, 3: 10}, [3, 5])
    assert got.solution.nodes[1:5] == (3, 2 * 5, 2 * 4, 2)
    assert [s.node for s in got.path.steps] == [0, 1, *([2, 3] * 4), 2, 4, 1, *([2, 3] * 4), 2,
                                                4, 1, 5]  # fmt: skip


def test_a_total_over_the_loop_around() -> None:
    """Per entry of the outer loop; not where the loop around is another one."""
    header = NESTED.nodes[1].block.addr
    outer, inner = bounded(NESTED, 4, 5)
    total = replace(inner, total=9, around=header)
    got = worst_case(NESTED, costs(NESTED, {2: 1, 3: 10}), (outer, total), solver=Highs())
    assert got.solution.nodes[2:4] == (9, 7)
    elsewhere = replace(total, around=header + 4)
    got = worst_case(NESTED, costs(NESTED, {2: 1, 3: 10}), (outer, elsewhere), solver=Highs())
    assert got.solution.nodes[2] == 15


def test_no_edge_is_taken_more_often_than_in_the_only_execution() -> None:
    """4 turns of the inner loop in the first of the outer one, none in the second."""
    pairs = [0, 1, *([2, 3] * 4), 2, 4, 1, 2, 4, 1, 5]
    number = {(e.src, e.dst): i for i, e in enumerate(NESTED.edges)}
    taken = [0] * len(NESTED.edges)
    for step in pairwise(pairs):
        taken[number[step]] += 1
    found = ExecutionCounts(0, (3, 5), (3, 6), tuple(taken), frozenset({5}), ())
    got = worst_case(
        NESTED,
        costs(NESTED, {2: 1, 3: 10}),
        bounded(NESTED, 3, 5),
        (),
        (),
        found,
        solver=Highs(preferred=False),
    )
    assert got.solution.cycles == 6 + 40
    assert got.solution.edges == tuple(taken)
    assert got.solution.solver == "concrete execution"
    asked = Highs()
    again = worst_case(
        NESTED, costs(NESTED, {2: 1, 3: 10}), bounded(NESTED, 3, 5), (), (), found, solver=asked
    )
    assert again.solution.cycles == 6 + 40


def test_a_total_where_a_path_starts_inside() -> None:
    """A start in the loop around is an entry of it; at the header itself it is an execution."""
    assert total_row(NESTED, NESTED.loops[1], 9).rhs == 0
    assert total_row(replace(NESTED, entry=4), NESTED.loops[1], 9).rhs == 9
    assert total_row(replace(NESTED, entry=2), NESTED.loops[1], 9).rhs == 8


def test_the_least_bound_of_a_loop_counts() -> None:
    two = (*bounded(LOOP, 9), *bounded(LOOP, 3))
    assert checked_bounds(LOOP, two) == (3,)


def test_an_entry_that_is_a_loop_header_counts_as_an_entry() -> None:
    graph = draw([(0, 1), (1, 0), (0, 2)], exits=[2])
    assert answer(graph, {0: 1}, [5]).solution.cycles == 5


def test_a_path_may_start_inside_a_loop() -> None:
    inside = replace(LOOP, entry=2)
    nest = LoopNest.build(inside, [4])
    assert (nest.most_node(1), nest.most_node(2)) == (4, 4)
    got = answer(inside, {1: 1, 2: 10}, [4])
    assert (got.solution.nodes[1], got.solution.nodes[2]) == (4, 4)
    assert got.path.unrealisable is None
    got = answer(replace(NESTED, entry=3), {2: 1, 3: 10}, [3, 5])
    assert got.path.unrealisable is None
    # the first visit of the inner loop runs its header 5 times, the outer loop two more of 5
    assert got.solution.nodes[2:4] == (5 + 3 * 5 - 5, 5 + 2 * 4)


def test_conflicts_choose_the_dearer_side() -> None:
    cycles = {1: 10, 2: 1, 4: 8, 5: 1}
    assert answer(DIAMONDS, cycles).solution.cycles == 18
    got = answer(DIAMONDS, cycles, (), [conflict(1, 4, 0x1000)])
    assert got.solution.cycles == 11
    assert [s.node for s in got.path.steps] == [0, 1, 3, 5, 6]


def test_consistency_ties_branches_together() -> None:
    cycles = {1: 10, 2: 1, 4: 1, 5: 8}
    got = answer(DIAMONDS, cycles, (), [consistent(1, 4, 0x1000)])
    assert got.solution.cycles == 11


def test_counts_are_limited_in_total_and_per_invocation() -> None:
    cycles = {2: 1, 3: 10}
    assert answer(NESTED, cycles, [3, 5], [most(3, 2)]).solution.nodes[3] == 2
    assert answer(NESTED, cycles, [3, 5], [most(3, 0)]).solution.nodes[3] == 0
    repeated = answer(REPEATED, {3: 10}, [4], [most(3, 0, 0x2000)])
    assert repeated.solution.nodes[3] == 0
    assert answer(REPEATED, {3: 10}, [4], [most(3, 1, 0x2000)]).solution.nodes[3] == 3


def test_different_invocations_may_take_conflicting_sides() -> None:
    cycles = {3: 10, 6: 8}
    once = answer(REPEATED, cycles, [2], [conflict(3, 6, 0x2000)])
    assert once.solution.cycles == 10
    thrice = answer(REPEATED, cycles, [4], [conflict(3, 6, 0x2000), most(3, 2)])
    assert thrice.solution.cycles == 2 * 10 + 8


def test_a_graph_whose_loops_do_not_cover_its_cycles_is_refused() -> None:
    with pytest.raises(ControlFlowError, match="nothing bounds it"):
        build_ipet(replace(LOOP, loops=()), costs(LOOP, {}), [])


def test_a_loop_entered_at_its_side_is_refused() -> None:
    loop = replace(LOOP.loops[0], nodes=frozenset({1, 2}))
    side = draw([(0, 1), (1, 2), (2, 1), (1, 3), (0, 2)], exits=[3])
    with pytest.raises(ControlFlowError, match="irreducible"):
        LoopNest.build(replace(side, loops=(loop,)), [3])


def test_edges_and_overlaps_that_are_not_those_of_a_loop_are_refused() -> None:
    loop = LOOP.loops[0]
    with pytest.raises(ControlFlowError, match="entry and back edges"):
        LoopNest.build(replace(LOOP, loops=(replace(loop, backs=()),)), [3])
    twice = replace(LOOP, loops=(loop, replace(loop, index=1)))
    with pytest.raises(ControlFlowError, match="overlap"):
        LoopNest.build(twice, [3, 3])


def test_every_loop_without_a_bound_is_named() -> None:
    failed = NoBound(NoBoundKind.NOT_PROVED, "it counts a word", "<1010>", "a.c:7")
    none = LoopBound(0, None, None, "", None, failed, 0.1)
    with pytest.raises(UnboundedLoop) as caught:
        worst_case(
            NESTED, costs(NESTED, {2: 3, 3: 4}), [none], solver=Highs(), place=lambda a: f"<{a:x}>"
        )
    assert "2 loops have no bound" in str(caught.value)
    assert (
        "<1010>: the loop has no bound: it counts a word; add 'loop a.c:7 at most N'; "
        "<1020>: not bounded; unbounded because of this loop: 7 cycles per element"
    ) in str(caught.value)


def test_a_smallest_set_of_clashing_facts_is_named() -> None:
    facts = [
        most(4, 0, line=1),
        consistent(1, 4, 0x1000, line=2),
        most(5, 3, line=3),
        most(2, 0, line=4),
    ]
    with pytest.raises(InfeasibleError) as caught:
        answer(DIAMONDS, {}, (), facts)
    text = str(caught.value)
    assert all(f"my.facts:{n}:" in text for n in (1, 2, 4))
    assert "my.facts:3:" not in text


def test_a_loop_bound_that_excludes_every_path_is_said_to() -> None:
    graph = draw([(0, 1), (1, 2), (2, 1), (2, 3)], exits=[3])
    with pytest.raises(InfeasibleError, match="within the loop bounds"):
        worst_case(graph, costs(graph, {}), bounded(graph, 0), solver=Highs())


def test_names_say_context_and_addresses() -> None:
    model = build_ipet(REPEATED, costs(REPEATED, {}), [3], [conflict(3, 6, 0x2000)]).model
    assert "x1.c0.1010.2000" in model.names
    assert "end.n9.c0.1090" in model.names
    origins = {row.name: row.origin for row in model.rows}
    assert origins["loop0.n1.c0.1010"] == "loop bound 3 at 0x1010"
    assert origins["u0.c1"] == "my.facts:1: n3 conflicts with n6 in 0x2000"
