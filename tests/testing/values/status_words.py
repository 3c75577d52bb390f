"""Random instructions on status words: modes, interrupt masks, and the registers of each mode.

QEMU's core executes them, in Unicorn, from any privileged mode.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import unicorn
from unicorn import arm_const as uc

from quoll.arm.decode import decode
from quoll.arm.insn import Insn

CODE, SCRATCH, PAGE = 0x8000, 0x1000, 0x1000
SUPERVISOR, FIQ, SYSTEM = 0x13, 0x11, 0x1F
MODES = (SUPERVISOR, FIQ, 0x12, 0x17, 0x1B, SYSTEM)  # IRQ, abort and undefined
INTERRUPTS, FAST = 1 << 7, 1 << 6
LOW = tuple(uc.UC_ARM_REG_R0 + n for n in range(13))
REGISTERS = (*LOW, uc.UC_ARM_REG_SP, uc.UC_ARM_REG_LR)
ALWAYS, EQUAL, NOT_EQUAL = 0xE, 0, 1
AND, XOR, OR, CLEAR = 0x0, 0x1, 0xC, 0xE  # operations


@dataclass(frozen=True)
class Executed:
    """Registers r0 to lr, N Z C V, mode, and bit I at the end; ``start``: registers before."""

    start: tuple[int, ...]
    end: tuple[int, ...]
    flags: tuple[bool, ...]
    mode: int
    masked: bool


def instructions(rng: random.Random) -> tuple[Insn, ...]:
    """A few instructions; only status words are written to the status register."""
    words = list(_encodings(rng))
    return tuple(
        decode(word.to_bytes(4, "little"), CODE + 4 * n, False) for n, word in enumerate(words)
    )


def _encodings(rng: random.Random) -> Iterator[int]:
    statuses = [0, 1]  # registers with a status word: two of the caller's
    for _ in range(rng.randrange(3, 12)):
        source = rng.choice(statuses)
        target = rng.choice([2, 3, 4, 5, 8, 12, 14])
        cond = rng.choice([ALWAYS, ALWAYS, ALWAYS, EQUAL, NOT_EQUAL])
        kind = rng.randrange(7)
        if kind == 0:
            yield ALWAYS << 28 | 0x010F_0000 | target << 12  # mrs
        elif kind == 1:
            fields = rng.choice([1, 1, 9])
            yield cond << 28 | 0x0120_F000 | fields << 16 | source  # msr
            continue
        elif kind == 2:
            yield 0xF108_0080 | rng.getrandbits(1) << 18  # cpsie i, cpsid i
            continue
        elif kind == 3:
            yield ALWAYS << 28 | 0x0310_0080 | source << 16  # tst #0x80
            continue
        elif kind == 4:
            bits = rng.choice([INTERRUPTS, FAST, INTERRUPTS | FAST])
            yield _immediate(cond, rng.choice([XOR, OR, CLEAR]), source, target, bits)
            if cond is not ALWAYS and target not in statuses:
                continue
        elif kind == 5:
            mode = rng.choice(MODES)
            yield _immediate(ALWAYS, CLEAR, source, target, 0x1F)
            yield _immediate(ALWAYS, OR, target, target, mode)
        else:  # no status word; a register that all modes share
            target = rng.choice([2, 3, 4, 5])
            yield _immediate(ALWAYS, AND, source, target, rng.choice([INTERRUPTS, 0x1F, 0x9F]))
            statuses = [register for register in statuses if register != target]
            continue
        statuses.append(target)


def _immediate(cond: int, operation: int, source: int, target: int, value: int) -> int:
    return cond << 28 | 1 << 25 | operation << 21 | source << 16 | target << 12 | value


def _status(rng: random.Random, mode: int) -> int:
    """A status word of a privileged mode, half of them of ``mode``, with any flags and masks."""
    mode = rng.choice([mode] * len(MODES) + [*MODES])
    return rng.getrandbits(4) << 28 | rng.getrandbits(2) << 6 | mode


class Core:
    """A core whose modes all have their own random registers."""

    def __init__(self) -> None:
        self._core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM)
        self._core.mem_map(0, 1 << 20)

    def run(
        self, insns: Sequence[Insn], rng: random.Random, mode: int, *, masked: bool
    ) -> Executed:
        """Execute ``insns`` in ``mode``; all registers of all modes are valid status words."""
        core = self._core
        for each in (*MODES, mode):
            self._execute(SCRATCH, [0xF102_0000 | each])  # cps #mode
            for register in REGISTERS[8:]:
                core.reg_write(register, _status(rng, mode))
        self._execute(SCRATCH, [0xF108_0080 | masked << 18])
        for register in REGISTERS[:8]:
            core.reg_write(register, _status(rng, mode))
        start = self._registers()
        self._execute(CODE, [insn.encoding for insn in insns])
        status = core.reg_read(uc.UC_ARM_REG_CPSR)
        return Executed(
            start,
            self._registers(),
            tuple(bool(status >> bit & 1) for bit in (31, 30, 29, 28)),
            status & 0x1F,
            bool(status & INTERRUPTS),
        )

    def _execute(self, at: int, words: Sequence[int]) -> None:
        self._core.mem_write(at, b"".join(word.to_bytes(4, "little") for word in words))
        self._core.ctl_remove_cache(at, at + PAGE)
        self._core.emu_start(at, at + 4 * len(words), count=len(words))

    def _registers(self) -> tuple[int, ...]:
        return tuple(self._core.reg_read(register) for register in REGISTERS)
