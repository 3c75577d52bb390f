"""Independent questions in worker processes, with progress."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from loopbounds.model import Model
from loopbounds.prove import Budget, Outcome, prove

__all__ = ["prove_all"]

Done = Callable[[int, Outcome], None]

_questions: Sequence[Model] = ()  # inherited by forked workers, so that terms stay interned


def prove_all(
    models: Sequence[Model], budget: Budget, solver: Path, workers: int, done: Done
) -> None:
    """Prove every model and call ``done(index, outcome)`` as each is answered.

    A worker that dies takes its questions with it: they are answered "solver failed".
    """
    if workers <= 1 or len(models) <= 1:
        for index, model in enumerate(models):
            done(index, _portable(prove(model, budget, solver)))
        return
    with _inherited(models):
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(min(workers, len(models)), mp_context=fork) as pool:
            asked: dict[Future[Outcome], int] = {
                pool.submit(_answer, index, budget, solver): index for index in range(len(models))
            }
            for future in as_completed(asked):
                done(asked[future], _outcome(future))


@contextmanager
def _inherited(models: Sequence[Model]) -> Iterator[None]:
    global _questions
    _questions = models
    try:
        yield
    finally:
        _questions = ()


def _answer(index: int, budget: Budget, solver: Path) -> Outcome:
    return _portable(prove(_questions[index], budget, solver))


def _portable(outcome: Outcome) -> Outcome:
    """Without terms: they are interned in the process that made them."""
    return outcome.without_terms()


def _outcome(future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        return Outcome(None, 1, (), 0, "solver failed: a worker process died", "", 0.0)
