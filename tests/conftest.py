"""Settings that every test shares, and what the shipped kernel executes, recorded once."""

import fcntl
import os
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
