"""Concrete executions of a model: the source of candidates, and witnesses that bounds are reached.

A run is an execution that the SMV text allows, too (rule 19).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from loopbounds.budgets import table
from loopbounds.terms.bit_vectors import Term, mask
from loopbounds.terms.evaluate import Loop, Words
from loopbounds.terms.rewrite import walk
from loopbounds.transition.model import LoopModel
from loopbounds.transition.stepper import ModelStepper

__all__ = [
    "ModelRun",
    "explore",
    "longest",
    "neighbours",
    "runs_from",
    "runs_near",
]


@dataclass(frozen=True, slots=True)
class ModelRun:
    """``states[i]`` is the state in which execution number ``counts[i]`` of the header starts."""

    parameters: tuple[int, ...]
    states: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    executions: int  # of the header, so far
    ended: bool  # control left the loop
    endless: bool = False  # it returned to an earlier state, so it may repeat for ever


def explore(
    model: LoopModel, seeds: Sequence[tuple[int, ...]] = (), steps: int = table.RUN_STEPS
) -> list[ModelRun]:
    """Deterministic runs from many initial states; ``seeds`` are parameters to try first.

    ``steps``: the most executions in one run.
    """
    stepper = ModelStepper(model)
    chance = random.Random(1)
    choices = _Choices(model, chance)
    budget, runs = table.ALL_STEPS, []
    seen: set[tuple[int, ...]] = set()
    for parameters in _starts(model, choices, seeds):
        if parameters in seen:
            continue
        seen.add(parameters)
        state = stepper.start(parameters)
        if state is None:
            continue
        for policy in range(table.INPUT_POLICIES if model.inputs else 1):
            run = _run(stepper, parameters, state, choices, policy, min(budget, steps))
            budget -= run.executions
            runs.append(run)
        if budget <= 0 or len(runs) >= table.MOST_RUNS:
            break
    return runs


def runs_from(model: LoopModel, parameters: tuple[int, ...]) -> list[ModelRun]:
    """Runs from one initial state."""
    stepper, choices = ModelStepper(model), _Choices(model, random.Random(1))
    state = stepper.start(parameters)
    policies = range(0 if state is None else table.INPUT_POLICIES if model.inputs else 1)
    return [
        _run(stepper, parameters, state, choices, policy, table.RUN_STEPS)
        for policy in policies
        if state is not None
    ]


def runs_near(model: LoopModel, parameters: tuple[int, ...]) -> list[ModelRun]:
    """Short runs from an initial state and from its neighbours that the model allows."""
    stepper, choices = ModelStepper(model), _Choices(model, random.Random(1))
    runs: list[ModelRun] = []
    for start in (parameters, *neighbours(parameters, [p.width for p in model.parameters])):
        state = stepper.start(start)
        if state is not None and len(runs) < table.MOST_RUNS:
            policies = range(table.INPUT_POLICIES if model.inputs else 1)
            runs += [
                _run(stepper, start, state, choices, policy, table.RUN_ENDS) for policy in policies
            ]
    return runs


def neighbours(words: tuple[int, ...], widths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The tuples in which one word is 0, all ones, or has one bit changed, the highest first."""
    for i, (width, word) in enumerate(zip(widths, words, strict=True)):
        ones = mask(width)
        for other in (0, ones, *(word ^ 1 << bit for bit in reversed(range(width)))):
            if other != word:
                yield (*words[:i], other, *words[i + 1 :])


def longest(runs: Sequence[ModelRun]) -> int:
    """The most header executions of any run, a lower limit of every bound; 1 without runs."""
    return max((r.executions for r in runs), default=1)


def _starts(
    model: LoopModel, choices: _Choices, seeds: Sequence[tuple[int, ...]]
) -> Iterator[tuple[int, ...]]:
    yield from seeds
    extremes = [choices.values(p) for p in model.parameters]
    for same in range(max(map(len, extremes), default=0)):
        yield tuple(v[same % len(v)] for v in extremes)
    for _ in range(table.RANDOM_STARTS if model.parameters else 1):
        yield tuple(choices.pick(p) for p in model.parameters)
    for seed in seeds:
        yield from neighbours(seed, [p.width for p in model.parameters])


class _Choices:
    """Words to choose from: corners, constants of the model and their neighbours, random words."""

    def __init__(self, model: LoopModel, chance: random.Random) -> None:
        terms = [*model.constraints, model.again, *(v.next for v in model.state)]
        terms += [v.initial for v in model.state]
        found = {t.value for t in walk(terms) if t.op in ("const", "linear")}
        found |= {mask(32) + 1 - v for v in found}
        near = {v + d for v in found for d in (-1, 0, 1)}
        self._constants = sorted(near)
        self._chance = chance
        self._order = list(model.inputs)
        self._same = [tuple(same & mask(s.width) for s in self._order) for same in (0, 1, -1)]
        self._values: dict[int, list[int]] = {}  # by width

    def values(self, symbol: Term) -> list[int]:
        """Corners for one symbol."""
        known = self._values.get(symbol.width)
        if known is None:
            top = mask(symbol.width)
            corners = [0, 1, 2, 3, top, top - 1, top >> 1, (top >> 1) + 1, *self._constants]
            known = self._values[symbol.width] = sorted({v & top for v in corners})
        return known

    def pick(self, symbol: Term) -> int:
        """One word for a symbol."""
        kind = self._chance.random()
        if kind < 0.4:
            return self._chance.choice(self.values(symbol))
        if kind < 0.5:
            return self._chance.getrandbits(symbol.width)
        if kind < 0.65:
            return 1 << self._chance.randrange(symbol.width)
        return self._chance.getrandbits(self._chance.randint(1, symbol.width))

    def inputs(self, policy: int) -> Iterator[tuple[int, ...]]:
        """Inputs to try for one step: the first that repeats the loop is taken."""
        if not self._order:
            yield ()
            return
        if policy == 0:
            yield from self._same
        for _ in range(table.INPUT_TRIES if policy < 2 else 1):
            yield tuple(self.pick(s) for s in self._order)


def _run(
    stepper: ModelStepper,
    parameters: Words,
    state: Words,
    choices: _Choices,
    policy: int,
    limit: int,
) -> ModelRun:
    go_on = stepper.loop or _choosing(stepper, choices, policy)
    head, tail = [state], deque[Words](maxlen=table.RUN_ENDS)
    near = max(0, min(limit, table.RUN_ENDS) - 1)
    steps, state = go_on(parameters, state, near, head.append)
    ended, far = steps < near, max(0, limit - table.RUN_ENDS)
    if not ended:
        more, state = go_on(parameters, state, far, tail.append)
        steps, ended = steps + more, more < far
    count = steps + 1
    counts = (*range(1, len(head) + 1), *range(count - len(tail) + 1, count + 1))
    return ModelRun(parameters, (*head, *tail), counts, count, ended=ended)


def _choosing(stepper: ModelStepper, choices: _Choices, policy: int) -> Loop:
    """The loop of a model with inputs: each step takes the first tried inputs that repeat it."""

    def go_on(
        parameters: Sequence[int], state: Words, steps: int, see: Callable[[Words], object]
    ) -> tuple[int, Words]:
        for taken in range(steps):
            tried = (stepper.step(parameters, state, i) for i in choices.inputs(policy))
            following = next((f for f in tried if f is not None), None)
            if following is None:
                return taken, state
            state = following
            see(state)
        return steps, state

    return go_on
