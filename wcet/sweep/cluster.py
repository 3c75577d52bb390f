"""Tasks on a Dask cluster: processes of this machine, or the workers of a scheduler.

A result is stored as soon as it is there, under the content of its task. A task whose result is
stored is not executed again, so a sweep that was stopped goes on where it ended. A task of a worker
that ends is executed by another one; a task that three workers did not survive fails. When the
scheduler ends, this waits for another one at the same address, and submits the rest.

Tasks of equal priority start in their order. A task that needs results of others is submitted when
these are there, and goes before tasks of lower priority that wait.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quoll.errors import ResourceError, UsageError
from wcet.sweep.task import Json, Task, execute, version

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Outcome", "ResultFolder", "run_tasks"]

PATIENCE = 60.0  # seconds to wait for a scheduler
PAUSE = 1.0  # seconds between attempts
# Dask keeps tasks of one prefix in a queue of the scheduler, if they are many. A worker then gets a
# task when it is idle, so that none waits behind a long one.
PREFIX = "task-"
ONE_EACH = {"distributed.scheduler.worker-saturation": 1.0}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a task, or the text of its failure; one of them is None."""

    result: Json
    failure: str | None = None


class ResultFolder:
    """Results of tasks by key, each in a file that appears complete."""

    def __init__(self, folder: Path) -> None:
        """Make the folder. Raises UsageError if that is not possible."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from error

    def get(self, key: str) -> Outcome | None:
        """The stored result; None without one, or if its file is damaged."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            stored = json.loads((self._folder / f"{key}.json").read_bytes())
            if stored["key"] == key:
                return Outcome(stored["result"])
        return None

    def put(self, key: str, result: Json) -> None:
        """Store a result. Raises UsageError if the folder cannot be written."""
        target, temporary = self._folder / f"{key}.json", self._folder / f".{key}.{os.getpid()}"
        try:
            temporary.write_text(json.dumps({"key": key, "result": result}), encoding="utf-8")
            temporary.replace(target)
        except OSError as error:
            raise UsageError(f"cannot write {target}: {error.strerror}") from error


def no_more(task: Task, outcome: Outcome) -> Sequence[Task]:
    """Nothing follows a task."""
    return ()


def run_tasks(
    tasks: Sequence[Task],
    folder: ResultFolder,
    report: Callable[[Task, Outcome, str], None],
    *,
    then: Callable[[Task, Outcome], Iterable[Task]] = no_more,
    scheduler: str | None = None,
    workers: int | None = None,
) -> list[Outcome]:
    """The outcome of each task, in their order, however the workers finish.

    ``report`` is called for each task that ends now, with the address of the dashboard. ``then``
    is called once for each task, ended now or stored, and gives the tasks that only waited for it;
    their outcomes it gets, too. Failures are not stored: another run tries again. ``workers``:
    processes of this machine if no scheduler is named (default: one a processor). Raises UsageError
    if Dask is missing, and ResourceError if no scheduler answers.
    """
    wanted = version()
    keys = [task.key(wanted) for task in tasks]
    done: dict[str, Outcome] = {}
    left: dict[str, Task] = {}

    def add(more: Iterable[Task]) -> None:
        """``more``, and all that follows those whose results are stored."""
        waiting = deque(more)
        while waiting:
            task = waiting.popleft()
            key = task.key(wanted)
            if key in done or key in left:
                continue
            stored = folder.get(key)
            if stored is None:
                left[key] = task
            else:
                done[key] = stored
                waiting.extend(then(task, stored))

    add(tasks)
    while left:
        with _client(scheduler, workers) as client:
            for key, outcome in _outcomes(client, left, wanted):
                if outcome.failure is None:
                    folder.put(key, outcome.result)
                done[key] = outcome
                task = left.pop(key)
                report(task, outcome, client.dashboard_link)
                add(then(task, outcome))
        if left and scheduler is None:
            raise ResourceError("the scheduler of this machine ended before the sweep")
    return [done[key] for key in keys]


def _outcomes(
    client: Client, tasks: Mapping[str, Task], wanted: str
) -> Iterator[tuple[str, Outcome]]:
    """Outcomes as they come; ends early when the scheduler is lost.

    ``tasks`` may grow in between.
    """
    from distributed import as_completed

    submitted: dict[str, str] = {}  # name on the scheduler -> key
    running = as_completed(loop=client.loop)

    def submit() -> None:
        for key, task in tasks.items():
            name = PREFIX + key
            if name not in submitted:
                submitted[name] = key
                call = (execute, task.function, task.argument, wanted)
                running.add(client.submit(*call, key=name, priority=task.priority))

    submit()
    for future in running:
        try:
            outcome = _outcome(future)
        except (CancelledError, OSError):  # the scheduler or the connection to it is gone
            return
        yield submitted[str(future.key)], outcome
        future.release()
        submit()


def _outcome(future: Future) -> Outcome:
    if future.status == "error":
        error = future.exception()
        return Outcome(None, f"{type(error).__name__}: {error}")
    return Outcome(future.result())


@contextmanager
def _client(scheduler: str | None, workers: int | None) -> Iterator[Client]:
    try:
        from dask import config
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise UsageError(
            "a sweep needs Dask, which is not installed", hint="pip install 'quoll[sweep]'"
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it reports each lost connection
    if scheduler is None:
        with (
            config.set(ONE_EACH),
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as local,
            Client(local) as client,
        ):
            yield client
        return
    end = time.monotonic() + PATIENCE
    while True:
        try:
            client = Client(scheduler, timeout=PAUSE)
            break
        except (OSError, TimeoutError, ValueError) as error:
            if isinstance(error, ValueError):
                raise UsageError(f"--scheduler {scheduler} is no address: {error}") from error
            if time.monotonic() > end:
                raise ResourceError(
                    f"no scheduler answers at {scheduler} within {PATIENCE:.0f} seconds",
                    hint="start one with 'dask scheduler', and workers with 'dask worker ADDRESS'",
                ) from error
            time.sleep(PAUSE)
    with client:
        yield client
