# SPDX-License-Identifier: BSD-2-Clause
"""The L2 cache after boot's procedure to lock the image, replayed on a model of both levels.

The core is Unicorn's; the model follows each access of ``pin_outer``. A load, or the walk that
translates an address, reaches L2 if L1 and the TLB do not have it; it then fills a way that the
lockdown register leaves open (ARM DDI 0284, 2.3). Instructions may reach L2 at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from unicorn import (
    UC_ARCH_ARM,
    UC_HOOK_CODE,
    UC_HOOK_MEM_READ,
    UC_HOOK_MEM_WRITE,
    UC_MODE_ARM,
    Uc,
)
from unicorn.arm_const import UC_ARM_REG_LR, UC_ARM_REG_R0, UC_ARM_REG_SP, UC_CPU_ARM_1136

from tests.testing.bilby.build import symbols

LINE, SETS, WAYS = 32, 512, 8
PAGE, MIB, STOP = 4096, 1 << 20, 0x1000
CONTROLLER, WINDOW_BASE, RAM_BASE = 0xF8003000, 0xF0000000, 0x80000000
CONTROL, AUXILIARY, SYNC, FORGET, CLEAN, LOCK_DATA, LOCK_INSTRUCTIONS = (
    0x100, 0x104, 0x730, 0x77C, 0x7FC, 0x900, 0x904,
)  # fmt: skip
FORGET_L1 = 0xEE070F1E  # mcr p15, 0, rN, c7, c14, 0: all lines of data are written back and dropped
REGISTER = 0xFFFF0FFF  # all but rN
WALK, UNKNOWN = "a walk", "an unknown line"


@dataclass(slots=True)
class Levels:
    """L1 and the TLB as sets that evict nothing, and L2 way by way."""

    is_on: bool
    lines: list[dict[int, object]] = field(default_factory=lambda: [{} for _ in range(WAYS)])
    locks: dict[int, int] = field(default_factory=lambda: {LOCK_DATA: 0, LOCK_INSTRUCTIONS: 0})
    l1: set[int] = field(default_factory=set)
    translated: set[int] = field(default_factory=set)
    written: list[tuple[int, int]] = field(default_factory=list)
    perhaps: set[object] = field(default_factory=set)  # lines that are in an unknown way, or none
    busy: Iterator[int] = field(
        default_factory=lambda: iter(())
    )  # ways on which an operation is under way, by reading

    def load(self, address: int) -> None:
        """Data at a virtual address of the kernel window."""
        self.translate(address)
        line = (address - WINDOW_BASE + RAM_BASE) // LINE
        if line not in self.l1:
            self.l1.add(line)
            self.fill(line, line % SETS, LOCK_DATA)

    def translate(self, address: int) -> None:
        """A walk may read a descriptor in any set."""
        if address // MIB not in self.translated:
            self.translated.add(address // MIB)
            for at in range(SETS):
                self.fill(WALK, at, LOCK_DATA)

    def fetch(self, address: int) -> None:
        """An instruction; L1 may have lost it."""
        line = (address - WINDOW_BASE + RAM_BASE) // LINE
        self.fill(line, line % SETS, LOCK_INSTRUCTIONS)

    def fill(self, content: object, at: int, register: int) -> None:
        """A miss replaces a line of a way that is left open: of any, if there are several."""
        if not self.is_on or any(way.get(at) == content for way in self.lines):
            return
        left = [way for n, way in enumerate(self.lines) if not self.locks[register] >> n & 1]
        known = len(left) == 1 and content not in self.perhaps
        for way in left:
            way[at] = content if known else UNKNOWN
        if left and not known:
            self.perhaps.add(content)

    def write(self, offset: int, value: int) -> None:
        """A register of the controller."""
        self.written.append((offset, value))
        if offset == CONTROL:
            self.is_on = bool(value & 1)
        elif offset in (FORGET, CLEAN):
            self.perhaps.clear()
            self.busy = iter((value, value & 1))
            for number, way in enumerate(self.lines):
                if value >> number & 1:
                    way.clear()
        elif offset in self.locks:
            self.locks[offset] = value


def replayed(elf: Path, *, was_on: bool) -> Levels:
    """The caches after ``pin_outer``; L2 may have been left on, with unknown lines."""
    core = Uc(UC_ARCH_ARM, UC_MODE_ARM)
    core.ctl_set_cpu_model(UC_CPU_ARM_1136)
    levels = Levels(was_on, [dict.fromkeys(range(SETS), UNKNOWN) for _ in range(WAYS)])

    def step(_: Any, address: int, __: int, ___: object) -> None:
        levels.fetch(address)
        word = int.from_bytes(core.mem_read(address, 4), "little")
        if word & REGISTER == FORGET_L1:
            levels.l1.clear()

    def read(_: Any, __: int, address: int, ___: int, ____: int, _____: object) -> None:
        if address // PAGE * PAGE != CONTROLLER:
            levels.load(address)
            return
        levels.translate(address)
        if address - CONTROLLER in (FORGET, CLEAN):  # done at the third reading
            busy = next(levels.busy, 0)
            core.mem_write(address, busy.to_bytes(4, "little"))

    def write(_: Any, __: int, address: int, ___: int, value: int, ____: object) -> None:
        levels.translate(address)
        levels.write(address - CONTROLLER, value & 0xFFFFFFFF)

    with elf.open("rb") as file:
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            first = segment["p_vaddr"] // PAGE * PAGE
            core.mem_map(
                first, -(-(segment["p_memsz"] + segment["p_vaddr"] - first) // PAGE) * PAGE
            )
            core.mem_write(segment["p_vaddr"], segment.data())
    table = symbols(elf)
    unmapped = table["__vectors_load"]
    core.mem_map(unmapped, -(-(table["__image_end"] - unmapped) // PAGE) * PAGE)
    core.mem_map(CONTROLLER, PAGE)
    core.mem_write(CONTROLLER + CONTROL, int(was_on).to_bytes(4, "little"))
    core.mem_map(STOP, PAGE)
    core.reg_write(UC_ARM_REG_SP, STOP + PAGE)
    core.reg_write(UC_ARM_REG_LR, STOP)
    core.reg_write(UC_ARM_REG_R0, 0xA5A5A5A5)
    core.hook_add(UC_HOOK_CODE, step)
    core.hook_add(UC_HOOK_MEM_READ, read)
    core.hook_add(UC_HOOK_MEM_WRITE, write, begin=CONTROLLER, end=CONTROLLER + PAGE - 1)
    core.emu_start(table["pin_outer"], STOP, count=100_000)
    return levels


def wrong_outer_locking(elf: Path) -> str:
    """The first difference between the locked ways and the image, or ""."""
    return next(filter(None, (_wrong(elf, was_on=was_on) for was_on in (False, True))), "")


def _wrong(elf: Path, *, was_on: bool) -> str:
    levels, table = replayed(elf, was_on=was_on), symbols(elf)
    start, end = (
        (table[name] - WINDOW_BASE + RAM_BASE) // LINE for name in ("__image_start", "__image_end")
    )
    ways = -(-(end - start) // SETS)
    closed = (1 << ways) - 1
    if not levels.is_on or set(levels.locks.values()) != {closed}:
        return f"L2 is left on: {levels.is_on}, with locked ways {levels.locks}"
    for line in range(start, end):
        way = (line - start) // SETS
        if levels.lines[way].get(line % SETS) != line:
            return f"way {way} has {levels.lines[way].get(line % SETS)}, not line {line:#x}"
    return _wrong_order(levels.written, was_on=was_on)


def _wrong_order(written: list[tuple[int, int]], *, was_on: bool) -> str:
    """Whether the cache is set up while off, and its lines are written back only if it was on."""
    offsets = [offset for offset, _ in written]
    on = written.index((CONTROL, 1))
    if not {AUXILIARY, FORGET, LOCK_DATA, LOCK_INSTRUCTIONS} <= set(offsets[:on]):
        return "L2 is switched on before it is set up"
    before = written[: offsets.index(AUXILIARY)]
    wanted = [(CLEAN, 0xFF), (SYNC, 0), (CONTROL, 0)] if was_on else []
    return "" if before == wanted else f"first writes {before}, not {wanted}"
