"""Independent pieces of work, spread over the processors.

Processes are forked, so that they see everything made so far without a copy; only their results
travel. A process that fails is of no consequence: its share is done here.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

__all__ = ["begun", "spread"]

T = TypeVar("T")


def spread(work: Callable[[int], T], weights: Sequence[int], worth: int) -> list[T]:
    """``work(i)`` for the index of each weight; in one process if they sum to less than ``worth``.

    ``work`` must not depend on what it has done for other indices. Results are pickled.
    """
    shares = _shares(weights, _processors() if sum(weights) >= worth else 1)
    others = [(_forked(work, share), share) for share in shares[1:]]
    results = {index: work(index) for index in shares[0]}
    for pipe, share in others:
        found: dict[int, T] | None = None if pipe is None else _received(*pipe)
        results.update(found if found is not None else {index: work(index) for index in share})
    return [results[index] for index in range(len(weights))]


def begun(work: Callable[[], T]) -> Callable[[], T]:
    """``work()``, done in another process while this one goes on, if there is a processor for it.

    What is returned waits for the result, which is pickled; it must be called once. In a process
    that was forked meanwhile it does the work.
    """
    here = os.getpid()
    pipe = _forked(lambda _: work(), [0]) if _processors() > 1 else None

    def finished() -> T:
        found: dict[int, T] | None = None
        if pipe is not None and os.getpid() == here:
            found = _received(*pipe)
        return work() if found is None else found[0]

    return finished


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _shares(weights: Sequence[int], count: int) -> list[list[int]]:
    """Indices of about equal weight for each of ``count``: the heaviest first."""
    shares: list[list[int]] = [[] for _ in range(count)]
    totals = [0] * count
    for index in sorted(range(len(weights)), key=lambda i: -weights[i]):
        least = totals.index(min(totals))
        shares[least].append(index)
        totals[least] += weights[index]
    return [share for share in shares if share] or [[]]


def _forked(work: Callable[[int], T], share: Sequence[int]) -> tuple[int, int] | None:
    """A process that does ``share``: its number and where its results are read; None without."""
    reader, writer = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return None
    if child:
        os.close(writer)
        return child, reader
    status = 1
    with suppress(BaseException):
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump({index: work(index) for index in share}, pipe)
        status = 0
    os._exit(status)


def _received(child: int, reader: int) -> dict[int, T] | None:
    """What the process has found; None if it failed."""
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        return None
    found: dict[int, T] = pickle.loads(content)
    return found
