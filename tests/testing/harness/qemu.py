"""Runs kernels in QEMU, with a time limit, and records their executions."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

from quoll.image.image import Image
from tests.testing.harness import build

# Far more than any run needs; a kernel that hangs must not hang the tests. The
# kernel's own script has a limit, which has to be the one that strikes.
SECONDS = 30 + float(os.environ.get("BILBY_TIMEOUT", "120"))

# One instruction takes 1 ns of virtual time, so that every run is the same.
KZM = [
    *["qemu-system-arm", "-M", "kzm", "-nographic", "-no-reboot"],
    *["-icount", "shift=0,sleep=off"],
    *["-semihosting-config", "enable=on,target=native,userspace=on"],
]


def run(command: list[str], seconds: float = SECONDS) -> CompletedProcess[str]:
    """The output of a finished command, both streams together.

    At the time limit the command and its children are killed, and the test fails.
    """
    with subprocess.Popen(
        command,
        cwd=build.ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise AssertionError(f"{command[0]} ran over {seconds} s:\n{output}") from None
    return CompletedProcess(command, process.returncode, output, "")


def plugin(trace: Path, **options: int) -> list[str]:
    """QEMU's arguments to record into ``trace``; options as in ``kernels/recorder/recorder.c``."""
    numbers = "".join(f",{name}={number}" for name, number in options.items())
    return ["-plugin", f"{_escaped(build.recorder())},out={_escaped(trace)}{numbers}"]


def _escaped(path: Path) -> str:
    """QEMU takes a comma as the end of an option, and two as one comma."""
    return str(path).replace(",", ",,")


def run_elf(elf: Path, trace: Path | None = None, **options: int) -> CompletedProcess[str]:
    """Runs a bare-metal program on the KZM board until it ends QEMU itself."""
    recording = plugin(trace, **options) if trace else []
    return run([*KZM, "-kernel", str(elf), *recording])


def run_bilby(
    build_name: str = "kzm-after",
    program: str = "tests",
    trace: Path | None = None,
    *arguments: str,
    **options: int,
) -> CompletedProcess[str]:
    """Boots the kernel with a user-level program, and records it when given a file.

    ``arguments`` are QEMU's, ``options`` the recorder's.
    """
    build.kernel(build_name, "kernel.elf", "kernel.facts", f"{program}.elf")
    recording = plugin(trace, **options) if trace else []
    return run([str(build.ROOT / "kernels/bilby/run"), build_name, program, *arguments, *recording])


def preemption_starts(image: Image) -> frozenset[int]:
    """Where a preemption point goes on because nothing is pending (rule 21)."""
    names = (n for n in image.symbols.names() if n.startswith("preemption_start_"))
    return frozenset(s.addr for s in map(image.symbol, names) if s is not None)


def record(
    trace: Path,
    build_name: str = "kzm-after",
    program: str = "tests",
    *arguments: str,
    **options: int,
) -> str:
    """Record the kernel's executions into ``trace`` while the program runs; returns its output."""
    done = run_bilby(build_name, program, trace, *arguments, **options)
    assert done.returncode == 0, f"{program} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout
