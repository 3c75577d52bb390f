"""Arguments that a function does not read: no execution of compiled C depends on them."""

from __future__ import annotations

from random import Random

import pytest

from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import LR, PC, SP, Condition
from quoll.extraction.extract import extract
from quoll.facts.contract import ReadArguments
from quoll.image.image import Image
from quoll.inlining.read_arguments import read_arguments
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address, build

STACK, RETURN, STEPS = 0x0200_0000, 0xFFFF_0000, 3_000
PARAMETERS = ("a", "b", "c", "d", "e", "g")
LEVELS = ("-O0", "-O1", "-O2", "-Os")
FLAGS = ("-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf", "-fno-ipa-ra", "-Wno-psabi")
VARIADIC = """#include <stdarg.h>
int f(int n, ...) { va_list p; int s = 0; va_start(p, n);
 for (int i = 0; i < 6; i++) s += va_arg(p, int); va_end(p); return s; }
int main(int a) { return f(a, 1, 2, 3, 4, 5, 6); }"""


def drawn(chance: Random) -> str:
    """``f`` reads some of its six parameters, on some paths, or hands them to ``h``."""

    def word() -> str:
        return chance.choice((*PARAMETERS, "k", "t[k & 3]", "7"))

    def statement() -> str:
        call = f"k += h({', '.join(word() for _ in PARAMETERS)});"
        return chance.choice((f"k += {word()};", f"if ({word()} > 3) k = {word()};", call,
                              f"t[{word()} & 3] = {word()};", "k++;"))  # fmt: skip

    few = chance.sample(PARAMETERS, 2)
    body = " ".join(statement() for _ in range(chance.randint(1, 3)))
    declared = ", ".join(f"int {p}" for p in PARAMETERS)
    return (
        f"int sink; int h({declared}) {{ return sink += {few[0]} - 2 * {few[1]}; }}\n"
        f"int f({declared}) {{ int k = 1, t[4] = {{1, 2, 3, 4}}; {body} return k + t[1]; }}\n"
        f"int main(int a, int b) {{ return f(a, b, 3, 4, a, b); }}\n"
    )


def read_of(image: Image) -> ReadArguments:
    program = extract(image, [address(image, "main")])
    return read_arguments(program)[address(image, "f") & ~1]


def effects(
    image: Image, thumb: bool, registers: list[int], above: bytes
) -> list[tuple[int, int, int]]:
    """Each instruction of ``f`` with the address and the value of its last store."""
    stored = [(0, 0)]

    class Memory(ByteMemory):
        def store(self, addr: int, size: int, value: int) -> None:
            stored[-1] = addr, value
            super().store(addr, size, value)

    content = {s.addr + i: byte for s in image.segments for i, byte in enumerate(s.data)}
    machine = ConcreteMachine(Memory({**content, **{STACK + i: b for i, b in enumerate(above)}}))
    machine.registers[: len(registers)] = registers
    machine.registers[SP], machine.registers[LR] = STACK, RETURN | thumb
    machine.registers[PC], machine.thumb = address(image, "f") & ~1, thumb
    found: list[tuple[int, int, int]] = []
    conditions: tuple[Condition, ...] = ()
    while (at := machine.registers[PC]) != RETURN and len(found) < STEPS:
        insn = decode(image.read(at, 4) or b"", at, thumb, conditions)
        conditions = conditions[1:] or it_conditions(insn)
        machine.step(insn)
        found.append((at, *stored[-1]))
    return found


@pytest.mark.slow("compiles and executes programs")
def test_executions_do_not_depend_on_words_that_are_not_read() -> None:
    unread = 0
    for seed in range(cases(6)):
        chance = Random(seed)
        thumb = seed % 2 == 1
        image = Image.load(
            build(drawn(chance), *FLAGS, optimise=LEVELS[seed // 2 % 4], thumb=thumb)
        )
        read = read_of(image)
        unread += len(set(range(4)) - read.registers) + (read.stack < 8)
        for _ in range(4):
            one = [chance.getrandbits(3) for _ in range(13)]
            other = [
                w if r in read.registers else chance.getrandbits(32) for r, w in enumerate(one)
            ]
            above = chance.randbytes(64)
            same = above[: read.stack]
            changed = same + chance.randbytes(64 - len(same))
            assert effects(image, thumb, one, above) == effects(image, thumb, other, changed), seed
    assert unread


@pytest.mark.parametrize("level", LEVELS)
def test_variable_arguments_are_read(level: str) -> None:
    """Their addresses move, or go through memory, so that any words may be read."""
    assert read_of(Image.load(build(VARIADIC, optimise=level))).stack >= 3 * 4


def test_parameters_in_registers_and_on_the_stack() -> None:
    source = """int f(int a, int b, int c, int d, int e) { return b + e; }
        int main(int a) { return f(a, 1, 2, 3, 4); }"""
    read = read_of(Image.load(build(source, "-fno-inline", "-fno-ipa-cp", optimise="-O1")))
    assert read.registers & frozenset(range(4)) == {1}
    assert read.stack == 4
