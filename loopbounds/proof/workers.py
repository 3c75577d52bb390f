"""Independent questions in worker processes, with progress.

Workers are forked, so that terms stay interned, and end with this process. A worker that dies takes
away the answer to the question that it has, and no other (rule 38): another one takes its place.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait

from loopbounds.proof.prove import ProofOutcome
from quoll.processes.children import die_with

__all__ = ["answer_all"]

Done = Callable[[int, ProofOutcome], None]
Question = Callable[[], ProofOutcome]


@dataclass(frozen=True, slots=True)
class Worker:
    """A process, and where it is asked and answers."""

    process: int
    connection: Connection


def answer_all(questions: Sequence[Question], workers: int, done: Done) -> None:
    """Call ``done(index, outcome)`` as each question is answered.

    One whose worker dies is answered "solver failed".
    """
    count = min(workers, len(questions))
    if count <= 1:
        for index, question in enumerate(questions):
            done(index, question().without_terms())
        return
    pending = list(range(len(questions)))[::-1]
    with _pool() as pool:
        asked: dict[Connection, tuple[Worker, int]] = {}
        while pending or asked:
            while pending and len(asked) < count:
                free = [w for w in pool if w.connection not in asked]
                worker = free[0] if free else _begun(questions, pool)
                index = pending.pop()
                if worker is None and asked:
                    pending.append(index)  # no process can be made now
                    break
                if worker is None:
                    done(index, questions[index]().without_terms())
                else:
                    asked[worker.connection] = worker, index
                    with suppress(OSError):  # of a worker that has just died: it answers nothing
                        worker.connection.send(index)
            for connection in wait(list(asked)):
                assert isinstance(connection, Connection)
                worker, index = asked.pop(connection)
                done(index, _answer(worker, pool))


@contextmanager
def _pool() -> Iterator[list[Worker]]:
    """Workers that have ended when this is left, whatever they are about."""
    pool: list[Worker] = []
    try:
        yield pool
    finally:
        for worker in list(pool):
            _end(worker, pool)


def _begun(questions: Sequence[Question], pool: list[Worker]) -> Worker | None:
    """A new worker; None where no process can be made."""
    here = os.getpid()
    ours, theirs = Pipe()
    try:
        child = os.fork()
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
        while True:
            theirs.send(_said(questions[theirs.recv()]))
    os._exit(0)


def _said(question: Question) -> ProofOutcome | Exception:
    """Without terms: they are interned in the process that made them."""
    try:
        return question().without_terms()
    except Exception as error:  # a defect, to be raised where it is seen
        return error


def _answer(worker: Worker, pool: list[Worker]) -> ProofOutcome:
    """What a worker says. Raises what it raised."""
    try:
        answer = worker.connection.recv()
    except (EOFError, OSError):
        why = _end(worker, pool)
        return ProofOutcome(None, 1, (), 0, f"a worker process {why}", "", 0.0)
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, ProofOutcome)
    return answer


def _end(worker: Worker, pool: list[Worker]) -> str:
    """End a worker; how it had ended by itself."""
    pool.remove(worker)
    worker.connection.close()
    with suppress(ProcessLookupError):
        os.kill(worker.process, signal.SIGKILL)
    _, status = os.waitpid(worker.process, 0)
    number = os.waitstatus_to_exitcode(status)
    return f"was killed by signal {-number}" if number < 0 else "died"
