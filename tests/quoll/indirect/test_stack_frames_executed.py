"""The quick proof of frames against execution: proved frames hold in every run of random code.

Code is one block of words around sp, fp and ip: saves and restores that may match, with constants
in all encodings, byte stores, lists in all four directions and conditions between them.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from quoll.arm.decode import decode
from quoll.arm.insn import LR, PC, SP, ControlFlow, Insn
from quoll.cfg.cfg import Block, Cfg
from quoll.errors import ControlFlowError
from quoll.facts.contract import STANDARD
from quoll.indirect.stack_frames import FrameContract, FrameProofFailure, prove_frame
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine

CASES, RUNS = 3000, 4
ENTRY, RETURN, STACK = 0x8000, 0x4000_0000, 0x7000_0000
BASES = (13, 13, 13, 11, 12, 7)
ADDRESSING = (0b100, 0b010, 0b000, 0b110)  # P and U: up and down, after and before


def word(random: Random, last: bool) -> int:
    """An instruction that makes, uses or leaves a frame; the ``last`` one may return."""
    cond = (0xE if last or random.random() < 0.9 else random.choice((0x0, 0x1, 0x8))) << 28
    base, other = random.choice(BASES), random.choice((*BASES, 4, 0))
    small = random.choice((0, 4, 4, 8, 8, 12, 16))
    kind = random.randrange(7) if not last else random.randrange(7, 10)
    if kind == 0:  # add or sub, of a constant with any rotation
        field = small if random.random() < 0.8 else random.getrandbits(12)
        return cond | random.choice((0x02800000, 0x02400000)) | base << 16 | other << 12 | field
    if kind == 1:  # mov
        return cond | 0x01A00000 | other << 12 | base
    if kind in (2, 3):  # ldr, str, ldrb, strb, before and after, with and without write-back
        bits = random.getrandbits(5) << 20 if random.random() < 0.3 else 0x18 << 20
        return cond | 0x04000000 | bits | base << 16 | random.choice((4, 14, other)) << 12 | small
    if kind == 4:  # strd, strh, ldrd
        return cond | 0x014000F0 | random.choice((0x00800000, 0)) | base << 16 | 4 << 12 | small
    registers = random.choice((0x4010, 0x4030, 0x4810, 0x5800, 0xD800, 0x4070, 0x0010))
    if kind in (5, 6):  # push, or any stm and ldm
        if random.random() < 0.6:
            return cond | random.choice((0x092D0000, 0x092D0000, 0x08BD0000)) | registers & 0x7FFF
        return cond | 0x08000000 | random.getrandbits(5) << 20 | base << 16 | registers & 0x7FFF
    if kind == 7:
        return cond | 0x012FFF1E  # bx lr
    if kind == 8:
        return cond | 0x08BD0000 | registers & ~0x4000 | 0x8000  # pop {..., pc}
    return cond | random.choice((0x049DF004, 0x091BA800, 0x08BD8010))


def program(random: Random) -> tuple[Insn, ...]:
    """A block that ends with a return, or with a similar instruction."""
    count = random.randrange(1, 7)
    words = [word(random, last=i == count) for i in range(count + 1)]
    if random.random() < 0.7:  # begin and end with the same list
        registers = random.choice((0x10, 0x30, 0x810, 0x1830))
        words = [0xE92D4000 | registers, *words[:-1], 0xE8BD8000 | registers]
    return tuple(
        decode(w.to_bytes(4, "little"), ENTRY + 4 * i, thumb=False) for i, w in enumerate(words)
    )


def proof(insns: tuple[Insn, ...]) -> FrameContract | None:
    """The quick proof's contract of the block, if control reaches its last instruction."""
    if insns[-1].flow is not ControlFlow.INDIRECT or any(
        i.flow is not ControlFlow.NEXT for i in insns[:-1]
    ):
        return None
    cfg = Cfg(ENTRY, "main", False, (Block(0, insns, returns=True),), (), True)
    try:
        return prove_frame(cfg, {insns[-1].addr}, lambda _: STANDARD)
    except FrameProofFailure:
        return None


def returns(random: Random, insns: tuple[Insn, ...], frame: FrameContract) -> bool:
    """Whether a run from random registers, none of which but sp is a stack address, returns."""
    memory = ByteMemory(background=lambda addr: (addr * 0x9E3779B1 >> 13) & 0xFF)
    machine = ConcreteMachine(memory, lambda op: random.getrandbits(32))
    machine.registers[:LR] = [random.getrandbits(24) << 2 for _ in range(LR)]
    machine.registers[SP], machine.registers[LR] = STACK, RETURN
    machine.registers[16:] = [random.getrandbits(1) for _ in machine.registers[16:]]
    before = list(machine.registers)
    for insn in insns:
        machine.step(insn)
    kept = [machine.registers[r] == before[r] for r in frame.preserved]
    return machine.registers[PC] == RETURN and all(kept)


@pytest.mark.slow("compiles and extracts many programs")
def test_what_is_proved_holds_of_every_run() -> None:
    random = Random(2024)
    seen: Counter[str] = Counter()
    for case in range(CASES):
        insns = program(random)
        frame = proof(insns)
        if frame is None:
            seen["not proved"] += 1
            continue
        for _ in range(RUNS):
            try:
                held = returns(random, insns, frame)
            except ControlFlowError:
                seen["not executed"] += 1
                break
            assert held, (case, [insn.text for insn in insns], frame)
            seen["held"] += 1
    assert seen["held"] > CASES // 10, seen
    assert seen["not executed"] < seen["held"] // 10, seen
