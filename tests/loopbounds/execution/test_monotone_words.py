"""Words that grow or fall in a nest: totals by their range, and none if they may wrap."""

from __future__ import annotations

from random import Random

import pytest

from campaigns.moved_words import compare, fields
from loopbounds.execution.monotone_words import MonotoneWord, monotone_words
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from quoll.semantics.ops import general
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.counting import Program, load
from tests.testing.loopbounds.moved_words import MEMORY, moved_words
from tests.testing.quoll.building import build

HEAD = """.syntax unified
.global main
.type main, %function
main: mov r1, #0; mov r2, #9; mov r4, sp
"""
BASE = 0x60000000
SPILLED = "add r1, r1, #2; str r1, [r5]; ldr r1, [r5]"
PAIR = "and r3, r0, #4; add r3, sp, r3; stm r3, {r0, r2}"
FREED = "add sp, r4, #0; add r1, r1, #2"
# The inner loop moves r1; the outer one adds its own change.
NEST = "1: {outer}\n2: {inner}; cmp r0, r1; bhi 2b\nsubs r2, r2, #1; bne 1b; bx lr\n"


@pytest.mark.parametrize(
    ("back", "entry", "step", "width", "total"),
    [(1, 0, 1, 20, 20 + 7), (4, 0, 4, 21, 5 + 7), (1, 1, 1, 20, 21), (4, 2, 4, 20, 11)],
)
def test_a_range_limits_the_total(back: int, entry: int, step: int, width: int, total: int) -> None:
    word = MonotoneWord(general(1), 0, back, entry, step)
    assert word.total(width, entries=7, executed=1000) == total


def test_a_word_that_may_wrap_limits_nothing() -> None:
    word = MonotoneWord(general(1), 0, back=1, entry=1, step=1 << 24)
    assert word.total(20, entries=7, executed=255) == 21
    assert word.total(20, entries=7, executed=256) is None


@pytest.mark.parametrize(
    ("inner", "outer", "changes"),
    [
        ("add r1, r1, #2", "nop", (2, 2)),
        ("add r1, r1, #2", "add r1, r1, #1", (2, 3)),
        ("sub r1, r1, #2", "sub r1, r1, #1", (2, 3)),
        ("add r1, r1, #2", "sub r1, r1, #3", None),  # it goes back
        ("add r1, r1, #2", "mov r1, #0", None),
        ("add r1, r1, #2; cmp r0, #3; movhi r1, #0", "nop", None),
        ("cmp r0, #3; addhi r1, r1, #2", "nop", None),  # it may stay
        ("cmp r0, #3; addhi r1, r1, #2; addls r1, r1, #1", "nop", None),  # both may be left out
        ("mov r3, r1; add r1, r3, #2", "nop", (2, 2)),
        ("push {r1}; ldr r3, [sp]; add sp, sp, #4; add r1, r3, #2", "nop", (2, 2)),
        ("push {r1}; str r0, [sp]; ldr r3, [sp]; add sp, sp, #4; add r1, r3, #2", "nop", None),
        ("strb r0, [sp, #-4]; ldr r3, [sp, #-4]; add r1, r3, #2", "str r1, [sp, #-4]", None),
        ("push {r0, r1}; ldr r3, [sp, #4]; add sp, sp, #8; add r1, r3, #2", "nop", (2, 2)),
        ("push {r0, r1}; ldr r3, [sp]; add sp, sp, #8; add r1, r3, #2", "nop", None),
        ("push {r1}; str r0, [sp, #-2]; pop {r1}; add r1, r1, #2", "nop", None),
        ("push {r1}; str r0, [sp, #2]; pop {r1}; add r1, r1, #2", "nop", None),
        ("push {r1}; strh r0, [sp, #-1]; pop {r1}; add r1, r1, #2", "nop", None),
        ("push {r1}; str r0, [r5]; pop {r1}; add r1, r1, #2", "nop", None),
        ("push {r1}; mcr p15, 0, r3, c7, c6, 1; pop {r1}; add r1, r1, #2", "nop", None),
        (f"sub sp, sp, #12; str r1, [sp, #8]; {PAIR}; ldr r1, [sp, #8]; {FREED}", "nop", None),
        (f"sub sp, sp, #16; str r1, [sp, #12]; {PAIR}; ldr r1, [sp, #12]; {FREED}", "nop", None),
        ("mov r1, r3; add r1, r1, #2", "nop", None),  # it depends on another word
        ("cmp r0, #3; movhi r1, r3; add r1, r1, #2", "nop", None),
        ("mov r3, r1; add r1, r2, #2; mov r2, r3", "nop", None),  # the words change places
        ("cmp r0, #3; addhi r1, r1, #2; addhi r1, r1, #3; add r1, r1, #1", "nop", (1, 1)),
        ("push {r1}; mov r5, sp; ldrex r3, [r5]; pop {r1}; add r1, r3, #2", "nop", (2, 2)),
        ("push {r0}; strex r3, r1, [sp]; pop {r1}; add r1, r1, #2", "nop", None),  # it may fail
        ("push {r0}; swp r3, r1, [sp]; pop {r1}; add r1, r1, #2", "nop", (2, 2)),
    ],
)
def test_changes_of_a_register(inner: str, outer: str, changes: tuple[int, int] | None) -> None:
    code = load(build(HEAD + NEST.format(inner=inner, outer=outer), language="asm"))
    [loop] = [loop for loop in code.graph.loops if loop.parent is not None]
    found = monotone_words(code.graph, code.image, code.values, loop, {})
    words = [(w.back, w.entry) for w in found if w.location == general(1)]
    assert words == ([] if changes is None else [changes])


@pytest.mark.parametrize(
    ("kind", "moves"), [(RegionKind.CACHED, True), (RegionKind.DEVICE, False), (None, False)]
)
def test_a_word_of_a_device_is_not_as_it_was_stored(kind: RegionKind | None, moves: bool) -> None:
    source = HEAD + "ldr r5, =0x60000000\n" + NEST.format(inner=SPILLED, outer="nop") + ".ltorg"
    regions = [] if kind is None else [MemoryRegion("", BASE, BASE + 99, kind, BASE, fixed=True)]
    code = Program(build(source, language="asm"), "main", memory=MemoryMap(tuple(regions)))
    [loop] = [loop for loop in code.graph.loops if loop.parent is not None]
    found = monotone_words(code.graph, code.image, code.values, loop, {})
    assert bool([w for w in found if w.location == general(1)]) is moves


@pytest.mark.parametrize("seed", range(cases(2)))
def test_no_execution_of_a_random_nest_counts_more(seed: int) -> None:
    """Positions in registers and in memory, which stores of all widths hit (the campaign)."""
    random = Random(f"moved words {seed}")
    elf = build(moved_words(random, 8), language="asm", cpu="cortex-a8")
    for number in range(8):
        _, broken = compare(Program(elf, f"f{number}", memory=MEMORY), random)
        assert not broken


@pytest.mark.parametrize("seed", range(cases(4)))
def test_no_execution_of_random_structures_counts_more(seed: int) -> None:
    """A cursor and its size, in globals and in a frame, as compilers access them."""
    random = Random(f"moved fields {seed}")
    _, broken = compare(fields(random), random)
    assert not broken
