"""A function mapped over indices by all processors.

Forked processes see the current memory without a copy; only their results are pickled. A process
takes portions of indices from a pipe. This process recomputes the portions of a failed process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from quoll.processes.futures import ForkedCall, processors

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["parallel_map", "two_step_map"]

PORTIONS = 32  # least number of portions per process, unless single indices are larger
MOST = 64  # processes; then the numbers of all portions fit into a pipe, which holds 64 KiB
NUMBER = 2  # bytes
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


def parallel_map(function: Callable[[int], T], weights: Sequence[int], worth: int) -> list[T]:
    """``function(i)`` for the index of each weight; in this process alone if their sum is small.

    It is small below ``worth``. ``function`` must not depend on its calls for other indices.
    Results are pickled. Each process begins with one of the heaviest portions; a process that has
    finished takes the next.
    """
    count = _processes(weights, worth)
    if count == 1:
        return [function(index) for index in range(len(weights))]
    portions = _portions(weights, count)
    rest = _numbers(range(count, len(portions)))

    def share(first: int) -> dict[int, T]:
        taken = chain(range(first, min(first + 1, len(portions))), _taken(rest))
        return {index: function(index) for number in taken for index in portions[number]}

    others = [ForkedCall(partial(share, n)) for n in range(1, min(count, len(portions)))]
    try:
        results = share(0)
        for other in others:
            results.update(other.result() or {})
    finally:
        os.close(rest)
        for other in others:
            other.cancel()
    return [results[i] if i in results else function(i) for i in range(len(weights))]


@contextmanager
def two_step_map(
    first: Callable[[int], A],
    second: Callable[[int, A, B], T],
    weights: Sequence[int],
    worth: int,
) -> Iterator[Callable[[B], list[T]]]:
    """A map in two steps; the second uses a result of this process from during the first step.

    Inside, other processes call ``first(i)`` for indices of ``weights``. The yielded function is
    called once, with the result ``found``: it takes part, and returns ``second(i, first(i),
    found)`` for all indices. As in ``parallel_map``, no call may depend on calls for other indices,
    ``found`` and the results are pickled, and below ``worth`` there is no other process.
    """
    count = _processes(weights, worth)
    portions = _portions(weights, count)
    rest = _numbers(range(len(portions)))

    def taken() -> Iterator[int]:
        return (index for number in _taken(rest) for index in portions[number])

    def share(told: Connection) -> dict[int, T]:
        waiting: list[tuple[int, A]] = []
        for index in taken():
            waiting.append((index, first(index)))
            if told.poll():
                break
        found: B = told.recv()
        results = {index: second(index, one, found) for index, one in waiting}
        return results | {index: second(index, first(index), found) for index in taken()}

    def finished(found: B) -> list[T]:
        for _, telling in others:
            with suppress(OSError):  # it has died
                telling.send(found)
        results = {index: second(index, first(index), found) for index in taken()}
        for other, _ in others:
            results.update(other.result() or {})
        missing = (i for i in range(len(weights)) if i not in results)
        results |= {i: second(i, first(i), found) for i in missing}
        return [results[i] for i in range(len(weights))]

    from multiprocessing.connection import Pipe  # loading takes 15 ms

    others: list[tuple[ForkedCall[dict[int, T]], Connection]] = []
    try:
        for _ in range(min(count - 1, len(portions))):
            told, telling = Pipe(duplex=False)
            others.append((ForkedCall(partial(share, told)), telling))
            told.close()
        yield finished
    finally:
        os.close(rest)
        for other, telling in others:
            telling.close()
            other.cancel()


def _processes(weights: Sequence[int], worth: int) -> int:
    return min(processors(), MOST) if sum(weights) >= worth else 1


def _portions(weights: Sequence[int], count: int) -> list[list[int]]:
    """The indices in portions for ``count`` processes, heaviest first; light ones are grouped."""
    enough = (sum(weights) + len(weights)) // (count * PORTIONS)
    portions: list[list[int]] = []
    filled = enough
    for index in sorted(range(len(weights)), key=lambda i: -weights[i]):
        if filled >= enough:
            portions.append([])
            filled = 0
        portions[-1].append(index)
        filled += weights[index] + 1
    return portions


def _numbers(numbers: Iterable[int]) -> int:
    """A pipe from which all processes that inherit it take ``numbers``, each exactly once."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(b"".join(number.to_bytes(NUMBER) for number in numbers))
    return reader


def _taken(reader: int) -> Iterator[int]:
    while number := os.read(reader, NUMBER):
        yield int.from_bytes(number)
