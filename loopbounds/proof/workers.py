"""Independent queries in worker processes, with progress.

Workers are forked, so that terms stay interned, and end with this process. A worker that dies loses
the result of one query, and no other (rule 38): another worker takes its place.
The SMT solver runs in workers, not here, so that its crash harms one query. Memory
and processor time of a worker are limited for each query.
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

__all__ = ["ParallelTasks", "WorkerLimits", "run_all"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A worker process, and the connection that takes queries and gives results."""

    process: int
    connection: Connection


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of a worker, far above the needs of its queries: beyond them something is wrong."""

    seconds: int  # of processor time for one query
    memory: int  # bytes of address space, more than it has when it begins


@dataclass(frozen=True, slots=True)
class ParallelTasks(Generic[T]):
    """Queries with results that can be pickled; ``lost(why)``: the result where a worker dies.

    ``done(index, result)`` is called as each query ends.
    """

    queries: Sequence[Callable[[], T]]
    lost: Callable[[str], T]
    done: Callable[[int, T], None]


def run_all(work: ParallelTasks[T], workers: int, limit: WorkerLimits) -> None:
    """Run all queries; 0 workers: in this process. Raises the exceptions of the queries."""
    queries, done = work.queries, work.done
    count = min(workers, len(queries))
    if not count:
        for index, query in enumerate(queries):
            done(index, query())
        return
    pending = list(range(len(queries)))[::-1]
    with _pool() as pool:
        busy: dict[Connection, tuple[WorkerProcess, int]] = {}
        while pending or busy:
            while pending and len(busy) < count:
                free = [w for w in pool if w.connection not in busy]
                worker = free[0] if free else _forked(queries, limit, pool)
                index = pending.pop()
                if worker is None and busy:
                    pending.append(index)  # no process can be made now
                    break
                if worker is None:
                    done(index, queries[index]())
                else:
                    busy[worker.connection] = worker, index
                    with suppress(OSError):  # of a worker that has just died: it has no result
                        worker.connection.send(index)
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                worker, index = busy.pop(connection)
                done(index, _result_of(worker, pool, work))


@contextmanager
def _pool() -> Iterator[list[WorkerProcess]]:
    """Workers, ended when this is left, in the middle of a query or not."""
    pool: list[WorkerProcess] = []
    try:
        yield pool
    finally:
        for worker in list(pool):
            _end(worker, pool)


def _forked(
    queries: Sequence[Callable[[], T]], limit: WorkerLimits, pool: list[WorkerProcess]
) -> WorkerProcess | None:
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
        worker = WorkerProcess(child, ours)
        pool.append(worker)
        return worker
    with suppress(BaseException):
        die_with(here)
        for other in pool:
            other.connection.close()
        ours.close()
        _limit_to(resource.RLIMIT_AS, _address_space() + limit.memory)
        while True:
            query = queries[theirs.recv()]
            used = resource.getrusage(resource.RUSAGE_SELF)
            _limit_to(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + limit.seconds)
            theirs.send(_outcome(query))
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


def _outcome(query: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return query(), None
    except Exception as error:  # a defect, to be raised where it is seen
        return None, error


def _result_of(worker: WorkerProcess, pool: list[WorkerProcess], work: ParallelTasks[T]) -> T:
    """The result of a worker. Raises its exception."""
    try:
        result, error = worker.connection.recv()
    except (EOFError, OSError):
        return work.lost(f"a worker process {_end(worker, pool)}")
    if error is not None:
        assert isinstance(error, Exception)
        raise error
    found: T = result
    return found


def _end(worker: WorkerProcess, pool: list[WorkerProcess]) -> str:
    """End a worker; how it had ended by itself."""
    pool.remove(worker)
    worker.connection.close()
    with suppress(ProcessLookupError):
        os.kill(worker.process, signal.SIGKILL)
    _, status = os.waitpid(worker.process, 0)
    number = os.waitstatus_to_exitcode(status)
    return f"was killed by signal {-number}" if number < 0 else "died"
