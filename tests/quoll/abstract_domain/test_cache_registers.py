"""Reads of registers that identify caches: every execution on a Cortex-A8 is covered."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
import unicorn
from unicorn import arm_const as uc

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_state import entry_state
from quoll.abstract_domain.function_values import BlockCode
from quoll.abstract_domain.terms import describe, entry_symbol, known_bits
from quoll.abstract_domain.transfer import run
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.assumptions import CACHE_REGISTERS
from quoll.image.cache_words import CacheWords, size_word
from quoll.intervals.masked_words import MaskedWords, bit_and, hull
from quoll.intervals.strided_interval import ANY, ValueSet
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.harness.cases import cases
from tests.testing.values.concretes import MODE_AT_ENTRY, differences, environment

CODE, PAGE = 0x8000, 0x1000
SIZE = size_word(64, 4, 64)  # of both caches of level 1 of the emulated core, 16 KiB
LEVELS = 0x0A000003  # which it reads: no level-2 cache
REGISTERS = tuple(uc.UC_ARM_REG_R0 + n for n in range(13))
ALWAYS, EQUAL, NOT_EQUAL = 0xE, 0, 1
READ_SIZES, READ_LEVELS, SELECT = 0x0E300F10, 0x0E300F30, 0x0E400F10
SETS, WAYS = (13, 0x7FFF), (3, 0x3FF)  # lowest bit and mask of the fields


def known() -> AnalysisEnvironment:
    assert SIZE is not None
    around = environment()
    around.cache_words = CacheWords(LEVELS, ((0, SIZE), (1, SIZE)))
    return around


def decoded(words: Sequence[int]) -> tuple[Insn, ...]:
    return tuple(
        decode(word.to_bytes(4, "little"), CODE + 4 * n, False) for n, word in enumerate(words)
    )


def instructions(rng: random.Random) -> list[int]:
    found: list[int] = []
    for _ in range(rng.randrange(3, 14)):
        cond = rng.choice([ALWAYS, ALWAYS, ALWAYS, EQUAL, NOT_EQUAL]) << 28
        a, b = rng.randrange(6), rng.randrange(6)
        if rng.random() < 0.2:
            found.append(ALWAYS << 28 | 0x03A00000 | a << 12 | rng.randrange(2))
            found.append(ALWAYS << 28 | SELECT | a << 12)
        found.append(
            rng.choice(
                [
                    cond | READ_SIZES | a << 12,
                    cond | READ_SIZES | a << 12,
                    cond | READ_LEVELS | a << 12,
                    cond | SELECT | a << 12,
                    cond | SELECT | a << 12,
                    cond | 0x03A00000 | a << 12 | rng.choice([0, 0, 1, 2, 3]),  # mov
                    cond | 0x01A00000 | a << 12 | b,  # mov
                    ALWAYS << 28 | 0x03500000 | a << 16 | rng.randrange(2),  # cmp
                    cond | 0x02000001 | a << 16 | b << 12,  # and b, a, #1
                ]
            )
        )
    return found


class Core:
    """A Cortex-A8 in QEMU."""

    def __init__(self) -> None:
        self._core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM)
        self._core.ctl_set_cpu_model(uc.UC_CPU_ARM_CORTEX_A8)
        self._core.mem_map(0, 1 << 20)

    def run(self, insns: Sequence[Insn], start: Sequence[int]) -> tuple[list[int], list[bool]]:
        core = self._core
        for register, word in zip(REGISTERS, start, strict=True):
            core.reg_write(register, word)
        core.mem_write(CODE, b"".join(i.encoding.to_bytes(4, "little") for i in insns))
        core.ctl_remove_cache(CODE, CODE + PAGE)
        core.emu_start(CODE, CODE + 4 * len(insns), count=len(insns))
        status = core.reg_read(uc.UC_ARM_REG_CPSR)
        end = [core.reg_read(register) for register in REGISTERS]
        return end, [bool(status >> bit & 1) for bit in (31, 30, 29, 28)]


@pytest.mark.slow("many random instruction sequences")
def test_covers_execution() -> None:
    counts: Counter[str] = Counter()
    core = Core()
    for seed in range(cases(400)):
        rng = random.Random(seed)
        insns = decoded(instructions(rng))
        around = known()
        start = entry_state(around.names, None, None)
        state = run(BlockCode()(insns), start, around, 0).fall
        assert state is not None
        for _ in range(3):
            before = [rng.choice([0, 1, 2, 3, rng.getrandbits(32)]) for _ in range(13)]
            end, flags = core.run(insns, before)
            machine = ConcreteMachine()
            machine.registers[:13], machine.registers[13:15] = end, [0x50000, 0]
            machine.registers[16:20] = flags
            rigid = {entry_symbol(r): word for r, word in enumerate([*before, 0x50000, 0])}
            rigid |= {start.term(r) >> 32: word for r, word in enumerate([*before, 0x50000, 0])}
            rigid[MODE_AT_ENTRY] = 0x13
            assert not differences(state, machine, rigid, around.stacks), seed
        facts = [describe(state.term(r), state.facts) for r in range(6)]
        counts["levels"] += any(fact == ValueSet.of(LEVELS) for fact in facts)
        counts["sizes"] += any(map(tells_sets, (known_bits(f) for f in facts)))
    assert min(counts.values()) > cases(40), counts


def tells_sets(words: object) -> bool:
    """Whether the field for the number of sets is known to have the core's value."""
    assert isinstance(words, ValueSet | MaskedWords)
    field = bit_and(words, ValueSet.of(SETS[1] << SETS[0]))
    return hull(field).exact == 63 << SETS[0]


def after(*words: int) -> tuple[object, bool]:
    """The words of r1 behind instructions, and whether a register was trusted."""
    around = known()
    state = run(BlockCode()(decoded(words)), entry_state(around.names, None, None), around, 0).fall
    assert state is not None
    fact = describe(state.term(1), state.facts)
    return known_bits(fact), CACHE_REGISTERS.of() in around.used


ZERO = 0xE3A00000  # mov r0, #0
CHOOSE, READ = ALWAYS << 28 | SELECT, ALWAYS << 28 | READ_SIZES | 1 << 12


def test_the_selected_cache_is_followed() -> None:
    words, used = after(ZERO, CHOOSE, READ)
    assert tells_sets(words)
    assert used
    assert tells_sets(after(ZERO, CHOOSE, 0xE3A00003, READ)[0])  # r0 has another word by then


def test_nothing_is_known_without_a_platform() -> None:
    around = environment()
    insns = decoded((ZERO, CHOOSE, READ, ALWAYS << 28 | READ_LEVELS | 2 << 12))
    state = run(BlockCode()(insns), entry_state(around.names, None, None), around, 0).fall
    assert state is not None
    assert describe(state.term(1), state.facts) == ANY == describe(state.term(2), state.facts)
    assert not around.used


@pytest.mark.parametrize(
    "words",
    [
        (READ,),
        (CHOOSE, READ),  # any cache
        (0xE3A00002, CHOOSE, READ),  # a cache of which no size is stated
        (ZERO, CHOOSE, EQUAL << 28 | SELECT | 2 << 12, READ),  # perhaps another one
        (ZERO, EQUAL << 28 | SELECT, READ),  # perhaps not selected
        (ZERO, CHOOSE, 0xEEA90FD9, READ),  # behind a write that no table knows
    ],
    ids=["none", "any", "unstated", "perhaps another", "perhaps none", "unknown write"],
)
def test_another_selection_may_read_anything(words: tuple[int, ...]) -> None:
    found, used = after(*words)
    assert not tells_sets(found)
    assert not used
