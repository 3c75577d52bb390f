"""Independent questions in worker processes, with progress."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from loopbounds.prove import Outcome

__all__ = ["answer_all"]

Done = Callable[[int, Outcome], None]
Question = Callable[[], Outcome]

_questions: Sequence[Question] = ()  # inherited by forked workers, so that terms stay interned


def answer_all(questions: Sequence[Question], workers: int, done: Done) -> None:
    """Call ``done(index, outcome)`` as each question is answered.

    A worker that dies takes its questions with it: they are answered "solver failed".
    """
    if workers <= 1 or len(questions) <= 1:
        for index, question in enumerate(questions):
            done(index, question().without_terms())
        return
    with _inherited(questions):
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(min(workers, len(questions)), mp_context=fork) as pool:
            asked = {pool.submit(_answer, index): index for index in range(len(questions))}
            for future in as_completed(asked):
                done(asked[future], _outcome(future))


@contextmanager
def _inherited(questions: Sequence[Question]) -> Iterator[None]:
    global _questions
    _questions = questions
    try:
        yield
    finally:
        _questions = ()


def _answer(index: int) -> Outcome:
    """Without terms: they are interned in the process that made them."""
    return _questions[index]().without_terms()


def _outcome(future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        return Outcome(None, 1, (), 0, "a worker process died", "", 0.0)
