"""Independent questions in worker processes.

A worker is a fork of this process, so that questions may refer to anything; answers are pickled.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["answer_all"]

T = TypeVar("T")

_questions: Sequence[Callable[[], Any]] = ()  # inherited by forked workers


def answer_all(
    questions: Sequence[Callable[[], T]], workers: int, done: Callable[[int, T | None], None]
) -> None:
    """Call ``done(index, answer)`` as each question is answered.

    A worker that dies takes its questions with it: they are answered None. Raises what a question
    raises.
    """
    if workers <= 1 or len(questions) <= 1:
        for index, question in enumerate(questions):
            done(index, question())
        return
    with _inherited(questions):
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(min(workers, len(questions)), mp_context=fork) as pool:
            asked = {pool.submit(_answer, index): index for index in range(len(questions))}
            for future in as_completed(asked):
                done(asked[future], _result(future))


@contextmanager
def _inherited(questions: Sequence[Callable[[], Any]]) -> Iterator[None]:
    global _questions
    _questions = questions
    try:
        yield
    finally:
        _questions = ()


def _answer(index: int) -> Any:
    return _questions[index]()


def _result(future: Future[T]) -> T | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return None
