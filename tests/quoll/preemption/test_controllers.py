"""Tests of every shipped controller: all arrivals, all inputs, lines of every kind (rule 54).

Lines take turns over the inputs, and shapes over the tests; ``CASES=3`` has them all.

Whenever the interrupt arrives, the execution from the last start on is a path of a segment. No
segment repeats a loop that tests in each iteration, so the predicates decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.testing.harness.cases import cases
from tests.testing.values.controllers import CONTROLLERS
from tests.testing.values.preemption_points import (
    DISABLING,
    INPUTS,
    REMEMBERING,
    SHAPES,
    TESTS,
    Arrived,
    Subject,
    executions,
    fits,
)


def lines_of(controller: str) -> tuple[int, ...]:
    """The first, the last, and one in between."""
    lines = CONTROLLERS[controller]().lines
    return lines[0], lines[len(lines) // 2], lines[-1]


def in_turn(tests: Iterable[str]) -> list[tuple[str, str]]:
    """Each test in one of the shapes."""
    return [
        (test, shape)
        for i, test in enumerate(tests)
        for j, shape in enumerate(SHAPES)
        if (i + j) % len(SHAPES) < cases(1)
    ]


@pytest.mark.slow("all executions of a kernel for each test and shape")
@pytest.mark.parametrize(("test", "shape"), in_turn(TESTS))
def test_every_arrival_is_on_a_path_of_a_segment(test: str, shape: str) -> None:
    controller, code = TESTS[test]
    check_arrivals(Subject.of(controller, code, SHAPES[shape]), lines_of(controller))


@pytest.mark.slow("all executions of a kernel for each test and shape")
@pytest.mark.parametrize(("test", "shape"), in_turn(REMEMBERING))
def test_a_remembered_answer_is_a_test(test: str, shape: str) -> None:
    """The load acknowledges: later tests see the interrupt only in the word."""
    answer = 0 if "flag" in test else 255
    check_arrivals(Subject.remembering(REMEMBERING[test], SHAPES[shape], answer), lines_of("avic"))


@pytest.mark.slow("all executions of a kernel for each test and shape")
@pytest.mark.parametrize("shape", DISABLING)
@pytest.mark.parametrize("test", ["two words", "a byte of a number"])
def test_a_line_that_no_test_has_shown_is_withdrawn(test: str, shape: str) -> None:
    """To disable it is no acknowledgement: the loop ends with the next test of another line."""
    subject = Subject.of("avic", TESTS[test][1], DISABLING[shape])
    assert subject.turning("chunk", "word") == {"word"}
    found = {"fits": 0, "withdrawn": 0}
    for ran in every_arrival(subject, lines_of("avic")):
        if ran.before is not None:
            assert fits(subject, ran), ran
            found["fits"] += 1
        found["withdrawn"] += ran.withdrawn
    assert found["fits"] > 50
    assert (found["withdrawn"] > 10) == (shape == "a disabled line")


def every_arrival(subject: Subject, lines: tuple[int, ...]) -> Iterator[Arrived]:
    """Each input with one of the lines."""
    for i, given in enumerate(INPUTS):
        chosen = (line for j, line in enumerate(lines) if (i + j) % len(lines) < cases(1))
        yield from executions(subject, tuple(chosen), (given,))


def check_arrivals(subject: Subject, lines: tuple[int, ...]) -> None:
    """Every execution is a path of a segment, and no segment repeats a loop with a test."""
    assert subject.turning("chunk", "outer", "again", "word") == {"word"}
    counts = {"entry": 0, "read": 0, "never": 0}
    for ran in every_arrival(subject, lines):
        if ran.before is None:
            counts["never"] += 1
            continue
        starts = fits(subject, ran)
        assert starts, ran
        counts["entry"] += starts == [None]
        counts["read"] += any(start is not None for start in starts)
    assert counts["never"] == len(INPUTS) * min(cases(1), len(lines))
    assert counts["entry"] > 10
    assert counts["read"] > 20
