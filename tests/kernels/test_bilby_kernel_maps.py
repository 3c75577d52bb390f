# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's mappings, copied step by step (`kernel_maps_preemptible.c`), in the host build.

What another thread finds between two attempts is written into memory here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernels.fuzz.host import Host, program, running
from tests.kernels.fuzz.run import symbols
from tests.kernels.spec.layout import API, LIMITS, message

REGION = 0xB0800000  # of the second untyped capability (check/host/board.h)
SLOT = 16
DIRECTORY_BYTES = 32768
KERNEL_PART = 4 * (4096 - LIMITS["KERNEL_DESCRIPTORS"])
STEP = 4 * LIMITS["KERNEL_DESCRIPTORS"] // LIMITS["KERNEL_MAPS_STEPS"]
FREE = API["ROOT_FREE"]
OK = 0


class Region:
    """One untyped region, and what is made of it."""

    def __init__(self, host: Host, table: dict[str, int]) -> None:
        self.host = host
        self.thread = host.syscall(API["SYS_YIELD"], [0] * 6).current
        self.buffer = host.word(self.thread + 112)
        self.word = host.word(table["root_slots"]) + SLOT * (API["ROOT_UNTYPED"] + 1) + 4
        self.directory = table["kernel_directory"]

    def invoke(self, cap: int, label: int, words: list[int], extra: list[int]) -> int:
        writes = {self.buffer + 4 * (1 + i): words[i] for i in range(4, len(words))}
        writes |= {self.buffer + 4 * (122 + i): cap for i, cap in enumerate(extra)}
        registers = [cap, message(len(words), len(extra), 0, label), *(words + [0] * 4)[:4]]
        self.host.syscall(API["SYS_CALL"], registers, True, writes)
        return self.host.word(self.thread + 4) >> 12

    def retype(self, kind: str, slot: int) -> int:
        words = [API[f"TYPE_{kind}"], 0, 0, 0, FREE + slot, 1]
        return self.invoke(API["ROOT_UNTYPED"] + 1, API["LABEL_UNTYPED_RETYPE"], words, [1])

    def delete(self, slot: int) -> int:
        return self.invoke(1, API["LABEL_CNODE_DELETE"], [FREE + slot, 32], [])

    @property
    def copied(self) -> int:
        return self.host.word(self.word) >> 5 & 15

    @property
    def free(self) -> int:
        return self.host.word(self.word) >> 9 << 4

    def begin(self, steps: int, *, really: bool = True) -> int:
        """As a preempted retype leaves it; the directory's address."""
        base = REGION + -(-self.free // DIRECTORY_BYTES) * DIRECTORY_BYTES
        for at in range(KERNEL_PART, KERNEL_PART + steps * STEP, 4):
            if really:
                self.host.write(base + at, self.host.word(self.directory + at))
        self.host.write(self.word, self.host.word(self.word) | steps << 5)
        return base

    def kernel_part(self, base: int) -> list[int]:
        return self.host.words(base + KERNEL_PART, LIMITS["KERNEL_DESCRIPTORS"])


@pytest.fixture(scope="module")
def shared() -> Iterator[Host]:
    with running(program("latency")) as host:
        yield host


@pytest.fixture
def region(shared: Host) -> Region:
    shared.reset()
    return Region(shared, symbols(program("latency")))


@pytest.mark.parametrize("steps", [0, 1, 8, 15])
def test_the_same_directory_goes_on(region: Region, steps: int) -> None:
    base = region.begin(steps)
    assert region.retype("PAGE_DIRECTORY", 0) == OK
    assert region.kernel_part(base) == region.kernel_part(region.directory)
    assert region.copied == 0


def test_what_was_copied_is_not_copied_again(region: Region) -> None:
    base = region.begin(7, really=False)
    with pytest.raises(AssertionError, match="V4"):  # the check finds what is missing
        region.retype("PAGE_DIRECTORY", 0)
    assert base == REGION


@pytest.mark.parametrize("steps", [1, 15])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_another_object_finds_zero(region: Region, steps: int, before: int) -> None:
    for slot in range(before):
        assert region.retype("ENDPOINT", slot) == OK
    base = region.begin(steps)
    assert region.retype("FRAME_4K", 8) == OK
    assert region.copied == 0
    assert not any(region.kernel_part(base))


@pytest.mark.parametrize("steps", [1, 15])
def test_a_directory_elsewhere_leaves_nothing(region: Region, steps: int) -> None:
    """Nothing is left of the region when it goes on, so all of it is cleared first."""
    assert region.retype("ENDPOINT", 0) == OK
    begun = region.begin(steps)
    assert region.delete(0) == OK
    assert region.retype("PAGE_DIRECTORY", 1) == OK
    assert begun == REGION + DIRECTORY_BYTES
    assert not any(region.kernel_part(begun))
    assert region.kernel_part(REGION) == region.kernel_part(region.directory)
    assert region.free == DIRECTORY_BYTES
