"""Independent questions in worker processes, with progress.

Workers are forked, so that terms stay interned, and end with this process. A worker that dies takes
away the answer to the question that it has, and no other (rule 38): another one takes its place.
The SMT solver runs in workers, not here, so that whatever becomes of it harms one question. Their
memory and their processor time for a question are limited.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Generic, TypeVar

from quoll.processes.children import die_with, fork

__all__ = ["Limit", "Work", "answer_all"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Worker:
    """A process, and where it is asked and answers."""

    process: int
    connection: Connection


@dataclass(frozen=True, slots=True)
class Limit:
    """What a worker may use, far above what its questions do: beyond it something is wrong."""

    seconds: int  # of processor time for one question
    memory: int  # bytes of address space, more than it has when it begins


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """Questions, whose answers can be pickled, and what is answered where a worker dies, and why.

    ``done(index, answer)`` is called as each is answered.
    """

    questions: Sequence[Callable[[], T]]
    lost: Callable[[str], T]
    done: Callable[[int, T], None]


def answer_all(work: Work[T], workers: int, limit: Limit) -> None:
    """Answer all questions; 0 workers: in this process. Raises what a question raises."""
    questions, done = work.questions, work.done
    count = min(workers, len(questions))
    if not count:
        for index, question in enumerate(questions):
            done(index, question())
        return
    pending = list(range(len(questions)))[::-1]
    with _pool() as pool:
        asked: dict[Connection, tuple[Worker, int]] = {}
        while pending or asked:
            while pending and len(asked) < count:
                free = [w for w in pool if w.connection not in asked]
                worker = free[0] if free else _begun(questions, limit, pool)
                index = pending.pop()
                if worker is None and asked:
                    pending.append(index)  # no process can be made now
                    break
                if worker is None:
                    done(index, questions[index]())
                else:
                    asked[worker.connection] = worker, index
                    with suppress(OSError):  # of a worker that has just died: it answers nothing
                        worker.connection.send(index)
            for connection in wait(list(asked)):
                assert isinstance(connection, Connection)
                worker, index = asked.pop(connection)
                done(index, _answer(worker, pool, work))


@contextmanager
def _pool() -> Iterator[list[Worker]]:
    """Workers that have ended when this is left, whatever they are about."""
    pool: list[Worker] = []
    try:
        yield pool
    finally:
        for worker in list(pool):
            _end(worker, pool)


def _begun(questions: Sequence[Callable[[], T]], limit: Limit, pool: list[Worker]) -> Worker | None:
    """A new worker; None where no process can be made."""
    here = os.getpid()
    ours, theirs = Pipe()
    try:
        child = fork()
    except OSError:
        ours.close()
        theirs.close()
        return None
    if child:
        theirs.close()
        worker = Worker(child, ours)
        pool.append(worker)
        return worker
    with suppress(BaseException):
        die_with(here)
        for other in pool:
            other.connection.close()
        ours.close()
        _limit_to(resource.RLIMIT_AS, _address_space() + limit.memory)
        while True:
            question = questions[theirs.recv()]
            used = resource.getrusage(resource.RUSAGE_SELF)
            _limit_to(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + limit.seconds)
            theirs.send(_said(question))
    os._exit(0)


def _limit_to(what: int, wanted: int) -> None:
    """A limit of this process: not more than it may be."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(
        what, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
    )


def _address_space() -> int:
    """Bytes of this process."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _said(question: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return question(), None
    except Exception as error:  # a defect, to be raised where it is seen
        return None, error


def _answer(worker: Worker, pool: list[Worker], work: Work[T]) -> T:
    """What a worker says. Raises what it raised."""
    try:
        answer, error = worker.connection.recv()
    except (EOFError, OSError):
        return work.lost(f"a worker process {_end(worker, pool)}")
    if error is not None:
        assert isinstance(error, Exception)
        raise error
    found: T = answer
    return found


def _end(worker: Worker, pool: list[Worker]) -> str:
    """End a worker; how it had ended by itself."""
    pool.remove(worker)
    worker.connection.close()
    with suppress(ProcessLookupError):
        os.kill(worker.process, signal.SIGKILL)
    _, status = os.waitpid(worker.process, 0)
    number = os.waitstatus_to_exitcode(status)
    return f"was killed by signal {-number}" if number < 0 else "died"
