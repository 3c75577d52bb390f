"""Sums and differences of multiples of one word: exact, and every execution is covered."""

from __future__ import annotations

import random

import pytest

from quoll.abstract_domain.abstract_state import AbstractState, entry_state
from quoll.abstract_domain.compiled import compile_block
from quoll.abstract_domain.terms import Fact, RotatedTerm, plain
from quoll.abstract_domain.transfer import run
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.image.image import Image
from quoll.intervals.strided_interval import ValueSet, progression
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble
from tests.testing.values.concretes import environment


def instructions(image: Image, name: str = "main") -> list[Insn]:
    """The instructions of a function, without its return."""
    found = list[Insn]()
    at = address(image, name)
    while not found or found[-1].mnemonic != "bx":
        code = image.read(at, 4)
        assert code is not None
        found.append(decode(code, at, thumb=False))
        at = found[-1].next
    return found[:-1]


def after(insns: list[Insn], words: ValueSet) -> AbstractState:
    around = environment()
    given = {insns[0].addr: ((0, words),)}
    state = run(compile_block(insns, given), entry_state(around.names), around, 0).fall
    assert state is not None
    return state


def contains(fact: Fact, word: int) -> bool:
    if isinstance(fact, RotatedTerm):
        return word - fact.origin & 0xFFFFFFFF in fact.members
    return word in plain(fact)


@pytest.mark.parametrize(
    ("code", "factor"),
    [
        ("add r1, r0, r0, lsl #1", 3),
        ("rsb r1, r0, r0, lsl #3", 7),
        ("lsl r1, r0, #1; add r1, r1, r0", 3),
        ("add r0, r0, r0, lsl #1; mov r1, r0", 3),
        ("add r1, r0, r0, lsl #2; add r1, r0, r1, lsl #1", 11),
        ("add r2, r0, r0, lsl #1; rsb r1, r0, r2, lsl #3", 23),
        ("mov r2, r0; lsl r2, r2, #4; sub r1, r2, r0, lsl #2", 12),
    ],
)
def test_a_multiple_of_a_word_has_its_stride(code: str, factor: int) -> None:
    state = after(instructions(assemble(f"main: {code}; bx lr")), ValueSet(0, 4, 1))
    assert state.fact(1) == progression(0, 4 * factor, factor)


def test_a_multiple_of_a_sum_has_its_constant() -> None:
    code = "add r1, r0, #5; add r1, r1, r1, lsl #1; add r2, r0, r0, lsl #1; sub r3, r1, r2"
    state = after(instructions(assemble(f"main: {code}; bx lr")), ValueSet(0, 4, 1))
    assert state.fact(1) == progression(15, 27, 3)
    assert state.fact(3) == ValueSet.of(15)


@pytest.mark.slow("assembles and executes many sequences")
def test_executions_are_covered() -> None:
    rng = random.Random(7)
    narrow = 0
    for _ in range(cases(12)):
        sequences = [[_line(rng) for _ in range(rng.randrange(2, 7))] for _ in range(20)]
        text = "".join(
            f".global m{n}\n.type m{n}, %function\nm{n}: " + "; ".join([*lines, "bx lr\n"])
            for n, lines in enumerate(sequences)
        )
        image = assemble(f"main: bx lr\n{text}")
        for n, lines in enumerate(sequences):
            insns = instructions(image, f"m{n}")
            low = rng.choice([0, 1, 40, 2**31 - 20, 2**32 - 300])
            stride = rng.choice([1, 4, 12])
            words = progression(low, low + stride * rng.randrange(1, 20), stride)
            state = after(insns, words)
            narrow += sum(plain(state.fact(r)).size < 400 for r in (1, 2, 3))
            for word in words:
                machine = ConcreteMachine()
                machine.registers[0] = word
                machine.registers[15] = insns[0].addr
                for insn in insns:
                    machine.step(insn)
                for register in range(4):
                    fact = state.fact(register)
                    assert contains(fact, machine.registers[register]), (lines, words)
    assert narrow > cases(12) * 5


def _line(rng: random.Random) -> str:
    out, a, b = (f"r{rng.randrange(4)}" for _ in range(3))
    shift = rng.randrange(5)
    return rng.choice(
        [
            f"add {out}, {a}, {b}, lsl #{shift}",
            f"sub {out}, {a}, {b}, lsl #{shift}",
            f"rsb {out}, {a}, {b}, lsl #{shift}",
            f"lsl {out}, {a}, #{shift}",
            f"add {out}, {a}, #{rng.randrange(200)}",
            f"mov {out}, r0",
        ]
    )
