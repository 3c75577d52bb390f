# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's mappings, copied step by step (`kernel_maps_preemptible.c`), in the host build.

The test writes into memory the state that another thread finds between two attempts.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernels.bilby.verification.fuzz.host import Host, program, running
from kernels.bilby.verification.fuzz.run import symbols
from tests.testing.bilby.region import DIRECTORY_BYTES, OK, REGION, Region


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
    with pytest.raises(AssertionError, match="V4"):  # the check finds the missing entry
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
