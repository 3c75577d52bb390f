"""Tests of every shipped controller: all arrivals, all inputs, lines of every kind (rule 54).

Whenever the interrupt arrives, the execution from the last start on is a path of a segment. No
segment repeats a loop that tests in each iteration, so the predicates decide.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.testing.values.controllers import CONTROLLERS
from tests.testing.values.preemption_points import SHAPES, TESTS, Subject, executions, fits


def lines_of(controller: str) -> tuple[int, ...]:
    """The first, the last, and one in between."""
    lines = CONTROLLERS[controller]().lines
    return lines[0], lines[len(lines) // 2], lines[-1]


@pytest.mark.slow("all executions of a kernel for each test and shape")
@pytest.mark.parametrize(("test", "shape"), tuple(product(TESTS, SHAPES)))
def test_every_arrival_is_on_a_path_of_a_segment(test: str, shape: str) -> None:
    controller, code = TESTS[test]
    subject = Subject.of(controller, code, SHAPES[shape])
    assert subject.turning("chunk", "outer", "again", "word") == {"word"}
    counts = {"entry": 0, "read": 0, "never": 0}
    for ran in executions(subject, lines_of(controller)):
        if ran.before is None:
            counts["never"] += 1
            continue
        starts = fits(subject, ran)
        assert starts, ran
        counts["entry"] += starts == [None]
        counts["read"] += any(start is not None for start in starts)
    assert counts["never"] == 9
    assert counts["entry"] > 30
    assert counts["read"] > 50
