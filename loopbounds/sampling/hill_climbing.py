"""Long runs of a model by hill climbing: the bound, before anything is proved.

One choice of initial values and inputs holds for a whole run; it is improved one bit at a time as
long as runs get longer. The resulting run is an execution of the model; the model checker decides
whether a longer one exists. A run that returns to an earlier state, with the same inputs, is
endless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopbounds.budgets import table
from loopbounds.sampling.runs import ModelRun, neighbours
from loopbounds.transition.model import LoopModel
from loopbounds.transition.stepper import ModelStepper

__all__ = ["RunChoice", "hill_climb"]


@dataclass(frozen=True, slots=True)
class RunChoice:
    """Initial parameters, and the inputs of every step."""

    parameters: tuple[int, ...]
    inputs: tuple[int, ...]


def hill_climb(model: LoopModel, starts: Sequence[RunChoice]) -> list[ModelRun]:
    """The longest run found from each choice of ``starts``; none for forbidden initial states."""
    climber = _HillClimber(model)
    found = [run for start in starts if (run := climber.best(start)) is not None]
    found.sort(key=lambda run: (run.endless, run.executions))
    return list({run.parameters: run for run in found}.values())


class _HillClimber:
    def __init__(self, model: LoopModel) -> None:
        self._stepper = ModelStepper(model)
        self._widths = [s.width for s in (*model.parameters, *model.inputs)]
        self._split = len(model.parameters)
        self._left = table.CLIMBING_STEPS

    def best(self, start: RunChoice) -> ModelRun | None:
        words = (*start.parameters, *start.inputs)
        run = self._run(words)
        while (
            run is not None
            and run.executions < table.LONG_RUN
            and not run.endless
            and self._left > 0
        ):
            longer = self._longer(words, run.executions)
            if longer is None:
                break
            words, run = longer
        return run

    def _longer(
        self, words: tuple[int, ...], above: int
    ) -> tuple[tuple[int, ...], ModelRun] | None:
        for other in neighbours(words, self._widths):
            run = self._run(other)
            if run is not None and run.executions > above:
                return other, run
        return None

    def _run(self, words: tuple[int, ...]) -> ModelRun | None:
        parameters, inputs = words[: self._split], words[self._split :]
        state = self._stepper.start(parameters)
        if state is None:
            return None
        states = [state]
        before, count = state, 1
        following = self._stepper.step(parameters, state, inputs)
        while (
            following is not None
            and following != before
            and count < table.LONG_RUN
            and self._left > 0
        ):
            count += 1
            self._left -= 1
            if count & (count - 1) == 0:  # a state to return to (Brent)
                before = following
            if count <= table.RUN_ENDS:
                states.append(following)
            following = self._stepper.step(parameters, following, inputs)
        counts = tuple(range(1, len(states) + 1))
        again = following is not None and following == before
        return ModelRun(
            parameters, tuple(states), counts, count, ended=following is None, endless=again
        )
