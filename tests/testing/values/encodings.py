"""Random ARM and Thumb instructions of the kinds that compilers emit, as bytes."""

from __future__ import annotations

import random
import struct

LOW = (0, 1, 2, 3, 4, 5, 13)


def _register(rng: random.Random) -> int:
    return rng.choice(LOW)


def arm(rng: random.Random) -> bytes:
    """One ARM instruction that goes on to the next, mostly."""
    cond = rng.choice([14] * 6 + list(range(14)))
    n, d, m = (_register(rng) for _ in range(3))
    kind = rng.randrange(12)
    if kind < 3:  # data processing, immediate: small, or a mask, rotated
        op, rotation = rng.randrange(16), rng.choice([0, 0, 0, 4, 14, 15])
        body = 1 << 25 | op << 21 | rng.choice([0, 1]) << 20 | n << 16 | d << 12
        body |= rotation << 8 | rng.choice([0, 1, 3, 4, 7, 8, 255, rng.randrange(256)])
    elif kind < 5:  # data processing, register, shifted by an immediate
        op = rng.randrange(16)
        body = op << 21 | rng.choice([0, 1]) << 20 | n << 16 | d << 12 | m
        body |= rng.choice([0, 0, 1, 2, 3, 31, rng.randrange(32)]) << 7 | rng.randrange(4) << 5
    elif kind == 5:  # data processing, shifted by a register
        body = rng.randrange(16) << 21 | 1 << 20 | n << 16 | d << 12 | _register(rng) << 8
        body |= rng.randrange(4) << 5 | 1 << 4 | m
    elif kind < 8:  # ldr, str, ldrb, strb, immediate
        body = 1 << 26 | rng.choice([0b11000, 0b11001, 0b11100, 0b11101, 0b1001, 0b1011]) << 20
        body |= rng.choice([n, 13, 13]) << 16 | d << 12 | rng.choice([0, 4, 8, 12, 1, 2])
    elif kind == 8:  # ldr, str, register
        body = 0b11 << 25 | 0b1100 << 21 | rng.choice([0, 1]) << 20 | n << 16 | d << 12
        body |= rng.choice([0, 2]) << 7 | m
    elif kind == 9:  # ldrh, strh, ldrsb, ldrsh, ldrd, strd
        body = 0b11100 << 20 | rng.choice([0, 1]) << 20 | rng.choice([n, 13]) << 16
        body |= (d & ~1) << 12 | rng.choice([0b1011, 0b1101, 0b1111]) << 4 | rng.choice([0, 4, 6])
    elif kind == 10:  # ldm, stm
        modes = [0b01000, 0b01001, 0b01010, 0b01011, 0b10010, 0b00010, 0b10000, 0b11000]
        body = 1 << 27 | rng.choice(modes) << 20 | rng.choice([n, 13]) << 16
        body |= rng.randrange(1, 64) | rng.choice([0, 1 << 14])
    else:
        body = _other(rng, n, d, m)
    return struct.pack("<I", cond << 28 | body)


def _other(rng: random.Random, n: int, d: int, m: int) -> int:
    """Multiplications, extensions, clz."""
    return rng.choice(
        [
            0x00000090 | d << 16 | n << 8 | m,  # mul
            0x00200090 | d << 16 | 2 << 12 | n << 8 | m,  # mla
            0x00800090 | 1 << 16 | 0 << 12 | n << 8 | m,  # umull
            0x00C00090 | 3 << 16 | 2 << 12 | n << 8 | m,  # smull
            0x00E00090 | 3 << 16 | 2 << 12 | n << 8 | m,  # smlal
            0x06EF0070 | d << 12 | m,  # uxtb
            0x06FF0070 | d << 12 | rng.randrange(4) << 10 | m,  # uxth
            0x06AF0070 | d << 12 | m,  # sxtb
            0x06BF0070 | d << 12 | m,  # sxth
            0x016F0F10 | d << 12 | m,  # clz
            0x0310F000 | 0 << 22 | n << 16 | rng.randrange(256),  # tst
            0x01900F9F | n << 16 | d << 12,  # ldrex
            0x01800F90 | n << 16 | 4 << 12 | m,  # strex
        ]
    )


def thumb(rng: random.Random) -> bytes:
    """One 16-bit Thumb instruction that goes on to the next, mostly."""
    d, n, m = (rng.randrange(6) for _ in range(3))
    small = rng.choice([0, 1, 2, 4, 31])
    word = rng.choice(
        [
            rng.randrange(3) << 11 | small << 6 | n << 3 | d,  # lsl, lsr, asr
            0x1800 | rng.randrange(4) << 9 | m << 6 | n << 3 | d,  # add, sub
            0x2000 | rng.randrange(4) << 11 | d << 8 | rng.choice([0, 1, 4, rng.randrange(256)]),
            0x4000 | rng.randrange(16) << 6 | m << 3 | d,  # register operations
            0x4400 | rng.choice([0, 1, 2]) << 8 | rng.choice([m, 13]) << 3 | d,  # high registers
            0x5000 | rng.randrange(8) << 9 | m << 6 | n << 3 | d,  # register offset
            0x6000 | rng.randrange(4) << 11 | small << 6 | n << 3 | d,  # word, byte
            0x8000 | rng.randrange(2) << 11 | small << 6 | n << 3 | d,  # half word
            0x9000 | rng.randrange(2) << 11 | d << 8 | rng.randrange(8),  # sp relative
            0xA800 | d << 8 | rng.randrange(8),  # add rd, sp
            0xB000 | rng.randrange(2) << 7 | rng.randrange(8),  # add sp
            0xB400 | rng.choice([0, 0x100]) | rng.randrange(1, 64),  # push
            0xBC00 | rng.randrange(1, 64),  # pop
            0xB200 | rng.randrange(4) << 6 | m << 3 | d,  # extend
            0xC000 | rng.randrange(2) << 11 | n << 8 | rng.randrange(1, 64),  # ldm, stm
        ]
    )
    return struct.pack("<H", word)


def arm_store_at(rng: random.Random, registers: list[int]) -> bytes:
    """A store to the address that the previous instruction computed, or to sp."""
    base = rng.choice([r for r in registers if r < 13] or [13])
    kind = rng.choice([0x05800000, 0x05000000, 0x05C00000])  # str, str down, strb
    operands = base << 16 | rng.randrange(4) << 12 | 4 * rng.randrange(4)
    return struct.pack("<I", 0xE << 28 | kind | operands)


def arm_branch(rng: random.Random) -> bytes:
    """A conditional branch somewhere else, or a conditional return."""
    cond = rng.randrange(14) << 28
    return struct.pack("<I", cond | rng.choice([0x0A000100, 0x012FFF1E, 0x08BD8010]))
