"""Tasks on real workers: none is lost when a worker or the scheduler ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from quoll.errors import ResourceError, UsageError
from wcet.sweep import cluster
from wcet.sweep.cluster import Outcome, ResultFolder, run_tasks
from wcet.sweep.task import OtherVersion, Task, execute, version

pytestmark = pytest.mark.slow("starts schedulers and workers of Dask")
ROOT = Path(__file__).parents[3]
MANY = 150  # tasks; one takes some 10 ms
TASKS = "tests.testing.wcet.sweep_tasks"


class Cluster:
    """A scheduler and two workers, each a process of its own, as on several machines."""

    def __init__(self, running: ExitStack, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self._running, self._folder = running, folder
        self.scheduler = self.start_scheduler()
        self.killed = self.start_worker()
        self.start_worker()

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        port = self.address.rpartition(":")[2]
        return self._start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")

    def start_worker(self) -> subprocess.Popen[bytes]:
        folder = ("--local-directory", str(self._folder))
        one = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60")
        return self._start("worker", self.address, *one, *folder)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self._running.callback(process.wait)
        self._running.callback(process.kill)
        return process


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as running:
        yield Cluster(running, tmp_path_factory.mktemp("cluster"))


def tasks(function: str, count: int) -> list[Task]:
    return [Task(str(n), f"{TASKS}:{function}", n) for n in range(count)]


def silent(task: Task, outcome: Outcome, dashboard: str) -> None:
    pass


def test_many_tasks_survive_the_end_of_a_worker(two_workers: Cluster, tmp_path: Path) -> None:
    ended: list[str] = []

    def report(task: Task, outcome: Outcome, dashboard: str) -> None:
        ended.append(task.name)
        if len(ended) == MANY // 10:
            two_workers.killed.send_signal(signal.SIGKILL)

    folder = ResultFolder(tmp_path / "results")
    wanted = tasks("double_slowly", MANY)
    outcomes = run_tasks(wanted, folder, report, scheduler=two_workers.address)
    assert outcomes == [Outcome(2 * n) for n in range(MANY)]
    assert sorted(ended, key=int) == [task.name for task in wanted]
    two_workers.start_worker()
    ended.clear()
    assert run_tasks(wanted, folder, report, scheduler="tcp://127.0.0.1:1") == outcomes
    assert not ended  # stored: no scheduler is asked


def test_a_task_starts_when_another_one_has_ended(two_workers: Cluster, tmp_path: Path) -> None:
    """Also if that one was stored; each is given once."""
    given: list[tuple[str, Outcome]] = []

    def then(task: Task, outcome: Outcome) -> list[Task]:
        given.append((task.name, outcome))
        more = Task(f"{task.name} again", f"{TASKS}:double", outcome.result)
        return [more] if len(task.name) == 1 else []

    folder = ResultFolder(tmp_path / "results")
    wanted, ended = tasks("double_slowly", 8), list[str]()
    for _ in range(2):
        found = run_tasks(
            wanted,
            folder,
            lambda task, *_: ended.append(task.name),
            then=then,
            scheduler=two_workers.address,
        )
        assert found == [Outcome(2 * n) for n in range(8)]
        assert dict(given) == {f"{n}": Outcome(2 * n) for n in range(8)} | {
            f"{n} again": Outcome(4 * n) for n in range(8)
        }
        assert len(given) == 16
        given.clear()
    assert len(ended) == 16  # all in the first run


def test_an_important_task_starts_before_others_that_wait(
    two_workers: Cluster, tmp_path: Path
) -> None:
    ended: list[str] = []
    important = Task("important", f"{TASKS}:double_slowly", MANY, priority=1)
    run_tasks(
        [*tasks("double_slowly", MANY), important],
        ResultFolder(tmp_path / "results"),
        lambda task, *_: ended.append(task.name),
        scheduler=two_workers.address,
    )
    assert ended.index("important") < MANY // 2


def test_tasks_survive_the_end_of_the_scheduler(two_workers: Cluster, tmp_path: Path) -> None:
    ended = 0

    def report(task: Task, outcome: Outcome, dashboard: str) -> None:
        nonlocal ended
        ended += 1
        if ended == 20:
            two_workers.scheduler.send_signal(signal.SIGKILL)
            two_workers.scheduler.wait()
            threading.Thread(target=restart).start()

    def restart() -> None:
        time.sleep(0.5)
        two_workers.start_scheduler()
        two_workers.start_worker()  # workers end with the scheduler that they had

    folder = ResultFolder(tmp_path / "results")
    found = run_tasks(tasks("double_slowly", MANY), folder, report, scheduler=two_workers.address)
    assert found == [Outcome(2 * n) for n in range(MANY)]
    assert ended == MANY


def test_failures_are_reported_and_tried_again(two_workers: Cluster, tmp_path: Path) -> None:
    two_workers.start_worker()  # one more than the task below ends
    folder = ResultFolder(tmp_path / "results")
    seen = {"seen": str(tmp_path / "seen")}
    wanted = [
        Task("a", f"{TASKS}:fail", "no such kernel"),
        Task("b", f"{TASKS}:end_the_worker_once", seen),
        *tasks("double", 1),
    ]
    failed, survived, fine = run_tasks(wanted, folder, silent, scheduler=two_workers.address)
    assert failed == Outcome(None, "ValueError: no such kernel")
    assert survived == Outcome("survived")
    assert fine == Outcome(0)
    again: list[str] = []
    run_tasks(wanted, folder, lambda t, *_: again.append(t.name), scheduler=two_workers.address)
    assert again == ["a"]


def test_a_damaged_result_is_computed_again(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    folder.put("k", [1, 2])
    assert folder.get("k") == Outcome([1, 2])
    (tmp_path / "k.json").write_text((tmp_path / "k.json").read_text()[:-3])
    assert folder.get("k") is None
    (tmp_path / "other.json").write_text('{"key": "k", "result": 1}')
    assert folder.get("other") is None


def test_a_version_names_the_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NuSMV, other bounds are proved."""
    here = version()
    monkeypatch.setattr("wcet.sweep.task.programs", lambda: (("NuSMV", "absent"),))
    assert version() != here


def test_a_worker_of_another_version_computes_nothing() -> None:
    assert execute(f"{TASKS}:double", 4, version()) == 8
    with pytest.raises(OtherVersion):
        execute(f"{TASKS}:double", 4, "another")


def test_each_input_of_a_task_is_in_its_key() -> None:
    keys = {
        Task("a", f"{TASKS}:double", 1).key("1"),
        Task("a", f"{TASKS}:double", 2).key("1"),
        Task("a", f"{TASKS}:fail", 1).key("1"),
        Task("a", f"{TASKS}:double", 1).key("2"),
    }
    assert len(keys) == 4
    assert Task("b", f"{TASKS}:double", 1).key("1") in keys


def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    monkeypatch.setattr(cluster, "PAUSE", 0.1)
    folder = ResultFolder(tmp_path)
    with pytest.raises(ResourceError, match="no scheduler answers at tcp://"):
        run_tasks(tasks("double", 1), folder, silent, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="is no address"):
        run_tasks(tasks("double", 1), folder, silent, scheduler="nonsense://x")
