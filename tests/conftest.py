"""Settings that every test shares, and what the shipped kernel executes, recorded once."""

import ctypes
import fcntl
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.testing.harness import qemu

# The same examples on every run: a failure is a fact, not luck. No deadline,
# because two test processes share two cores with whatever else runs.
settings.register_profile("quoll", derandomize=True, deadline=None)
settings.load_profile("quoll")


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of every kernel execution of the user-level test suite.

    One process makes it for all of a test run.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path = folder / "tests.trace"
    with (folder / "tests.trace.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            partial = folder / "tests.trace.partial"
            qemu.record(partial)
            partial.rename(path)
    return path


@pytest.fixture(scope="module", autouse=True)
def _memory_returned() -> Iterator[None]:
    """The system gets back what a module has freed: each proof is a fork, slow from gigabytes."""
    yield
    gc.collect()  # the command seldom does
    ctypes.CDLL("libc.so.6").malloc_trim(0)
