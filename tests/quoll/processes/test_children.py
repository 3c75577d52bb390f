"""Programs run by ``children.run``: their limits, their end, and their end with this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quoll.processes import children

BLOCKS = children.OUTPUT // children.BLOCK
FORKER = """
import sys
from quoll.processes import children
children._sets_death_signal = lambda: sys.argv[1] == "True"
children.run(["/bin/sh", "-c", "echo $$ > " + sys.argv[2] + "; exec sleep 60"], seconds=None)
"""


@pytest.fixture(params=[True, False], ids=["by setpriv", "by a fork"])
def guarded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    found: bool = request.param
    monkeypatch.setattr(children, "_sets_death_signal", lambda: found)
    return found


def test_setpriv_is_there() -> None:
    """Debian has it: forks of a large process would be slow."""
    assert children._guarded(["/bin/true"])


@pytest.mark.usefixtures("guarded")
def test_output_errors_status_and_limits() -> None:
    ended = children.run(["/bin/sh", "-c", "ulimit -c; ulimit -f; echo e >&2; exit 7"], seconds=9)
    assert ended == children.Ended(7, f"0\n{BLOCKS}\n", "e\n")


@pytest.mark.usefixtures("guarded")
def test_arguments_are_passed_as_they_are() -> None:
    words = ["", "a b", "$HOME", "'", "-n", "--"]
    ended = children.run(["/usr/bin/printf", "%s|", *words], seconds=9)
    assert ended.output == "".join(f"{word}|" for word in words)


@pytest.mark.parametrize(("program", "waits"), [("while :; do :; done", True), ("read x", False)])
def test_a_program_without_processor_time(program: str, waits: bool) -> None:
    """One that computes waits for its turn on a busy machine: before, it counted as one that hangs.

    The other one waits for a pipe.
    """
    command = ["/bin/sh", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0) as process:
        deadline = time.monotonic() + 60
        while children._progress(process.pid)[1] is not waits:
            assert time.monotonic() < deadline
        process.kill()


@pytest.mark.usefixtures("guarded")
def test_a_program_that_hangs() -> None:
    assert children.run(["/bin/sleep", "60"], seconds=1, most=60).status is None


@pytest.mark.usefixtures("guarded")
def test_the_signal_that_ended_a_program() -> None:
    ended = children.run(["/bin/sh", "-c", "kill -SEGV $$"], seconds=9)
    assert ended.status == -signal.SIGSEGV


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("content", [None, b"", b"true\n"])
def test_what_cannot_be_started_is_an_error(content: bytes | None, tmp_path: Path) -> None:
    program = tmp_path / "program"
    if content is not None:
        program.write_bytes(content)
        program.chmod(0o755 if content != b"true\n" else 0o644)
    with pytest.raises(OSError, match=str(program)):
        children.run([str(program)], seconds=9)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_program_ends_with_the_process_that_runs_it(guarded: bool, tmp_path: Path) -> None:
    started = tmp_path / "started"
    process = subprocess.Popen([sys.executable, "-c", FORKER, str(guarded), str(started)])
    while not (started.exists() and started.read_text()):
        time.sleep(0.01)
    program = int(started.read_text())
    os.kill(program, 0)
    process.kill()
    process.wait()
    for _ in range(500):
        if not Path(f"/proc/{program}/status").exists():
            return
        time.sleep(0.01)
    pytest.fail("it still runs")
