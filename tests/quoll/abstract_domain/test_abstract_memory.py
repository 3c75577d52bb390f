"""Known words after a store: one row per kind of address."""

from __future__ import annotations

import pytest

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_memory import S1, S2, S3, S4
from quoll.abstract_domain.abstract_state import AbstractState, entry_state
from quoll.abstract_domain.compiled import compile_block
from quoll.abstract_domain.terms import BIAS, ENTRY_SP, MASK, RIGID, AnchoredTerm, Fact, Term
from quoll.abstract_domain.transfer import run
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.assumptions import Assumption
from quoll.image.image import Image
from quoll.intervals.strided_interval import ANY, ValueSet
from tests.testing.quoll.building import build
from tests.testing.values.concretes import KNOWN_STACK, constant

GLOBAL = 0x20010


def state_with(around: AnalysisEnvironment, pointer: Term | Fact) -> AbstractState:
    """r1 is the address stored to; sp is at entry - 16 with cells above and below it."""
    start = entry_state(around.names)
    facts: dict[int, Fact] = {}
    if isinstance(pointer, int):
        term = pointer
    else:
        symbol = around.names.of(-1, "pointer")
        facts[symbol] = pointer
        term = symbol << 32
    registers = list(start.registers)
    registers[0], registers[1] = 77, term
    registers[13] = frame(-16)
    frames = {frame(at): at & MASK for at in (-4, -8, -12, -16, -20)}
    return AbstractState(tuple(registers), frames, {GLOBAL: 1, GLOBAL + 4: 2}, {}, facts)


def frame(offset: int) -> int:
    return ENTRY_SP << 32 | offset & MASK


def stored(
    pointer: Term | Fact, code: str = "str r0, [r1]"
) -> tuple[set[int], set[int], set[Assumption]]:
    """The offsets of frame cells and the globals that keep their value, and the assumptions."""
    around = AnalysisEnvironment(constant, lambda addr: 0x20000 <= addr < 0x21000)
    around.stack(KNOWN_STACK)
    before = state_with(around, pointer)
    image = Image.load(
        build(f".syntax unified\n.text\n.global main\nmain: {code}\n", language="asm")
    )
    insns: list[Insn] = []
    at = 0x8000
    while (raw := image.read(at, 4)) and len(insns) < code.count("\n") + 1:
        insns.append(decode(raw, at, False))
        at += 4
    after = run(compile_block(insns), before, around, 1).fall
    assert after is not None
    frames = {
        (key & MASK) - (1 << 32)
        for key, cell in after.frames.items()
        if cell == before.frames.get(key)
    }
    kept = {key for key, cell in after.globals.items() if cell == before.globals.get(key)}
    return frames, kept, around.used


LIVE = {-4, -8, -12, -16}
ALL = {*LIVE, -20}
BOTH = {GLOBAL, GLOBAL + 4}
ARRAY = ValueSet(BIAS - 12, BIAS - 8, 4)


@pytest.mark.parametrize(
    ("pointer", "frames", "kept", "used"),
    [
        (frame(-8), ALL - {-8}, set(), set()),
        (frame(-10), ALL - {-8, -12}, set(), set()),
        (GLOBAL, LIVE, {GLOBAL + 4}, {S4}),
        (0x1234_0000, LIVE, BOTH, {S4}),
        (ANY, LIVE, set(), {S1, S2}),
        (ValueSet(GLOBAL + 4, GLOBAL + 400, 4), LIVE, {GLOBAL}, {S1, S2}),
        (ValueSet(0x100, 0x200, 4), LIVE, BOTH, {S1, S2}),
        (
            AnchoredTerm(ENTRY_SP, ValueSet((1 << 31) - 12, (1 << 31) - 8, 4)),
            ALL - {-8, -12},
            set(),
            set(),
        ),
        (frame(-20 - 1024), ALL, set(), {S3}),
        (AnchoredTerm(ENTRY_SP, ANY), set(), set(), set()),
    ],
)
def test_store(
    pointer: Term | Fact, frames: set[int], kept: set[int], used: set[Assumption]
) -> None:
    assert stored(pointer) == (frames, kept, used)


@pytest.mark.parametrize(
    "code",
    [
        "add r1, sp, sp\n str r0, [r1]",
        "rsb r1, r2, sp\n str r0, [r1]",
        "rsb r1, sp, r2\n str r0, [r1]",
        "eor r1, sp, r2\n str r0, [r1]",
        "orr r1, r2, sp\n str r0, [r1]",
        "mvn r1, sp\n str r0, [r1]",
        "add r3, sp, #4\n mul r1, r2, r3\n str r0, [r1]",
        "lsl r1, sp, #1\n str r0, [r1]",
        "str r0, [sp, r2]",
        "cmp r2, #4\n movls r1, sp\n str r0, [r1]",
    ],
)
def test_address_computed_from_sp_may_hit_any_frame_cell(code: str) -> None:
    """It is no unknown pointer in the sense of S1."""
    assert stored(ANY, code)[0] == set()


def test_load_gives_what_was_stored_in_ordinary_memory_only() -> None:
    around = AnalysisEnvironment(constant, lambda addr: 0x20000 <= addr < 0x21000)
    for addr, same in ((GLOBAL, True), (0x43F9_0000, False), (0x8010, False)):
        text = "str r0, [r1]\n ldr r2, [r1]\n ldr r3, [r1]"
        image = Image.load(build(f".text\n.global main\nmain: {text}\n", language="asm"))
        insns = [decode(image.read(at, 4) or b"", at, False) for at in (0x8000, 0x8004, 0x8008)]
        after = run(compile_block(insns), state_with(around, addr), around, 1).fall
        assert after is not None
        assert (after.term(2) == 77) is same
        if addr == 0x43F9_0000:
            assert after.term(2) != after.term(3)
            assert after.term(2) >> 32 >= RIGID
