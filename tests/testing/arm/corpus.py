"""Instructions of newlib's and libgcc's archives, as objdump sees them."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import Condition, Insn

NEWLIB = Path("/usr/lib/arm-none-eabi/newlib")
LIBGCC = Path("/usr/lib/gcc/arm-none-eabi")
LINE = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(.*)$")

# Small libraries in every instruction set: ARMv4T and ARMv5TE in ARM, Thumb-1, Thumb-2 with NEON
SAMPLE = (
    "libgcc.a",
    "arm/v5te/softfp/libgcc.a",
    "thumb/nofp/libgcc.a",
    "thumb/v7-a+simd/hard/libgcc.a",
)


@dataclass(frozen=True)
class Disassembled:
    """One line of objdump: address, bytes, text."""

    addr: int
    raw: bytes
    thumb: bool
    text: str


def archives() -> list[Path]:
    """libc, libm and libgcc of every A- and R-profile multilib to ARMv7, and of Thumb-1."""
    found = [p for name in ("libc.a", "libm.a") for p in NEWLIB.rglob(name)]
    found += list(LIBGCC.rglob("libgcc.a"))
    return sorted(path for path in found if _wanted(path))


def _wanted(path: Path) -> bool:
    multilib = re.search(r"/(?:thumb|arm)/([^/]+)/", str(path))
    if multilib is None:
        return True
    name = multilib.group(1)
    return name.startswith("v6-m") or not re.search(r"v8|v7e-m|-m\b", name)


def disassembled(path: Path) -> Iterator[Disassembled]:
    """All instructions of an archive in order; words that objdump knows to be data are left out."""
    command = ["arm-none-eabi-objdump", "-d", "-r", "-w", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        match = LINE.match(line)
        if match is None or match.group(3).startswith("."):
            continue
        groups = match.group(2).split()
        thumb = len(groups[0]) == 4
        raw = b"".join(bytes.fromhex(group)[::-1] for group in groups)
        yield Disassembled(int(match.group(1), 16), raw, thumb, match.group(3))


@dataclass(frozen=True)
class Decoded:
    """An instruction by both; ``it``: it stands in an IT block."""

    insn: Insn
    it: bool
    objdump: str


def decoded(path: Path) -> Iterator[Decoded]:
    """Every instruction of an archive, decoded at its place in its section."""
    block: tuple[Condition, ...] = ()
    end = -1
    for line in disassembled(path):
        if line.addr != end:
            block = ()
        insn = decode(line.raw, line.addr, line.thumb, block)
        yield Decoded(insn, bool(block), line.text)
        end = insn.next
        block = block[1:] or it_conditions(insn)


def form(insn: Insn) -> tuple[bool, int, str]:
    """An instruction with its registers and numbers struck out, except pc and sp."""
    text = re.sub(r"#?-?0x[0-9a-f]+|#-?\d+", "#", insn.text)
    text = re.sub(r"\b(r\d+|sb|sl|fp|ip|lr)\b", "r", text)
    text = re.sub(r"\b[dqs]\d+\b", "v", text)
    return insn.thumb, insn.size, re.sub(r"\{(?:r(?:, )?)+", "{r", text)


@cache
def sample() -> tuple[Decoded, ...]:
    """Each distinct encoding of SAMPLE once, in order of appearance."""
    seen: dict[tuple[bytes, bool, Condition, bool], Decoded] = {}
    (version,) = LIBGCC.iterdir()
    for name in SAMPLE:
        for item in decoded(version / name):
            key = (item.insn.raw, item.insn.thumb, item.insn.cond, item.it)
            seen.setdefault(key, item)
    return tuple(seen.values())
