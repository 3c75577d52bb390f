"""Questions answered side by side."""

from __future__ import annotations

import os
from functools import partial

import pytest

from loopbounds.workers import answer_all
from quoll.errors import InputError


def answers(count: int, workers: int, dies: int = -1) -> dict[int, int | None]:
    def question(index: int) -> int:
        if index == dies:
            os._exit(9)
        return index * index

    found: dict[int, int | None] = {}
    answer_all([partial(question, n) for n in range(count)], workers, found.__setitem__)
    return found


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_each_question_has_its_answer(count: int, workers: int) -> None:
    assert answers(count, workers) == {n: n * n for n in range(count)}


def test_a_worker_that_dies_answers_none() -> None:
    found = answers(4, 2, dies=1)
    assert set(found) == {0, 1, 2, 3}
    assert found[1] is None
    assert all(answer in (None, n * n) for n, answer in found.items())


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_arrive_as_they_are(workers: int) -> None:
    def wrong() -> int:
        raise InputError("this is wrong", where="here", hint="do that")

    with pytest.raises(InputError, match=r"^here: this is wrong \(do that\)$"):
        answer_all([wrong, wrong], workers, lambda index, answer: None)
