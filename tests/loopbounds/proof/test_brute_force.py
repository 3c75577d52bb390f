"""Slices of compiled loops in words of a few bits: proved bounds against all executions."""

from __future__ import annotations

import random

import pytest

from campaigns.loop_models import against_brute_force, models_of
from loopbounds.budgets.budget import Budget
from tests.testing.loopbounds.brute_force import NotNarrow, most_executions, narrowed
from tests.testing.loopbounds.counting import load
from tests.testing.loopbounds.programs import random_program
from tests.testing.quoll.building import build

SAMPLE = [("nested", "-Os", 2), ("x &= x - 1", "-O1", 1), ("copy with prologue", "-Os", 3)]


@pytest.mark.slow("enumerates every execution of narrow loops")
@pytest.mark.parametrize(("kind", "level", "loops"), SAMPLE)
def test_narrow_slices(kind: str, level: str, loops: int) -> None:
    """No execution is longer than the bound, and the longest is as long where it is exact."""
    source = random_program(random.Random(f"brute force {kind}"), kind)
    models = models_of(load(build(source, optimise=level)), Budget(seconds=5))
    found = [against_brute_force(model, Budget(seconds=5)) for model in models]
    assert sum(result.bounded for result in found) == loops


@pytest.mark.slow("enumerates every execution of narrow loops")
def test_widths_that_cannot_be_divided_are_refused() -> None:
    """A narrowed model has all parts of the slice or none."""
    source = "int main(unsigned a) { volatile unsigned s; while (a) { s = a; a >>= 1; } return 0; }"
    [model] = models_of(load(build(source, optimise="-O2")), Budget(seconds=5))
    assert most_executions(narrowed(model, 4)) in (8, 9)
    with pytest.raises(NotNarrow):
        narrowed(model, 5)
