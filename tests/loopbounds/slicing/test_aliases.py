"""Loops whose limits lie in a frame with pointers to it: S1 does not cover them (rule 1)."""

from __future__ import annotations

import random

import pytest

from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.facts.located import NO_FACTS
from tests.testing.loopbounds.aliases import PRELUDE, aliasing_program
from tests.testing.loopbounds.counting import Program, load
from tests.testing.quoll.building import build

PAIRS = [(0, 0), (1, 2), (2, 15), (31, 7), (30, 9), (7, 12), (29, 33), (3, 4), (16, 63)]


def executions(code: Program) -> dict[int, int]:
    """Most executions of each header, over all pairs of arguments."""
    most: dict[int, int] = {}
    for pair in PAIRS:
        for header, count in code.counts(pair).items():
            most[header] = max(most.get(header, 0), count)
    return most


def alone(code: Program) -> tuple[LoopBound, ...]:
    """The bounds without value analysis, which assumes S1 itself."""
    options = BoundOptions(Budget(seconds=3), workers=1)
    return bound_loops(code.graph, code.image, None, NO_FACTS, options)


def check(source: str, optimise: str) -> int:
    """How many loops are bounded; none is exceeded."""
    code = load(build(source, optimise=optimise))
    most = executions(code)
    bounds = alone(code)
    for bound in bounds:
        if bound.bound is not None:
            assert most[code.header(bound)] <= bound.bound, f"{bound}\n{optimise}\n{source}"
    return sum(b.bound is not None for b in bounds)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("number", range(6))
def test_random_pointers(number: int) -> None:
    """No execution exceeds a bound, for any use of pointers."""
    check(aliasing_program(random.Random(number)), ("-O0", "-O1")[number % 2])


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("optimise", ["-O0", "-O1"])
def test_a_stack_address_in_a_global(optimise: str) -> None:
    """It is one as long as no store of unknown address comes between."""
    source = f"""{PRELUDE}int main(unsigned a, unsigned b)
{{
    volatile unsigned n = 5;
    keep = (unsigned *)&n;
    *keep = a & 31;
    for (unsigned i = 0; i < n; i++) sink = i;
    return 0;
}}
"""
    code = load(build(source, optimise=optimise))
    [bound] = alone(code)
    assert max(executions(code).values()) >= 31
    assert bound.bound is None or bound.bound >= 31
