# SPDX-License-Identifier: BSD-2-Clause
"""Boot's writes to caches and control registers, as a core executes them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.testing.bilby.boot_runs import wrong_boot, wrong_entries, wrong_locking
from tests.testing.bilby.outer_locking import wrong_outer_locking
from tests.testing.harness import build

KERNELS = build.ROOT / "build" / "bilby"
NOP = 0xE1A00000


def boot_of(machine: str) -> Callable[[Path], str]:
    return lambda elf: wrong_boot(elf, machine)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """All that is executed here is built."""
    for name in ("kzm-after", "cubieboard-after", "kzm-latency-l1", "kzm-latency-l2"):
        build.kernel(name, "kernel.elf")


@pytest.fixture(autouse=True)
def cores_given_back() -> Iterator[None]:
    """Each of Unicorn's takes 1 GiB of addresses, which processes of later tests would inherit."""
    yield
    gc.collect()


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        # mov, orr, tst of the revision, mcrne
        (
            "kzm-after",
            boot_of("arm1136"),
            [0xE3A00000, 0xE3833010, 0xE3833C02, 0xE310060F, 0x1E0D0F50, 0x1E0D0F70],
        ),
        ("cubieboard-after", boot_of("cortex-a8"), [0xE16F5F14, 0xE2577001, 0xE08320A3]),
        # ldr pc, b to itself, tst of a mode, ldr sp
        ("kzm-after", wrong_entries, [0xE59FF018, 0xEAFFFFFE, 0xE31D000F, 0xE59FD178]),
        ("kzm-latency-l1", wrong_locking, [0xEE071F3D, 0xEE071F3E]),  # fetch, evict
        # L1 is emptied; L2 set up, emptied, closed to instructions, locked for data and for both
        (
            "kzm-latency-l2",
            wrong_outer_locking,
            [0xEE074F1E, 0xE5803104, 0xE580577C, 0xE5805904, 0xE580C900, 0xE580C904],
        ),
    ],
)
def test_boot_leaves_nothing_out(
    name: str, wrong: Callable[[Path], str], words: list[int], tmp_path: Path
) -> None:
    """An omission is seen: one instruction is removed in the copies."""
    elf = KERNELS / name / "kernel.elf"
    assert not wrong(elf)
    for word in words:
        data = elf.read_bytes()
        assert word.to_bytes(4, "little") in data
        copy = tmp_path / "kernel.elf"
        copy.write_bytes(data.replace(word.to_bytes(4, "little"), NOP.to_bytes(4, "little")))
        assert wrong(copy), f"{word:#x}"
