"""Loops that store to an array on the stack, next to their counter, or over it.

A function is entered with any sp, so that the two are known by their distance only.
"""

from __future__ import annotations

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from tests.testing.harness.cases import in_turn
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

COUNTER = range(8, 12)  # bytes of the object that hold it
LIMIT = 3
SIZES = {"char": 1, "short": 2, "int": 4, "long long": 8}
SHIFTS = {"char": (0, 5, 6, 9, 12), "short": (0, 1, 2, 3, 6), "int": (0, 1, 3), "long long": (0, 2)}
LOOPS = {  # and how many elements they store to
    "object.counter = 0; object.counter < 3; object.counter++": ("object.counter", 3),
    "object.counter = 3; object.counter; object.counter--": ("(value & 1)", 2),
}


def source(loop: str, kind: str, shift: int) -> str:
    """Stores to the elements from the one at ``shift`` on."""
    return f"""
        int main(unsigned value)
        {{
            struct {{ char low[8]; unsigned counter; char high[60]; }} object;

            for ({loop})
                (({kind} *)&object)[{LOOPS[loop][0]} + {shift}] = value;
            return object.low[0];
        }}
    """


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    ("array", "loop"), in_turn([(k, s) for k in SIZES for s in SHIFTS[k]], list(LOOPS))
)
def test_an_array_beside_a_counter(array: tuple[str, int], loop: str) -> None:
    """The loop is bounded if no element overlaps the counter, and no bound is exceeded."""
    kind, shift = array
    thumb = LOOPS[loop][1] == LIMIT
    code = load(build(source(loop, kind, shift), optimise="-O0", thumb=thumb, cpu="cortex-a8"))
    (bound,) = code.bounds(options=BoundOptions(Budget(seconds=20), workers=1))
    size, elements = SIZES[kind], LOOPS[loop][1]
    if size * (shift + elements) <= COUNTER.start or COUNTER.stop <= size * shift:
        assert bound.bound == LIMIT + 1
    for value in (0, 1, 0x80, 0xFFFFFFFF):
        (count,) = code.counts((value,)).values()
        assert bound.bound is None or count <= bound.bound
