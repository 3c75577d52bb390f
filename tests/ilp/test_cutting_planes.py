"""Counts that are no execution: cut and solved again, or reported (rule 26)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilp.constraints.constraint import Constraint
from ilp.constraints.instance import CallStructure
from ilp.constraints.nest import LoopNest
from ilp.constraints.region import region_below
from ilp.cutting_planes import cost_cuts, repeated_contexts
from ilp.ipet import build_ipet
from ilp.solvers.highs import Highs
from ilp.solvers.solve import maximise
from ilp.worst_case import WorstCase, worst_case
from quoll.cfg.cfg import EdgeKind
from quoll.errors import InfeasibleError
from quoll.facts.fact import FactSource
from quoll.facts.guidance import RequireFact
from quoll.facts.linear import LinearFact
from tests.testing.ilp.drawn import bounded, consistent, costs, draw, most

pytestmark = [
    pytest.mark.slow("solves many integer programs"),
    pytest.mark.xdist_group("cutting planes"),
]

CALL, RETURN = EdgeKind.CALL, EdgeKind.RETURN

# A loop (header 1) calls f (nodes 2 to 9), which may run 3 or 4, and all of 6, 7, 8 or none.
GRAPH = draw(
    [(0, 1), (1, 2, CALL), (2, 3), (2, 4), (2, 5), (3, 5), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9),
     (5, 9), (9, 1, RETURN), (1, 10)],
    exits=[10],
    contexts=[0, 0, *([1] * 8), 0],
    functions=[(None, 0x1000), (0, 0x2000)],
    returns=[9],
)  # fmt: skip
# 3 executes as often as 6, 7 and 8 together, so never within one invocation.
TIED = replace(consistent(3, 6, 0x2000), b=frozenset({6, 7, 8}))


def answer(cycles: dict[int, int], bound: int, constraints: list[Constraint]) -> WorstCase:
    return worst_case(
        GRAPH, costs(GRAPH, cycles), bounded(GRAPH, bound), constraints, solver=Highs()
    )


def test_invocations_that_make_up_for_each_other_are_cut_off() -> None:
    cycles = {6: 10, 7: 10, 8: 10, 3: 1, 4: 2}
    relaxed = maximise(build_ipet(GRAPH, costs(GRAPH, cycles), [4], [TIED]).model, Highs())
    assert relaxed.bound == 30 + 3
    got = answer(cycles, 4, [TIED])
    assert got.solution.cycles == 3 * 2
    assert got.path.unrealisable is None
    assert got.model is not None
    assert [row.origin for row in got.model.rows if row.name.startswith("cut")] == [
        "one invocation of 0x2000 in context 1 takes at most 2 cycles, "
        "or -1 when the path ends in it"
    ]


def test_counts_that_no_cut_excludes_are_reported() -> None:
    cycles = {6: 10, 7: 10, 8: 10, 4: 100}
    got = answer(cycles, 5, [TIED, most(4, 1)])
    assert got.solution.cycles == 130  # the longest allowed path takes 100
    assert got.solution.optimal
    assert got.path.unrealisable is not None
    assert got.path.unrealisable.startswith(
        "counts not realisable: my.facts:1: n3 is consistent with n6 in 0x2000 is broken in "
        "context 1: counts"
    )
    assert got.path.cycles == 130


def test_a_function_that_no_invocation_may_finish_is_not_entered() -> None:
    always = replace(consistent(2, 6, 0x2000), b=frozenset({6, 7, 8}))
    cycles = {6: 10, 7: 10, 8: 10}
    assert answer(cycles, 4, [always]).solution.cycles == 0


@pytest.mark.parametrize("node", [4, 10])
@pytest.mark.parametrize("form", ["require", "linear"])
def test_what_one_invocation_takes_does_not_depend_on_the_whole_path(node: int, form: str) -> None:
    """A minimum count on the path does not apply to a single invocation."""
    source = FactSource("my.facts", 2, "")
    place, alone = f"n{node}", frozenset({node})
    whole = Constraint(RequireFact(source, place), alone, frozenset(), None, None)
    if form == "linear":
        fact = LinearFact(source, ((1, place),), ">=", 1)
        whole = Constraint(fact, alone, frozenset(), None, None, ((node, 1),))
    got = answer({6: 10, 7: 10, 8: 10, 3: 1, 4: 2}, 4, [TIED, whole])
    assert got.solution.cycles == 3 * 2


def test_only_repeated_instances_are_cut() -> None:
    for bound, contexts in ((2, ()), (3, (1,))):
        ipet = build_ipet(GRAPH, costs(GRAPH, {}), [bound], [TIED])
        assert repeated_contexts(ipet, [TIED]) == contexts
    ipet = build_ipet(GRAPH, costs(GRAPH, {}), [3], [TIED])
    values = [0] * len(ipet.model.names)
    assert cost_cuts(ipet, costs(GRAPH, {}), [TIED], values, Highs(), None) == []


def test_a_region_is_all_that_one_invocation_may_do() -> None:
    nest = LoopNest.build(GRAPH, [4])
    region = region_below(CallStructure(nest), 1, 2)
    assert region.nodes == tuple(range(2, 10))
    assert region.graph.entry == 0
    assert region.graph.exits == (7,)
    assert region.loops == ()
    assert len(region.graph.edges) == 10
    inner = region.constraint(TIED)
    assert (inner.a, inner.b) == (frozenset({1}), frozenset({4, 5, 6}))
    part = build_ipet(region.graph, region.costs(costs(GRAPH, {4: 9, 6: 7})), [], [inner])
    assert maximise(part.model, Highs()).bound == 9


def test_a_region_keeps_the_loops_inside() -> None:
    graph = draw(
        [(0, 1, CALL), (1, 2), (2, 1), (1, 3, RETURN), (3, 0), (3, 4)],
        exits=[4],
        contexts=[0, 1, 1, 0, 0],
        functions=[(None, 0x1000), (0, 0x2000)],
    )
    nest = LoopNest.build(graph, [2, 3])
    region = region_below(CallStructure(nest), 1, 1)
    assert region.loops == (1,)
    (loop,) = region.graph.loops
    assert (loop.header, loop.entries, loop.backs, loop.parent) == (0, (), (1,), None)
    part = build_ipet(region.graph, region.costs(costs(graph, {2: 5})), [3])
    assert maximise(part.model, Highs()).bound == 10


def test_clashing_facts_of_repeated_instances_are_named() -> None:
    with pytest.raises(InfeasibleError, match=r"my\.facts:3: n0 never executes"):
        answer({}, 3, [TIED, most(0, 0, line=3)])
