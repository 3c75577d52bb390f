"""``wcet refine``: no execution exceeds a refined bound, or takes edges that exclude each other."""

from __future__ import annotations

import pytest

from quoll.errors import UnboundedLoop
from tests.testing.harness.cases import cases
from tests.testing.wcet.infeasible_programs import CHANGED, build_pairs
from tests.testing.wcet.refined_runs import broken_exclusions, paths_of, refined
from wcet.refinement.refine import Ending

LEVELS = ("-O1", "-O2", "-Os")
SEEDS = range(cases(3))
LOWER = [  # a pair at a level at which the compiler leaves both decisions
    ("argument", 0, "-O0"),
    ("global", 1, "-O1"),
    ("callee", 2, "-O2"),
    ("cleared", 3, "-Os"),
    ("switch", 4, "-O0"),
    ("known", 6, "-O2"),
    ("machine", 2, "-Os"),
]


@pytest.mark.slow("analyses, refines and executes a program for each kind of pair")
@pytest.mark.parametrize(("kind", "seed", "level"), LOWER)
def test_a_planted_pair_is_excluded(kind: str, seed: int, level: str) -> None:
    found = refined(build_pairs((kind,), seed, level).elf)
    assert found.cycles < found.entry.cycles
    assert found.ending is Ending.NOT_REFUTED
    assert [one.cycles for one in found.rounds] == sorted(
        (one.cycles for one in found.rounds), reverse=True
    )
    for path in paths_of(found, 12, seed):
        assert not broken_exclusions(found, path)


@pytest.mark.slow("analyses, refines and executes random programs")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_execution_takes_excluded_edges(seed: int) -> None:
    """Each program has pairs that something changes, and a search with two ways out of its loop."""
    kinds = (CHANGED[seed % len(CHANGED)], "search", CHANGED[(seed + 3) % len(CHANGED)])
    program = build_pairs(kinds, seed, LEVELS[seed % len(LEVELS)])
    try:
        found = refined(program.elf)
    except UnboundedLoop:  # a loop whose counter the compiler left in memory
        return
    for path in paths_of(found, 30, seed):
        assert not broken_exclusions(found, path)
