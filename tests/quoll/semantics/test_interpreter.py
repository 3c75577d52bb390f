"""The interpreter on whole programs with known results."""

import time

import pytest

from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.errors import ControlFlowError
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine

CODE = 0x8000


def run(words: list[int], machine: ConcreteMachine, steps: int) -> ConcreteMachine:
    """Execute ARM code placed at CODE until it leaves it."""
    insns: dict[int, Insn] = {
        CODE + 4 * n: decode(word.to_bytes(4, "little"), CODE + 4 * n, False)
        for n, word in enumerate(words)
    }
    machine.registers[15] = CODE
    for _ in range(steps):
        insn = insns.get(machine.registers[15])
        if insn is None:
            return machine
        machine.step(insn)
    raise AssertionError("the program did not end")


SUM = [  # r0 = r1 + (r1 - 1) + ... + 1
    0xE3A00000,  # mov r0, #0
    0xE0800001,  # add r0, r0, r1
    0xE2511001,  # subs r1, r1, #1
    0x1AFFFFFC,  # bne .-8
    0xE12FFF1E,  # bx lr
]


def test_loop() -> None:
    machine = ConcreteMachine()
    machine.registers[1], machine.registers[14] = 100, 0x101
    run(SUM, machine, 1000)
    assert machine.registers[0] == 5050
    assert (machine.registers[15], machine.thumb) == (0x100, True)


def test_memory() -> None:
    """push and pop reverse three registers; the stack ends where it began."""
    machine = ConcreteMachine(ByteMemory())
    machine.registers[:3] = [0x11223344, 0x55667788, 0x99AABBCC]
    machine.registers[13], machine.registers[14] = 0x2000, 0x100
    words = [
        0xE92D0007,  # push {r0-r2}
        0xE49D2004,  # ldr r2, [sp], #4
        0xE49D1004,
        0xE5DD0003,  # ldrb r0, [sp, #3]
        0xE28DD004,  # add sp, sp, #4
        0xE12FFF1E,
    ]
    run(words, machine, 10)
    assert machine.registers[:3] == [0x99, 0x55667788, 0x11223344]
    assert machine.registers[13] == 0x2000
    assert machine.memory.load(0x1FF4, 8) == 0x5566778811223344


def test_background() -> None:
    memory = ByteMemory({1: 7}, background=lambda addr: addr & 0xFF)
    assert memory.load(0, 4) == 0x03020700


def test_trap_and_unknown() -> None:
    with pytest.raises(ControlFlowError, match="exception"):
        run([0xEF000000], ConcreteMachine(), 1)
    with pytest.raises(ControlFlowError, match="unknown"):
        run([0xEE110F10], ConcreteMachine(), 1)
    machine = ConcreteMachine(oracle=lambda op: 0x1_2345_6789)
    run([0xEE110F10], machine, 2)
    assert machine.registers[0] == 0x23456789


def test_speed() -> None:
    machine = ConcreteMachine()
    machine.registers[1], machine.registers[14] = 10_000, 0
    start = time.process_time()
    run(SUM, machine, 100_000)
    assert time.process_time() - start < 2.0
