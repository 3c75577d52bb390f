"""The worst path as a tree of calls."""

from __future__ import annotations

from collections import Counter

import pytest

from ilp.paths.path_check import path_cycles
from ilp.paths.tree import CallTree, fold
from ilp.worst_case import worst_case
from pipeline.costs import CostCause, Costs
from quoll.cfg.cfg import EdgeKind
from quoll.errors import ControlFlowError, InfeasibleError
from tests.testing.harness.cases import cases
from tests.testing.ilp.drawn import bounded, costs, draw
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.programs import random_case

CALL, RETURN = EdgeKind.CALL, EdgeKind.RETURN


def test_a_loop_of_calls_by_hand() -> None:
    graph = draw(
        [(0, 1), (1, 2, CALL), (2, 3, RETURN), (3, 1), (1, 4)],
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
    path = worst_case(graph, charged, bounded(graph, 4), solver=InProcess()).path
    tree = fold(graph, charged, path.steps)
    assert (tree.cycles, tree.invocations, tree.function) == (4 * 2 + 3 * 10 + 3 * 3, 1, 0x1000)
    (callee,) = tree.callees
    assert (callee.cycles, callee.invocations, callee.call_site) == (30, 3, 0x10)
    own = {CostCause(number): cycles for number, cycles in enumerate(tree.own) if cycles}
    assert own == {CostCause.ISSUE: 8, CostCause.BRANCH: 9}
    block = tree.blocks[1]
    assert (block.addr, block.executions, block.cycles[CostCause.ISSUE]) == (0x1010, 4, 8)
    assert sum(block.cycles) == 8


def everywhere(tree: CallTree) -> list[CallTree]:
    """All nodes of a tree."""
    return [tree, *(below for callee in tree.callees for below in everywhere(callee))]


@pytest.mark.slow("many random integer programs")
def test_nothing_is_lost_in_folding() -> None:
    folded = 0
    for seed in range(cases(50)):
        try:
            case = random_case(seed)
            path = worst_case(
                case.graph, case.costs, case.loop_bounds, case.constraints, solver=InProcess()
            ).path
        except (ControlFlowError, InfeasibleError):
            continue
        tree = fold(case.graph, case.costs, path.steps)
        parts = everywhere(tree)
        assert tree.cycles == path_cycles(case.costs, path.steps)
        assert sum(sum(part.own) for part in parts) == tree.cycles
        assert sum(b.executions for part in parts for b in part.blocks) == len(path.steps)
        met = Counter(case.graph.nodes[s.node].context for s in path.steps)
        assert met.keys() <= {part.context for part in parts}
        assert len({part.context for part in parts}) == len(parts)
        folded += len(parts) > 1
    assert folded > 15
