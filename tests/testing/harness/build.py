"""Build products for tests: made on demand, one process at a time, never stale."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ENTRIES = ("syscall", "undefined", "prefetch-abort", "data-abort", "interrupt")  # of a kernel


def make(folder: str, *arguments: str) -> None:
    """Runs ``make`` in a folder of the checkout; does nothing when all is up to date.

    The lock keeps test processes that run at the same time from building the same files.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "--silent", "--no-print-directory", "-C", folder, *arguments]
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"


def recorder() -> Path:
    """The QEMU plugin that records executions."""
    make("kernels/recorder")
    return ROOT / "build" / "recorder" / "librecorder.so"


def kernel(name: str = "kzm-after", *files: str, jobs: int = 1) -> Path:
    """The kernel of a build, ``BOARD-PRESET`` or ``BOARD-PRESET-PIN``; beside it, its programs.

    If ``files`` of the build are given, the others may be missing: programs take longer to compile
    than the kernel. ``jobs``: compilers that run at once.
    """
    board, preset, *pin = name.split("-")
    goals = [f"../../build/bilby/{name}/{file}" for file in files]
    variables = (f"BOARD={board}", f"PRESET={preset}", *(f"PIN={p}" for p in pin))
    at_once = (f"--jobs={jobs}",) if jobs > 1 else ()
    make("kernels/bilby", *at_once, *variables, *goals)
    return ROOT / "build" / "bilby" / name / "kernel.elf"
