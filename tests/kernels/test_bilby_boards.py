# SPDX-License-Identifier: BSD-2-Clause
"""Regions of devices: given away and retained by boards."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.testing.bilby.build import BILBY

PAGE = 4096
NAMES = ("INTERRUPTS_PAGE", "TICK_PAGE", "UART_BASE", "TIMER_BASE")
MEMORY = {"kzm": (0x80000000, 0x90000000), "cubieboard": (0x40000000, 0x60000000)}  # with aliases
LARGEST, MOST = 26, 32  # include/limits.h
BRIDGES = {  # megabytes of which every unused page is given away
    "kzm": (0x43F00000, 0x53F00000),
    "cubieboard": (0x01C00000,),
}


CONTEXTS = "-DTIME_CONTEXTS"  # the kernel has a clock, too


def of(board: str, *defines: str) -> tuple[list[tuple[int, int]], set[int]]:
    """First byte and size of each region, in bits; and pages that are used otherwise."""
    names = NAMES + (("CLOCK_PAGE",) if CONTEXTS in defines else ())
    text = f'#include "board.h"\nregions DEVICE_REGIONS\nused {" ".join(names)}\n'
    gcc = ["gcc", "-E", "-P", "-xc", *defines, f"-I{BILBY / 'boards' / board}", "-"]
    told = subprocess.run(gcc, input=text, capture_output=True, text=True, check=True).stdout
    table, pages = told.split("regions", 1)[1].split("used", 1)
    found = re.findall(r"\{ (0x[0-9a-f]+), (\d+) \}", table)
    regions = [(int(base, 16), int(bits)) for base, bits in found]
    return regions, {int(page, 16) for page in re.findall(r"0x[0-9a-f]+", pages)}


@pytest.mark.parametrize("defines", [(), (CONTEXTS,)])
@pytest.mark.parametrize("board", MEMORY)
def test_regions_are_aligned_and_apart(board: str, defines: tuple[str, ...]) -> None:
    regions, _ = of(board, *defines)
    assert 0 < len(regions) <= MOST
    low, high = MEMORY[board]
    previous = 0
    for base, bits in regions:
        assert 12 <= bits <= LARGEST
        assert base % (1 << bits) == 0
        assert base >= previous, f"{base:#x} overlaps the one before"
        previous = base + (1 << bits)
        assert previous <= low or base >= high, f"{base:#x} is memory"


@pytest.mark.parametrize("defines", [(), (CONTEXTS,)])
@pytest.mark.parametrize("board", MEMORY)
def test_all_of_a_bridge_is_given_but_for_what_is_used(
    board: str, defines: tuple[str, ...]
) -> None:
    """No page of the kernel's, and none that is given as a frame."""
    regions, used = of(board, *defines)
    given = {page for base, bits in regions for page in range(base, base + (1 << bits), PAGE)}
    assert used
    assert not given & used
    for bridge in BRIDGES[board]:
        assert set(range(bridge, bridge + (1 << 20), PAGE)) - given == {
            page for page in used if bridge <= page < bridge + (1 << 20)
        }
