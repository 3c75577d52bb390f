"""Independent pieces of work, spread over the processors.

Processes are forked, so that they see everything made so far without a copy; only their results
travel. A process that fails is of no consequence: its share is done here. None outlives this one.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection, Pipe
from typing import Any, Generic, TypeVar

from quoll.processes.children import die_with, fork

__all__ = ["Begun", "Beside", "ahead", "begun", "beside", "meanwhile", "spread"]

PORTIONS = 32  # of the work of one process, at least, unless single pieces are more
MOST = 64  # processes; then the numbers of all portions fit into a pipe, which holds 64 KiB
NUMBER = 2  # bytes
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


def spread(work: Callable[[int], T], weights: Sequence[int], worth: int) -> list[T]:
    """``work(i)`` for the index of each weight; in one process if they sum to less than ``worth``.

    ``work`` must not depend on what it has done for other indices. Results are pickled. Each
    process begins with one of the heaviest portions; who has finished takes the next.
    """
    count = min(_processors(), MOST) if sum(weights) >= worth else 1
    portions = _portions(weights, count)
    if count == 1:
        return [work(index) for index in range(len(weights))]
    rest = _numbers(range(count, len(portions)))

    def share(first: int) -> dict[int, T]:
        taken = chain(range(first, min(first + 1, len(portions))), _taken(rest))
        return {index: work(index) for number in taken for index in portions[number]}

    others = [_forked(partial(share, first)) for first in range(1, min(count, len(portions)))]
    try:
        results = share(0)
    except BaseException:
        for pipe in others:
            if pipe:
                _give_up(*pipe)
        raise
    finally:
        os.close(rest)
    for pipe in others:
        results.update((_received(*pipe) if pipe else None) or {})
    return [results[i] if i in results else work(i) for i in range(len(weights))]


@contextmanager
def ahead(
    first: Callable[[int], A],
    then: Callable[[int, A, B], T],
    weights: Sequence[int],
    worth: int,
) -> Iterator[Callable[[B], list[T]]]:
    """Work in two steps, the second of which needs what this process finds meanwhile.

    Inside, other processes do ``first(i)`` for indices of ``weights``. What is yielded is called
    once, with what was found: it joins in, and returns ``then(i, first(i), found)`` for all of
    them. As in ``spread`` no work may depend on other indices, what was found and the results are
    pickled, and with less than ``worth`` in all there is no other process.
    """
    count = min(_processors(), MOST) if sum(weights) >= worth else 1
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
        results = {index: then(index, one, found) for index, one in waiting}
        return results | {index: then(index, first(index), found) for index in taken()}

    def finished(found: B) -> list[T]:
        for _, telling in others:
            with suppress(OSError):  # it has died
                telling.send(found)
        results = {index: then(index, first(index), found) for index in taken()}
        while others:
            pipe, telling = others.pop()
            results.update((_received(*pipe) if pipe else None) or {})
            telling.close()
        missing = (i for i in range(len(weights)) if i not in results)
        results |= {i: then(i, first(i), found) for i in missing}
        return [results[i] for i in range(len(weights))]

    others: list[tuple[tuple[int, int] | None, Connection]] = []
    try:
        for _ in range(min(count - 1, len(portions))):
            told, telling = Pipe(duplex=False)
            others.append((_forked(partial(share, told)), telling))
            told.close()
        yield finished
    finally:
        os.close(rest)
        for pipe, telling in others:
            telling.close()
            if pipe:
                _give_up(*pipe)


class Begun(Generic[T]):
    """Work that another process does, and whose result may be waited for once: see ``begun``."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work, self._here = work, os.getpid()
        self._pipe = _forked(lambda: [work()]) if _processors() > 1 else None

    def __call__(self) -> T:
        """The result."""
        pipe, self._pipe = self._pipe, None
        found = _received(*pipe) if pipe is not None and os.getpid() == self._here else None
        return self._work() if found is None else found[0]

    def give_up(self) -> None:
        """End that process if nobody has waited for it."""
        if self._pipe is not None and os.getpid() == self._here:
            _give_up(*self._pipe)
        self._pipe = None


def begun(work: Callable[[], T]) -> Begun[T]:
    """``work()``, done in another process while this one goes on, if there is a processor for it.

    What is returned waits for the result, which is pickled; it must be called once, or given up. In
    a process that was forked meanwhile it does the work.
    """
    return Begun(work)


@contextmanager
def meanwhile(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """``work`` by another process, as ``begun`` does it, which ends with this block.

    What is yielded waits for the result. Who leaves without that gives the work up.
    """
    finished = begun(work)
    try:
        yield finished
    finally:
        finished.give_up()


class Beside(Generic[A, B]):
    """Who answers one question after another while this process goes on: see ``beside``."""

    def __init__(self, answer: Callable[[A], B]) -> None:
        self._work = answer
        self._asked: list[A] = []  # what is not answered here
        self.lines: tuple[Connection, Connection] | None = None  # to and from another process

    def ask(self, question: A) -> None:
        """Ask the next question."""
        self._asked.append(question)
        if self.lines is not None:
            with suppress(OSError):  # it has died
                self.lines[0].send(question)

    def answer(self) -> B:
        """The answer to the last question, which may be asked for once."""
        if self.lines is not None:
            with suppress(OSError, EOFError):
                found: B = self.lines[1].recv()
                return found
            self.lines = None
        answers = [self._work(question) for question in self._asked]
        self._asked.clear()
        return answers[-1]


@contextmanager
def beside(answer: Callable[[A], B], *, worth: bool) -> Iterator[Beside[A, B]]:
    """Another process that gives ``answer(question)``, if there is a processor for it.

    Inside, each question is asked, and then its answer is asked for. ``answer`` may remember what
    it was asked before. Questions and answers are pickled. If the process fails, this one answers
    all questions that it was asked, in their order; it does so too if it is not ``worth`` another.
    """
    asked = Beside(answer)
    pipe: tuple[int, int] | None = None
    if worth and _processors() > 1:
        (told, telling), (hearing, saying) = Pipe(duplex=False), Pipe(duplex=False)

        def answering() -> None:
            telling.close()
            with suppress(EOFError):
                while True:
                    saying.send(answer(told.recv()))

        pipe = _forked(answering)
        told.close()
        saying.close()
        asked.lines = (telling, hearing) if pipe else None
    try:
        yield asked
    finally:
        if pipe is not None:
            telling.close()
            hearing.close()
            _give_up(*pipe)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _portions(weights: Sequence[int], count: int) -> list[list[int]]:
    """Indices in some portions for each of ``count``, the heaviest first; light ones share one."""
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
    """A pipe from which all processes that have it take ``numbers``, each of them once."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(b"".join(number.to_bytes(NUMBER) for number in numbers))
    return reader


def _taken(reader: int) -> Iterator[int]:
    while number := os.read(reader, NUMBER):
        yield int.from_bytes(number)


def _forked(work: Callable[[], object]) -> tuple[int, int] | None:
    """A process that does ``work``: its number and where its result is read; None without."""
    here = os.getpid()
    reader, writer = os.pipe()
    try:
        child = fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return None
    if child:
        os.close(writer)
        return child, reader
    status = 1
    with suppress(BaseException):
        die_with(here)
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(work(), pipe)
        status = 0
    os._exit(status)


def _received(child: int, reader: int) -> Any:
    """What the process has found; None if it failed."""
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    return None if status else pickle.loads(content)


def _give_up(child: int, reader: int) -> None:
    """End a process whose result is not wanted any more."""
    os.close(reader)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
