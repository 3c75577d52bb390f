"""Independent queries in worker processes, with progress.

Workers are forked, so that terms stay interned, and exit with this process. A worker that dies
loses the result of one query only (rule 38): another worker takes its place. The SMT solver runs in
workers, not here, so that its crash harms one query. Memory and processor time of a worker are
limited for each query.
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
    """A worker process with the connection for queries and results."""

    process: int
    connection: Connection


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of a worker, far above the needs of its queries: only a defect exceeds them."""

    seconds: int  # of processor time for one query
    memory: int  # bytes of address space beyond its size at the start


@dataclass(frozen=True, slots=True)
class ParallelTasks(Generic[T]):
    """Queries with picklable results; ``lost(why)``: the result for a query whose worker died.

    ``done(index, result)`` is called whenever a query finishes.
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
                    pending.append(index)  # no process can be forked now
                    break
                if worker is None:
                    done(index, queries[index]())
                else:
                    busy[worker.connection] = worker, index
                    with suppress(OSError):  # the worker has just died: it has no result
                        worker.connection.send(index)
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                worker, index = busy.pop(connection)
                done(index, _result_of(worker, pool, work))


@contextmanager
def _pool() -> Iterator[list[WorkerProcess]]:
    """Workers, which are killed on exit, also in the middle of a query."""
    pool: list[WorkerProcess] = []
    try:
        yield pool
    finally:
        for worker in list(pool):
            _end(worker, pool)


def _forked(
    queries: Sequence[Callable[[], T]], limit: WorkerLimits, pool: list[WorkerProcess]
) -> WorkerProcess | None:
    """A new worker; None where no process can be forked."""
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
    """Set a resource limit of this process, at most to its hard limit."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(
        what, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
    )


def _address_space() -> int:
    """The size of this process's address space in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _outcome(query: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return query(), None
    except Exception as error:  # a defect, raised again in the parent process
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
    """Kill a worker; the way in which it had already died."""
    pool.remove(worker)
    worker.connection.close()
    with suppress(ProcessLookupError):
        os.kill(worker.process, signal.SIGKILL)
    _, status = os.waitpid(worker.process, 0)
    number = os.waitstatus_to_exitcode(status)
    return f"was killed by signal {-number}" if number < 0 else "died"
