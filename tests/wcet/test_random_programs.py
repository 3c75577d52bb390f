"""Random C programs: no execution of the interpreter takes longer than the bound.

This tests all stages together: extraction, values and the edges they remove, cache classes, block
times, loop bounds proved by NuSMV, the integer program. ``make soundness`` runs more of
them.
"""

from __future__ import annotations

import pytest

from quoll.errors import UnboundedLoop
from tests.testing.harness.cases import cases
from tests.testing.wcet.programs import bound, check, program

SEEDS = range(cases(4))
LEVELS = ("-O0", "-O1", "-O2", "-Os", "-O3")


@pytest.mark.slow("analyses and executes many random programs")
@pytest.mark.parametrize("part", range(2))
def test_no_execution_exceeds_its_bound(part: int) -> None:
    bounded = cases = loops = worst = 0
    for seed in SEEDS[part::2]:
        level = LEVELS[seed % len(LEVELS)]
        try:
            result = bound(program(seed, level))
        except UnboundedLoop:
            continue
        bounded += 1
        loops += len(result.entries["main"].bounds)
        found = check(result, seed, inputs=4, states=2)
        cases += len(found)
        worst += any(case.charged == case.bound for case in found)
    assert bounded >= len(SEEDS[part::2]) // 2, "most loops of these programs can be bounded"
    assert loops > 0
    assert cases == 4 * bounded
