"""Loops between two unknown ends: bounded by how far apart these can be when one is entered."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from loopbounds.budgets.budget import Budget
from loopbounds.budgets.table import RUN_STEPS, USEFUL
from loopbounds.proof.abstractions import prove
from loopbounds.sampling.runs import explore, longest
from loopbounds.sampling.samples import Samples
from loopbounds.strategies.end_distance import end_distances, longer_runs
from loopbounds.strategies.session import SolverSession
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, operation
from loopbounds.transition.model import LoopModel
from tests.testing.harness.cases import cases, in_turn, spread
from tests.testing.loopbounds.brute_force import most_executions
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.counting import Program
from tests.testing.loopbounds.drawn_models import models
from tests.testing.loopbounds.models import BUDGET, UP, M, N, X, bits, counted, word
from tests.testing.quoll.building import build

LINES = """
static int in_page(unsigned start, unsigned end, unsigned bits) {{
    return start < end && start >> bits == (end - 1) >> bits;
}}
int main(unsigned start, unsigned end, unsigned pick) {{
    {0}
    for (unsigned line = start >> 5; line < ((end - 1) >> 5) + 1; line++)
        __asm__ volatile("mcr p15, 0, %0, c7, c10, 1" :: "r"(line << 5));
    return 0;
}}
"""
# check before the lines from start to end - 1 are cleaned, and the bound
CHECKED = {
    "both in one page": ("if (!in_page(start, end, 20)) return 1;", 1 << 15),
    "a page of several sizes": (
        "unsigned bits = pick & 1 ? 12 : pick & 2 ? 16 : 20;"
        "if (!in_page(start, end, bits)) return 1;",
        1 << 15,
    ),
    "within a page that lies anywhere": (
        "unsigned size = pick & 1 ? 1u << 16 : 1u << 21;"
        "if (end <= start || start >= size || end > size) return 1;"
        "start += pick & ~31u; end += pick & ~31u; if (end <= start) return 1;",
        1 << 16,
    ),
}


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(CHECKED, ["-O1", "-O2", "-Os"]))
def test_lines_of_a_range(name: str, level: str) -> None:
    """Equal parts of two words limit their distance; so do offsets into a page."""
    checks, most = CHECKED[name]
    (found,) = Program(build(LINES.format(checks), optimise=level), "main").bounds()
    assert found.bound is not None
    assert most <= found.bound <= most + 1


def between(constraint: Term, step: int = 1) -> LoopModel:
    """From N to M."""
    return counted(N, terms.add(X, word(step)), terms.negate(terms.eq(X, M)), constraint)


def near(apart: int) -> Term:
    return terms.both(terms.ule(N, M), terms.ule(terms.sub(M, N), word(apart)))


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("apart", spread([USEFUL - 1, 70_000, 1 << 20], 1))
def test_as_far_as_the_ends_are_apart(apart: int) -> None:
    """The least bound, although no run is followed so far."""
    outcome = prove(between(near(apart)), BUDGET, find_checker())
    assert outcome.bound == apart + 1
    assert outcome.reached >= RUN_STEPS


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("step", [4, 256])
def test_ends_that_are_steps_apart(step: int) -> None:
    whole = terms.eq(bits(terms.sub(M, N), step - 1), word(0))
    outcome = prove(between(terms.both(near(step << 17), whole), step), BUDGET, find_checker())
    assert outcome.bound == (1 << 17) + 1


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    "constraint",
    spread(
        [
            terms.TRUE,
            terms.ule(N, M),
            near(1 << 30),
            terms.ule(terms.sub(M, N), word(1 << 30)),
        ],
        1,
    ),
)
def test_what_says_nothing_useful(constraint: Term) -> None:
    outcome = prove(between(constraint), BUDGET, find_checker())
    assert outcome.bound is None or outcome.bound > USEFUL


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("most", spread([5_000, 70_000], 1))
def test_a_constant_that_is_less_than_the_distance(most: int) -> None:
    """It is the bound if runs are followed that far; else the distance may be."""
    both = terms.both(terms.negate(terms.eq(X, M)), terms.ult(terms.sub(X, N), word(most)))
    bound = prove(counted(N, UP, both, near(1 << 20)), BUDGET, find_checker()).bound
    assert bound is not None
    assert most + 1 <= bound <= (1 << 20) + 1
    assert bound == most + 1 or most > RUN_STEPS


@pytest.mark.slow("NuSMV proves each bound")
def test_an_end_that_steps_may_go_past() -> None:
    """The distance of the ends gives a lower bound than the steps: the least counts."""
    model = counted(word(0), terms.add(X, word(3)), terms.ult(X, bits(N, 0xFFF0)))
    assert prove(model, BUDGET, find_checker()).bound == 0xFFF0 // 3 + 1


@pytest.mark.slow("NuSMV proves each bound")
def test_an_end_that_is_stepped_over_gives_no_bound() -> None:
    """The ends are near, but a step of 4 may miss the end: then it goes all the way round."""
    outcome = prove(between(near(1000), 4), BUDGET, find_checker())
    assert outcome.bound is None or outcome.bound >= 1 << 30


@pytest.mark.slow("NuSMV proves each bound")
def test_longer_runs_are_found_where_random_ones_are_short() -> None:
    """Two ends that random words hardly ever give."""
    key = operation("xor", N, word(0x5A5A_1234))
    rare = terms.eq(operation("lshr", key, word(12)), operation("lshr", M, word(12)))
    model = counted(key, UP, terms.negate(terms.eq(X, M)), terms.both(rare, terms.ule(key, M)))
    runs = explore(model)
    session = SolverSession(model, Budget(), find_checker())
    samples = Samples(model, runs)
    assert samples.reached < 1 << 12
    assert longest(longer_runs(session, samples)) > samples.reached
    assert prove(model, BUDGET, find_checker()).bound == 1 << 12


@pytest.mark.slow("many random loop models, with proofs by NuSMV")
@given(models())
@settings(max_examples=cases(4))
def test_runs_and_distances_against_brute_force(model: LoopModel) -> None:
    """A longer run is an execution; a distance is at least its value in any initial state."""
    exact = most_executions(model)
    assume(exact != 0)
    runs = explore(model)
    session = SolverSession(model, Budget(queries=1000), find_checker())
    samples = Samples(model, runs)
    assume(samples.candidates)
    found = longer_runs(session, samples)
    assert exact is None or longest(found) <= max(exact, 1)
    for distance in end_distances(session, samples, USEFUL):
        for run in runs:
            assert distance.factor * run.executions + distance.offset <= distance.most
