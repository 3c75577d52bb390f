"""What tests need built: made on demand, once at a time, never stale."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def make(folder: str) -> None:
    """Runs ``make`` in a folder of the checkout; does nothing when all is up to date.

    The lock keeps test processes that run at the same time from building the same files.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "--silent", "--no-print-directory", "-C", folder],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, f"make -C {folder} failed:\n{done.stdout}{done.stderr}"


def recorder() -> Path:
    """The QEMU plugin that records executions."""
    make("kernels/recorder")
    return ROOT / "build" / "recorder" / "librecorder.so"


def kernel() -> Path:
    """The kernel for KZM, the one that ``make analyse`` analyses."""
    make("kernels/bilby")
    return ROOT / "build" / "bilby" / "kzm-after" / "kernel.elf"
