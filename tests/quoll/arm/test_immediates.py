"""Constants read from encodings, against results of the instructions."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from quoll.arm.decode import decode
from quoll.arm.immediates import added_constant, immediate_operand
from quoll.arm.insn import PC, ControlFlow, Insn, ShiftKind
from quoll.arm.operation import Operation
from quoll.arm.unpredictable import has_meaning
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.harness.cases import cases

WORD = 0xFFFFFFFF
APART = 7  # narrow encodings that are tried: prime, so that each field has all of its values
FIRST_WORDS = {False: (0xE2000000, 0xE3000000), True: (0xF0000000, 0xF1000000, 0xF2000000)}
OPERATORS = {
    Operation.AND: lambda a, b: a & b,
    Operation.BIT_CLEAR: lambda a, b: a & ~b,
    Operation.EXCLUSIVE_OR: lambda a, b: a ^ b,
    Operation.MOVE: lambda a, b: b,
    Operation.OR: lambda a, b: a | b,
}


def instructions(thumb: bool, count: int) -> list[Insn]:
    random = Random(19)
    found = []
    for _ in range(count):
        word = random.choice(FIRST_WORDS[thumb]) | random.getrandbits(24)
        halves = word.to_bytes(4, "big")
        raw = bytes((halves[1], halves[0], halves[3], halves[2])) if thumb else halves[::-1]
        found.append(decode(raw, 0x8000, thumb))
    narrow = (half.to_bytes(2, "little") for half in range(0, 0xE800, APART)) if thumb else ()
    return found + [decode(raw, 0x8000, True) for raw in narrow]


def result(insn: Insn, source: int) -> int:
    machine = ConcreteMachine()
    machine.thumb = insn.thumb
    machine.registers[PC] = insn.addr
    for register in insn.sources:
        if register != PC:
            machine.registers[register] = source
    machine.step(insn)
    return machine.registers[next(iter(insn.writes))]


@pytest.mark.slow("decodes thousands of instructions")
@pytest.mark.parametrize("thumb", [False, True])
def test_constants_are_those_that_are_computed_with(thumb: bool) -> None:
    seen: Counter[Operation] = Counter()
    for insn in instructions(thumb, cases(3_000)):
        plain = insn.flow is ControlFlow.NEXT and insn.memory is None and len(insn.writes) == 1
        plain = plain and has_meaning(insn)
        if not plain or insn.shift is not ShiftKind.NONE or len(insn.sources) > 1:
            assert added_constant(insn) is None or not plain
            continue
        source = insn.pc_operand if PC in insn.sources else 0x12345678
        constant, added = immediate_operand(insn), added_constant(insn)
        if added is not None:
            assert result(insn, source) == source + added & WORD, insn.text
        elif constant is not None and insn.operation in OPERATORS:
            expected = OPERATORS[insn.operation](source, constant) & WORD
            assert result(insn, source) == expected, insn.text
        else:
            continue
        seen[insn.operation] += 1
    assert seen.keys() == {Operation.ADD, Operation.SUBTRACT, *OPERATORS}
    assert min(seen.values()) > 20


@pytest.mark.slow("decodes thousands of instructions")
@pytest.mark.parametrize("thumb", [False, True])
def test_what_has_a_printed_constant_has_one_here(thumb: bool) -> None:
    """Add and sub of one register have a constant, printed so or with its rotation."""
    for insn in instructions(thumb, cases(3_000)):
        one = len(insn.sources) == 1 and insn.memory is None and insn.flow is ControlFlow.NEXT
        if insn.operation in (Operation.ADD, Operation.SUBTRACT) and one:
            assert added_constant(insn) is not None, insn.text
