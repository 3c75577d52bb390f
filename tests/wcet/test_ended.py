"""Nothing of a run remains when it has ended, however it ended: no process, no folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from quoll.processes.children import Died, TimedOut, apart, run
from tests.testing.harness.cases import spread
from tests.testing.quoll.building import build

pytestmark = pytest.mark.usefixtures("all_processors")

LOOPS = """volatile unsigned sink;
int fixed(void) { for (int i = 0; i < 37; i++) sink = i; return 0; }
int masked(unsigned n) { for (unsigned i = 0; i < (n & 8191); i++) sink = i; return 0; }
int third(unsigned n) { for (unsigned i = 0; i < (n & 15); i += 3) sink = i; return 0; }
int main(unsigned n) { return fixed() + masked(n) + third(n); }
"""
FLAGS = ("-fno-inline", "-fno-ipa-cp", "-fno-unroll-loops")
SOON = 30.0  # seconds in which the kernel ends the remaining processes; others sleep for 1000


def alive(mark: str) -> list[int]:
    """Processes with ``mark`` in their environment that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            marked = mark.encode() in (folder / "environ").read_bytes()
            ended = (folder / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            continue
        if marked and not ended:
            found.append(int(folder.name))
    return found


def gone(mark: str) -> bool:
    deadline = time.monotonic() + SOON
    while alive(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(mark)


def as_from_a_terminal() -> None:
    """Heed every signal again: under ``nohup``, or in the background, some are ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Started:
    """A run in an environment of its own: ``mark`` names its temporary folder."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.temporary, self.began = folder / "temporary", folder / "began"
        self.temporary.mkdir()
        solver = folder / "NuSMV"
        solver.write_text(f"#!/bin/sh\necho $$ >>{self.began}\nsleep 1000 & wait\n")
        solver.chmod(0o755)
        self.mark = str(self.temporary)
        environment = {
            **os.environ,
            "TMPDIR": self.mark,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PATH": f"{folder}:{os.environ['PATH']}",
        }
        self.errors = folder / "errors"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                env=environment,
                stderr=errors,
                preexec_fn=as_from_a_terminal,
            )

    def wait_for_solvers(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.began.exists() and len(self.began.read_text().split()) >= count:
                return
            time.sleep(0.02)
        raise AssertionError("no solver was started")

    def end(self) -> None:
        """And all that it should have ended."""
        self.process.kill()
        self.process.wait()
        for process in alive(self.mark):
            os.kill(process, signal.SIGKILL)

    def left(self) -> list[Path]:
        return list(self.temporary.iterdir())


@pytest.fixture
def analysis(tmp_path: Path) -> Iterator[Started]:
    """One that waits for solvers, which hang."""
    elf = build(LOOPS, *FLAGS, link=("-Wl,-Ttext=0xf0010000",))
    started = Started(
        tmp_path, ["-m", "wcet.cli", "loops", str(elf), "--entry", "main", "--checker", "nusmv"]
    )
    yield started
    started.end()


@pytest.mark.slow("starts and ends whole runs")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_run_that_waits_for_solvers(analysis: Started, number: signal.Signals) -> None:
    """Workers of a killed run slept on, its solvers ran on, and their folders stayed."""
    analysis.wait_for_solvers(1)
    assert len(alive(analysis.mark)) > 2
    analysis.process.send_signal(number)
    analysis.process.wait(timeout=60)
    errors = analysis.errors.read_text()
    assert gone(analysis.mark)
    assert not analysis.left()
    if number is signal.SIGKILL:
        assert analysis.process.returncode == -signal.SIGKILL
    else:
        assert analysis.process.returncode == 128 + number
        assert len([line for line in errors.splitlines() if "no output was written" in line]) == 1
        assert "Traceback" not in errors


@pytest.mark.slow("starts and ends whole runs")
@pytest.mark.parametrize(
    ("number", "seconds"), spread(product((signal.SIGKILL, signal.SIGTERM), (0.2, 0.6, 1.5)), 3)
)
def test_a_run_at_any_moment(analysis: Started, number: signal.Signals, seconds: float) -> None:
    time.sleep(seconds)
    analysis.process.send_signal(number)
    analysis.process.wait(timeout=60)
    assert gone(analysis.mark)
    assert not analysis.left()


FORKED = """
import os, time
from quoll.processes.futures import submit
from quoll.processes.parallel_map import parallel_map
os.sched_getaffinity = lambda _: {0, 1, 2}
future = submit(lambda: time.sleep(1000))
open(os.environ["TMPDIR"] + "/../began", "w").write("1")
parallel_map(lambda _: time.sleep(1000), [1] * 3, 0)
"""


ASKED = """
import os, time
from loopbounds.proof.workers import ParallelTasks, WorkerLimits, run_all
open(os.environ["TMPDIR"] + "/../began", "w").write("1")
work = ParallelTasks([lambda: time.sleep(1000)] * 4, print, print)
run_all(work, 3, WorkerLimits(seconds=1000, memory=1 << 30))
"""


@pytest.mark.parametrize("script", [FORKED, ASKED])
def test_forked_processes_end_with_their_parent(tmp_path: Path, script: str) -> None:
    """The workers of value analysis, cache analysis, line tables and proofs end."""
    started = Started(tmp_path, ["-c", script])
    started.wait_for_solvers(1)
    deadline = time.monotonic() + 60
    while len(alive(started.mark)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(alive(started.mark)) >= 3
    started.process.kill()
    started.process.wait()
    nothing = gone(started.mark)
    started.end()
    assert nothing


@pytest.mark.slow("starts and ends whole runs")
def test_a_program_that_hangs_is_ended_with_its_own() -> None:
    """A shell that waits for a program of its own: killing the shell alone left the pipe open."""
    begun = time.monotonic()
    ended = run(["/bin/sh", "-c", "echo said; sleep 1000 & wait"], seconds=1)
    assert (ended.status, ended.output) == (None, "said\n")
    assert time.monotonic() - begun < 60  # the shell's child sleeps for 1000
    ended = run(["/bin/sh", "-c", "while :; do :; done"], seconds=1, most=2)
    assert ended.status is None
    assert run(["/bin/sh", "-c", "exit 3"], seconds=None).status == 3


@pytest.mark.slow("starts and ends whole runs")
def test_work_in_a_process_of_its_own() -> None:
    assert apart(lambda: 5, 60) == 5
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0, 60)
    with pytest.raises(TimedOut):
        apart(lambda: time.sleep(1000), 0.2)
    with pytest.raises(Died, match="signal 11"):
        apart(lambda: os.kill(os.getpid(), signal.SIGSEGV), 60)


def test_a_signal_in_the_hooks_of_a_fork_is_not_lost() -> None:
    """An interrupted run went on, with a traceback: ``logging`` has such a hook.

    A time limit that ended during a fork left the forked process, which computed on.
    """
    program = (
        "import os, signal\n"
        "from quoll.processes.children import fork\n"
        "here = os.getpid()\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # tests may ignore it
        "def hook():\n"
        "    os.kill(here, signal.SIGINT)\n"
        "    for _ in range(1000): pass\n"
        "os.register_at_fork(after_in_parent=hook)\n"
        "try:\n"
        "    child = fork()\n"
        "    os._exit(3 if child else 0)\n"
        "except KeyboardInterrupt:\n"
        "    try:\n"
        "        os.waitpid(-1, os.WNOHANG)\n"
        "    except ChildProcessError:\n"
        "        os._exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (7, b"")
