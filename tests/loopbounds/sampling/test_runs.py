"""Concrete runs of a model: executions, and the longest by hill climbing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from loopbounds.sampling.hill_climbing import RunChoice, hill_climb
from loopbounds.sampling.runs import explore, longest
from loopbounds.transition.model import LoopModel
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.brute_force import most_executions
from tests.testing.loopbounds.drawn_models import models
from tests.testing.loopbounds.models import PROVED


def test_the_longest_run_is_found_before_anything_is_proved() -> None:
    """From a short run to the longest, where inputs decide: the proof is then one query."""
    model, bound = PROVED["levels"]
    runs = hill_climb(model, [RunChoice((), (31,))])
    assert longest(runs) == bound


@pytest.mark.slow("many random loop models")
@given(models())
@settings(max_examples=cases(5))
def test_runs_are_executions(model: LoopModel) -> None:
    """Exploration never reports more executions than there are."""
    exact = most_executions(model)
    runs = explore(model)
    runs += hill_climb(model, [RunChoice(r.parameters, (1,) * len(model.inputs)) for r in runs[:3]])
    assert exact is None or longest(runs) <= max(exact, 1)
    assert exact is None or not any(run.endless for run in runs)
