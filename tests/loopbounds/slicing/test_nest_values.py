"""Values at nests of loops whose limits move: all bounds and totals hold in executions."""

from __future__ import annotations

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from tests.testing.harness.cases import in_turn
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

# name: (body of main, whether the total of the inner loop is known)
NESTS = {
    "gap": (
        "for (int gap = 32; gap > 0; gap /= 2) for (int i = gap; i < 64; i++) sink = i;",
        True,
    ),
    "width": (
        "for (int w = 1; w < 32; w *= 2) for (int i = 0; i < 32; i += 2 * w) sink = i;",
        False,
    ),
    "end": (
        "int *p = t, *e = t + 1; for (int i = 0; i < 9; i++) { int *q = t + 2 * i;"
        " while (q != e) { sink = *q; q++; } e = q + 3; }",
        True,
    ),
}


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(NESTS, ("-O1", "-O0", "-Os")))
def test_nests_with_moving_limits(name: str, level: str) -> None:
    """All loops are bounded, and the only execution reaches each bound."""
    body, total = NESTS[name]
    source = f"volatile int sink; int t[64]; int main(void) {{ {body} return 0; }}"
    code = load(build(source, "-fno-unroll-loops", optimise=level))
    bounds = code.bounds(options=BoundOptions(Budget(seconds=20), workers=0))
    seen, totals = code.counts(()), code.totals(())
    for bound in bounds:
        assert bound.bound is not None
        assert seen[code.header(bound)] <= bound.bound <= seen[code.header(bound)] + 1
        assert bound.total is None or totals[code.header(bound)] <= bound.total
    assert any(bound.total is not None for bound in bounds) == total
