"""Stores of recordings against objects of their own, by every address of an object."""

from __future__ import annotations

import numpy as np
import pytest

from quoll.assumptions import S1, S8
from quoll.image.image import Image
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from quoll.recordings.follow import RefutedFact
from quoll.recordings.own_objects import refuse_hits
from quoll.recordings.trace import End, Execution, Trace
from tests.testing.quoll.building import address, build

LOW, AGAIN = 0x10000, 0x20000
ASSUMED = (S1.of(), S8.of(object="w"))
PROGRAM = """
    .text
    .global main
    .type main, %function
main:
    str r0, [r1]
    strb r0, [r2]
    bx lr
"""


@pytest.fixture(scope="module")
def image() -> Image:
    """Two words "w", the first of which the first instruction stores to; memory has two names."""
    regions = [
        MemoryRegion(name, low, low + 0xFFF, RegionKind.CACHED, LOW, fixed=True)
        for name, low in (("ram", LOW), ("again", AGAIN))
    ]
    loaded = Image.load(build(PROGRAM, language="asm")).mapped(MemoryMap(tuple(regions)))
    words = {(LOW, LOW + 3): "w", (LOW + 4, LOW + 7): "w", (LOW + 8, LOW + 11): "other"}
    return loaded.owning(words, {address(loaded, "main"): LOW})


def trace(image: Image, *stores: tuple[int, int, int]) -> Trace:
    """One execution with an access for each index, address and size."""
    main = address(image, "main")
    pcs = memoryview(np.array([main, main + 4, main + 8], np.uint32).tobytes()).cast("I")
    words = np.array([(i, at, size | 1 << 8) for i, at, size in stores], np.uint32).reshape(-1, 3)
    return Trace(0, 0, 0, (Execution(pcs, words, End.OUTSIDE),))


@pytest.mark.parametrize(
    "stores",
    [
        (),
        ((0, LOW, 4), (0, AGAIN, 4), (0, LOW, 1)),
        ((1, LOW - 1, 1), (1, LOW + 8, 4), (1, LOW + 12, 1), (1, AGAIN - 4, 4)),
        ((0, LOW + 8, 4),),
    ],
)
def test_stores_that_hit_nothing_else(
    image: Image, stores: tuple[tuple[int, int, int], ...]
) -> None:
    refuse_hits(image, ASSUMED, trace(image, *stores), "t")


@pytest.mark.parametrize(
    ("index", "at", "size"),
    [
        (0, LOW + 4, 4),
        (0, AGAIN + 4, 4),
        (1, LOW, 1),
        (1, LOW + 3, 1),
        (1, AGAIN + 7, 1),
        (1, LOW - 2, 4),
        (1, LOW - 4, 32),
    ],
)
def test_hits(image: Image, index: int, at: int, size: int) -> None:
    with pytest.raises(RefutedFact, match=f"stores to {at:#x} <w>"):
        refuse_hits(image, ASSUMED, trace(image, (index, at, size)), "t")


def test_loads_and_assumptions_that_are_not_made(image: Image) -> None:
    hit = trace(image, (1, LOW, 4))
    refuse_hits(image, ASSUMED[:1], hit, "t")
    (execution,) = hit.executions
    loads = execution.access_words & np.uint32(0xFFFFFEFF)
    refuse_hits(
        image, ASSUMED, Trace(0, 0, 0, (Execution(execution.pcs, loads, End.OUTSIDE),)), "t"
    )
