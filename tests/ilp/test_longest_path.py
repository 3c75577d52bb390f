"""The longest path over the loop nest against HiGHS, and where no solver could compute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilp.ipet import Ipet, build_ipet
from ilp.longest_path import longest_path, proved_maximum
from ilp.solvers.integer_program import LinearRow
from ilp.solvers.solve import certified
from ilp.worst_case import worst_case
from quoll.errors import ControlFlowError, InfeasibleError
from tests.testing.harness.cases import cases
from tests.testing.ilp.drawn import bounded, costs, draw, most
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.judging import Tally, judge
from tests.testing.ilp.programs import random_case

ASKED, NOT_ASKED = InProcess(), InProcess(preferred=False)
NEST = ((0, 1), (1, 2), (2, 3), (3, 3), (3, 2), (2, 1), (1, 4))  # 1 around 2 around 3


def programs(seeds: range) -> list[Ipet]:
    found = []
    for seed in seeds:
        try:
            case = random_case(seed)
        except ControlFlowError:
            continue
        found.append(build_ipet(case.graph, case.costs, case.bounds))
    return found


@pytest.mark.slow("many random programs are bounded")
def test_it_is_the_maximum_without_constraints() -> None:
    """Of random programs: some start inside a loop, some end there."""
    starts = 0
    for ipet in programs(range(cases(130))):
        proposal = longest_path(ipet)
        try:
            best = proved_maximum(ipet, ASKED).bound
        except InfeasibleError:
            assert proposal is None
            continue
        assert proposal is not None
        proof = certified(ipet.model, proposal)
        assert proof.bound >= best
        if ipet.nest.started:
            starts += 1
        else:
            assert proof.bound == best
            assert proof.attained
        if proof.attained:
            assert proof.bound == best
    assert starts > 0


def test_a_start_at_the_longest_path_changes_no_maximum() -> None:
    """With the same rows, and with one that may take the path away."""
    begun = 0
    for seed, ipet in enumerate(programs(range(cases(70)))):
        proposal = longest_path(ipet)
        if proposal is None:
            continue
        assert proposal.basis is not None
        assert len(proposal.basis.variables) == len(proposal.basis.rows)
        limit = LinearRow("limit", "o", ((seed % len(ipet.model.names), 1),), False, 1)
        for model in (ipet.model, ipet.model.with_rows([limit])):
            cold = ASKED.solve(model, relaxed=True, seconds=None)
            warm = ASKED.solve(model, relaxed=True, seconds=None, start=proposal.basis)
            assert warm.status is cold.status
            assert warm.bound == pytest.approx(cold.bound)
            begun += 1
    assert begun > 100


@pytest.mark.slow("many integer programs are solved")
def test_bounds_with_constraints_are_those_of_the_search_over_paths() -> None:
    tally = Tally()
    for seed in range(5_000, 5_000 + cases(100)):
        judge(seed, NOT_ASKED, tally)
    assert tally.seen["exact dual certificate"] > cases(30)


def test_a_wrong_proposal_proves_nothing() -> None:
    ipet = programs(range(1))[0]
    proposal = longest_path(ipet)
    assert proposal is not None
    best = certified(ipet.model, proposal)
    assert best.attained
    for row, value in enumerate(proposal.duals):
        wrong = (*proposal.duals[:row], value + 1, *proposal.duals[row + 1 :])
        assert certified(ipet.model, replace(proposal, duals=wrong)).bound >= best.bound
    for column, value in enumerate(proposal.values):
        counts = (*proposal.values[:column], value + 1, *proposal.values[column + 1 :])
        assert certified(ipet.model, replace(proposal, values=counts)).values is None


@pytest.mark.parametrize("solver", [ASKED, NOT_ASKED], ids=["asked", "not asked"])
@pytest.mark.parametrize("size", [10**4, 2**32, 10**30, 10**400])
def test_figures_have_any_size(solver: InProcess, size: int) -> None:
    graph = draw(NEST, exits=[4])
    cycles = {0: 1, 1: 2, 2: 3, 3: 5, 4: 7}
    answer = worst_case(
        graph, costs(graph, cycles), bounded(graph, size, size, size), solver=solver
    )
    inner, middle = size * (size - 1) * (size - 1), size * (size - 1)
    assert answer.solution.cycles == 1 + 7 + 2 * size + 3 * middle + 5 * inner
    assert answer.solution.optimal
    assert answer.solution.nodes == (1, size, middle, inner, 1)


@pytest.mark.parametrize("size", [10**3, 10**30, 10**400])
def test_a_constraint_that_binds_counts_at_any_size(size: int) -> None:
    """It was left out above 2^53, where solvers cannot compute."""
    graph = draw(NEST, exits=[4])
    figures = costs(graph, {0: 1, 1: 2, 2: 3, 3: 5, 4: 7})
    for solver in (ASKED, NOT_ASKED):
        answer = worst_case(
            graph, figures, bounded(graph, size, size, size), [most(3, 5)], solver=solver
        )
        assert answer.solution.cycles == 5 * size + 45
        assert answer.solution.optimal
        assert answer.solution.nodes == (1, size, size + 4, 5, 1)
