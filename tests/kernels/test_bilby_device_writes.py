# SPDX-License-Identifier: BSD-2-Clause
"""Boot's writes to interrupt controllers and timers equal the stated ones, on each board."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testing.bilby.build import BILBY
from tests.testing.bilby.device_writes import other_writes
from tests.testing.bilby.operations import MACHINES
from tests.testing.harness import build

WRONG = [
    ("kzm", "interrupts.h", "AVIC_REGISTER(AVIC_INTENABLEH) = 0;", ";"),
    ("kzm", "interrupts.h", "AVIC_REGISTER(AVIC_NIVECSR) >> 16", "AVIC_REGISTER(AVIC_NIVECSR)"),
    ("cubieboard", "tick.h", "TICK_REGISTER(TICK_ENABLE) = 2;", "TICK_REGISTER(TICK_ENABLE) = 3;"),
    ("cubieboard", "interrupts.h", "return IRQ_LINES;", ";"),
]


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """Their generated headers are there."""
    for board in MACHINES:
        build.kernel(f"{board}-after", "kernel.elf")


@pytest.fixture(autouse=True)
def cores_given_back() -> Iterator[None]:
    """Each of Unicorn's takes 1 GiB of addresses, which processes of later tests would inherit."""
    yield
    gc.collect()


@pytest.mark.parametrize("board", MACHINES)
def test_devices_are_used_as_stated(board: str, tmp_path: Path) -> None:
    assert not other_writes(board, BILBY, tmp_path)


@pytest.mark.parametrize(("board", "file", "old", "new"), WRONG)
def test_what_is_done_otherwise_is_told(
    board: str, file: str, old: str, new: str, tmp_path: Path
) -> None:
    copy = tmp_path / "bilby"
    for part in ("boards", "machine", "include"):
        shutil.copytree(BILBY / part, copy / part)
    place = copy / "boards" / board / file
    text = place.read_text(encoding="utf-8")
    assert old in text
    place.write_text(text.replace(old, new), encoding="utf-8")
    told = other_writes(board, copy, tmp_path)
    assert told
    assert all("; stated is " in line for line in told)
