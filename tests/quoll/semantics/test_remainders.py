"""An instruction is marked as a remainder only if it leaves one, for every dividend."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from loopbounds.execution.machine import ConcreteMachine
from loopbounds.execution.word_range import WordRange
from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow, Insn
from quoll.image.image import Image
from quoll.semantics.lift import lift
from quoll.semantics.operations import evaluate
from quoll.semantics.ops import OpCode, Space, Var, general
from quoll.semantics.remainders import with_remainders
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build

WORD = 1 << 32
DIVISORS = (3, 5, 6, 7, 10, 11, 12, 14, 25, 31, 60, 97, 100, 400, 641, 1000, 20000, 86400, 65537)
SHAPES = (
    "lsr r4, r0, #{t}; umull r3, r2, r1, r4; lsr r2, r2, #{s}; mul r2, r5, r2; sub r0, r0, r2",
    "umull r3, r2, r0, r1; lsr r2, r2, #{s}; mul r3, r2, r5; sub r2, r0, r3",
    "umull r3, r2, r1, r0; sub r3, r0, r2; add r2, r2, r3, lsr #1; lsr r2, r2, #{s};"
    "mls r0, r2, r5, r0",
    "smull r2, r3, r1, r0; asr r2, r0, #31; rsb r3, r2, r3, asr #{s}; mul r3, r5, r3;"
    "sub r0, r0, r3",
    "smull r2, r3, r1, r0; add r3, r3, r0; asr r2, r0, #31; rsb r3, r2, r3, asr #{s};"
    "mul r3, r5, r3; sub r0, r0, r3",
)


def straight(image: Image, name: str) -> list[Insn]:
    """The instructions of a function up to its first transfer of control."""
    symbol = image.symbol(name)
    assert symbol is not None
    found, at = list[Insn](), symbol.addr & ~1
    while True:
        raw = image.read(at, 4) or image.read(at, 2)
        assert raw is not None
        insn = decode(raw, at, symbol.thumb)
        if insn.flow is not ControlFlow.NEXT:
            return found
        found.append(insn)
        at = insn.next


def executed(insns: Sequence[Insn], registers: dict[int, int], image: Image) -> dict[Var, int]:
    """The registers after instructions without branches and stores."""
    words = {general(r): registers.get(r, 0x12345678) for r in range(15)}
    for insn in insns:
        for op in lift(insn):
            values = [v.offset if v.space is Space.CONST else words.get(v, 0) for v in op.ins]
            if op.out is None or op.code is OpCode.UNKNOWN:
                continue
            if op.code is OpCode.LOAD:
                words[op.out] = image.constant(values[0], 4) or 0
            else:
                words[op.out] = evaluate(op.code, values, [v.size for v in op.ins], op.out.size)
    return {var: word for var, word in words.items() if var.space is Space.REG}


def dividends(random: Random, divisor: int) -> list[int]:
    """Words at which a wrong quotient shows."""
    near = [0, WORD // 2, WORD - 1, (WORD // divisor) * divisor, (WORD // 2 // divisor) * divisor]
    near += [random.randrange(WORD // divisor) * divisor for _ in range(6)]
    near += [-n for n in near]
    return [(n + d) % WORD for n in near for d in (-1, 0, 1)]


def holds(insns: Sequence[Insn], known: dict[int, int], image: Image, random: Random) -> int:
    """Execute instructions with the marked ones, and without; returns how many are marked."""
    marked = with_remainders(insns, known, image.constant)
    found = [insn.remainder for insn in marked if insn.remainder is not None]
    for remainder in found:
        for word in dividends(random, remainder.divisor):
            start = {0: word} | known
            assert executed(marked, start, image) == executed(insns, start, image), hex(word)
    return len(found)


@pytest.mark.parametrize("state", ["arm", "thumb"])
@pytest.mark.parametrize("sign", ["unsigned", "signed"])
def test_divisions_of_a_compiler(state: str, sign: str) -> None:
    lines = [f"{sign} f{d}({sign} a) {{ return a % {d}; }}" for d in DIVISORS]
    lines += [f"{sign} g{d}({sign} a) {{ return (3 * a + 1) % {d}; }}" for d in DIVISORS]
    source = "\n".join([*lines, "int main(void) { return 0; }"])
    image = Image.load(build(source, f"-m{state}", optimise="-O2", cpu="cortex-a8"))
    found = sum(
        holds(straight(image, f"{name}{d}"), {}, image, Random(d))
        for d in DIVISORS
        for name in ("f", "g")
    )
    assert found >= 2 * len(DIVISORS) - 4


def test_wrong_reciprocals_are_no_divisions() -> None:
    """Factors, shifts and divisors near the right ones."""
    random, drawn, body = Random(7), [], ""
    for number in range(cases(400)):
        divisor, shape = random.choice(DIVISORS), random.randrange(len(SHAPES))
        t = (divisor & -divisor).bit_length() - 1 if shape == 0 else 0
        s = random.randrange(max(1, divisor.bit_length() - 1 - t), divisor.bit_length() + 1)
        power = 32 + s + (1 if shape == 2 else 0)
        factor = (1 << power) // (divisor >> t) + random.choice([0, 1, 1, 1, 2, 3])
        body += f"w{number}: {SHAPES[shape].format(t=t or 1, s=s)}\nbx lr\n"
        drawn.append({1: factor % WORD, 5: divisor + random.choice([0, 0, 0, 0, 1, -1])})
    source = f".syntax unified\n.global main\nmain: bx lr\n{body}"
    image = Image.load(build(source, language="asm", cpu="cortex-a8"))
    found = [
        holds(straight(image, f"w{number}"), known, image, random)
        for number, known in enumerate(drawn)
    ]
    assert len(found) // 12 < sum(found) < len(found)


def test_a_remainder_has_a_range() -> None:
    source = "unsigned f(unsigned a) { return a % 1000; } int main(void) { return 0; }"
    image = Image.load(build(source, optimise="-O2"))
    insns = with_remainders(straight(image, "f"), {}, image.constant)
    machine = ConcreteMachine(image)
    registers, memory = machine._registers, machine._memory
    for insn in insns:
        machine._step(insn).execute(registers, memory)
    assert registers[0] == WordRange(0, 999)
