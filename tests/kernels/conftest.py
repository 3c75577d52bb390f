# SPDX-License-Identifier: BSD-2-Clause
"""The kernel that most tests look at, built once by one test process at a time."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.testing.bilby.build import BILBY, BUILD, make
from tests.testing.bilby.listing import CODE, Function, disassemble, merge_labels


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.slow("builds a kernel; most run it in QEMU or on the host"))


@pytest.fixture(scope="session")
def build() -> Path:
    """The build folder, up to date; made by one test process at a time."""
    BUILD.parent.mkdir(parents=True, exist_ok=True)
    with (BUILD.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(BILBY)
    return BUILD


@pytest.fixture(scope="session")
def functions(build: Path) -> list[Function]:
    return merge_labels(disassemble(build / "kernel.elf", CODE))
