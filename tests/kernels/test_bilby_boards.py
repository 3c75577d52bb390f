# SPDX-License-Identifier: BSD-2-Clause
"""Regions of devices: what boards give away, and what they keep."""

from __future__ import annotations

import re

import pytest

from tests.testing.bilby.build import BILBY

PAGE = 4096
NAMES = ("INTERRUPTS_PAGE", "TICK_PAGE", "UART_BASE", "TIMER_BASE")
MEMORY = {"kzm": (0x80000000, 0x90000000), "cubieboard": (0x40000000, 0x60000000)}  # with aliases
LARGEST, MOST = 26, 32  # include/limits.h
BRIDGES = {  # of whose megabytes every page is given away, but for those that are used
    "kzm": (0x43F00000, 0x53F00000),
    "cubieboard": (0x01C00000,),
}


def of(board: str) -> tuple[list[tuple[int, int]], set[int]]:
    """First byte and size of each region, in bits; and pages that are used otherwise."""
    text = (BILBY / "boards" / board / "board.h").read_text(encoding="utf-8")
    table = text.split("#define DEVICE_REGIONS", 1)[1]
    found = re.findall(r"\{ (0x[0-9a-f]+), (\d+) \}", table)
    used = re.findall(rf"^#define (?:{'|'.join(NAMES)}) +(0x[0-9a-f]+)", text, re.M)
    return [(int(base, 16), int(bits)) for base, bits in found], {int(page, 16) for page in used}


@pytest.mark.parametrize("board", MEMORY)
def test_regions_are_aligned_and_apart(board: str) -> None:
    regions, _ = of(board)
    assert 0 < len(regions) <= MOST
    low, high = MEMORY[board]
    previous = 0
    for base, bits in regions:
        assert 12 <= bits <= LARGEST
        assert base % (1 << bits) == 0
        assert base >= previous, f"{base:#x} overlaps the one before"
        previous = base + (1 << bits)
        assert previous <= low or base >= high, f"{base:#x} is memory"


@pytest.mark.parametrize("board", MEMORY)
def test_all_of_a_bridge_is_given_but_for_what_is_used(board: str) -> None:
    """No page of the kernel's, and none that is given as a frame."""
    regions, used = of(board)
    given = {page for base, bits in regions for page in range(base, base + (1 << bits), PAGE)}
    assert used
    assert not given & used
    for bridge in BRIDGES[board]:
        assert set(range(bridge, bridge + (1 << 20), PAGE)) - given == {
            page for page in used if bridge <= page < bridge + (1 << 20)
        }
