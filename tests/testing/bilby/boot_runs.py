# SPDX-License-Identifier: BSD-2-Clause
"""Sections of boot in a processor core, instruction by instruction: their cache operations.

QEMU has no caches, so a kernel that leaves a line out boots there as well. The core is Unicorn's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from unicorn import (
    UC_ARCH_ARM,
    UC_HOOK_CODE,
    UC_HOOK_MEM_READ_UNMAPPED,
    UC_HOOK_MEM_WRITE_UNMAPPED,
    UC_MODE_ARM,
    Uc,
    UcError,
)
from unicorn.arm_const import (
    UC_ARM_REG_CPSR,
    UC_ARM_REG_LR,
    UC_ARM_REG_PC,
    UC_ARM_REG_R0,
    UC_ARM_REG_SP,
    UC_ARM_REG_SPSR,
    UC_CPU_ARM_1136,
    UC_CPU_ARM_CORTEX_A8,
)

from tests.testing.bilby.build import symbols

PAGE = 4096
AT_MOST = 300_000  # instructions; boot is done after a third of them
STOP = 0x1000  # nothing is there
LINE = 32
MCR, MRC = 0x0E000010, 0x0E100010
LOAD_MASK, LOAD = 0x0FF00FFF, 0x05900000  # ldr rN, [rM]
NE = 1  # a condition
SCTLR, ACTLR, TTBR = (15, 0, 1, 0, 0), (15, 0, 1, 0, 1), (15, 0, 2, 0, 0)
CLIDR, CCSIDR, BY_SET_AND_WAY = (15, 1, 0, 0, 1), (15, 1, 0, 0, 0), (15, 0, 7, 6, 2)
CSSELR = (15, 2, 0, 0, 0)
MAIN_ID = (15, 0, 0, 0, 0)
THREAD_REGISTERS: set[tuple[int, ...]] = {(15, 0, 13, 0, 2), (15, 0, 13, 0, 3)}
FETCH, EVICT, DRAIN = (15, 0, 7, 13, 1), (15, 0, 7, 14, 1), (15, 0, 7, 10, 4)
LOCK_DATA, LOCK_INSTRUCTIONS = (15, 0, 9, 0, 0), (15, 0, 9, 0, 1)
OTHERS, TARGET = 0xFFFFFFF7, 0xFFFFFFF8  # ways that are not filled, as lock.h has them
TABLE_WALK = 0x18  # of TTBR: outer write-back
DIRT = b"\xa5"
MIB = 1 << 20

# Of short descriptors, for the kernel only: a section that is cached, and one that is not executed;
# a table; a page of a device; a cached page of instructions.
SECTION, SECTION_NEVER, TABLE, DEVICE_PAGE, VECTOR_PAGE = 0x40E, 0x41E, 0x1, 0x17, 0x21E
WINDOW, DEVICE_WINDOW, VECTORS = 0xF0000000, 0xF8000000, 0xFFFF0000
RAM = 128 * MIB

# Boot's writes, by machine. Hardware may ignore registers that should be zero.
WRITTEN: dict[str, dict[tuple[int, ...], int]] = {
    "arm1136": {
        (14, 7, 1, 0, 0): 2, (14, 7, 2, 0, 0): 0, (15, 0, 1, 0, 2): 0, (15, 0, 7, 7, 0): 0,
        (15, 0, 8, 7, 0): 0, DRAIN: 0, (15, 0, 2, 0, 2): 0, (15, 0, 3, 0, 0): 1,
        (15, 0, 13, 0, 1): 0, **dict.fromkeys(THREAD_REGISTERS, 0),
    },
    "cortex-a8": {
        (14, 6, 0, 0, 0): 1, (15, 0, 1, 0, 2): 0, (15, 0, 9, 14, 0): 0, (15, 0, 13, 0, 2): 0,
        (15, 0, 13, 0, 3): 0, (15, 0, 7, 5, 0): 0, (15, 0, 7, 5, 6): 0, (15, 0, 8, 7, 0): 0,
        (15, 0, 2, 0, 2): 0, (15, 0, 3, 0, 0): 1, (15, 0, 13, 0, 1): 0,
    },
}  # fmt: skip
# Main ID registers of revisions, and the thread registers that they have.
REVISIONS: dict[str, dict[int, set[tuple[int, ...]]]] = {
    "arm1136": {0x4107B364: set(), 0x4117B363: THREAD_REGISTERS},
    "cortex-a8": {0x413FC082: THREAD_REGISTERS},
}
CORES = {"arm1136": UC_CPU_ARM_1136, "cortex-a8": UC_CPU_ARM_CORTEX_A8}
# Bits of the control register when the MMU is switched on: set bits, and clear bits.
CONTROL = {"arm1136": (0xC03005, 0x800), "cortex-a8": (0x3005, 0x70000802)}

# Boot's reads: each bit that it must change; on the Cortex-A8, also the caches of boards (32 KiB of
# 4 ways, then 256 KiB of 8), of which the executing core has one.
READ: dict[str, dict[tuple[int, ...], int]] = {
    "arm1136": {SCTLR: 0x800},
    "cortex-a8": {SCTLR: 0x70000802, ACTLR: 0, CLIDR: 0x0A000023},
}
SIZES = {0: 0xE00FE01A, 2: 0xF03FE03A}  # CCSIDR, by CSSELR

# Where boards begin, and the pages of their devices: in the window of devices, in the bus.
BOARDS = {
    "arm1136": (0x80000000, [(0, 0x68000000), (1, 0x53F98000)]),
    "cortex-a8": (0x40000000, [(0x20, 0x01C20000)]),
}


@dataclass(frozen=True, slots=True)
class Access:
    """An access to a coprocessor register, or a load.

    ``kind`` is mcr, mrc or load; ``place`` is the coprocessor and register; ``value`` is the word,
    or the address of a load.
    """

    kind: str
    place: tuple[int, ...]
    value: int


VECTOR_ENTRIES = ("kernel_panic", "entry_undefined", "entry_svc", "entry_prefetch_abort",
                  "entry_data_abort", "kernel_panic", "entry_irq", "kernel_panic")  # fmt: skip
HANDLERS = {
    "entry_undefined": "handle_undefined",
    "entry_prefetch_abort": "handle_prefetch_abort",
    "entry_data_abort": "handle_data_abort",
    "entry_svc": "handle_syscall",
    "entry_irq": "handle_interrupt",
    "leave_to_interrupt": "handle_interrupt",
}
FROM_ANYWHERE = ("entry_svc", "entry_irq", "leave_to_interrupt")  # the idle thread is privileged
A_HANDLER = 100  # instructions: more than come before one
USER, SUPERVISOR = 0x10, 0x13

Read = Callable[[int, int], bytes]  # of the memory that is left: address and bytes


def executed(
    elf: Path, begin: str, machine: str, *, physical: bool, main_id: int = 0
) -> tuple[list[Access], Read]:
    """A function, up to its return; with the MMU off, up to where it is switched on.

    ``main_id`` is read from the main ID register; 0 stands for the core's own. Memory
    that the ELF does not fill is not zero, and neither are registers.
    """
    told_words = READ[machine] | ({MAIN_ID: main_id} if main_id else {})
    core_of = Uc(UC_ARCH_ARM, UC_MODE_ARM)
    core_of.ctl_set_cpu_model(CORES[machine])
    mapped: set[int] = set()

    def provide(address: int, size: int) -> None:
        for page in range(address // PAGE, -(-(address + size) // PAGE)):
            if page not in mapped:
                core_of.mem_map(page * PAGE, PAGE)
                core_of.mem_write(page * PAGE, DIRT * PAGE)
                mapped.add(page)

    watched: set[int] = set()
    with elf.open("rb") as file:
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            address = segment["p_paddr" if physical else "p_vaddr"]
            provide(address, segment["p_memsz"])
            core_of.mem_write(address, segment.data())
            watched |= accesses(address, segment.data())
    start = symbols(elf)[begin]
    if physical:
        start = _physical(elf, start)
    found: list[Access] = []
    waiting: list[tuple[tuple[int, ...], int]] = []
    selected = [0]

    def register(number: int) -> int:
        return int(core_of.reg_read(UC_ARM_REG_R0 + number))

    def each(_: Any, address: int, __: int, ___: object) -> None:
        while waiting:
            place, number = waiting.pop()
            told = SIZES.get(selected[-1]) if place == CCSIDR else told_words.get(place)
            if told is not None:
                core_of.reg_write(UC_ARM_REG_R0 + number, told)
            found.append(Access("mrc", place, register(number)))
        word = int.from_bytes(core_of.mem_read(address, 4), "little")
        number = word >> 12 & 15
        equal = int(core_of.reg_read(UC_ARM_REG_CPSR)) >> 30 & 1
        is_executed = word >> 28 == 14 or (word >> 28 == NE and not equal)
        if is_executed and word & 0x0F100010 in (MCR, MRC):
            place = (word >> 8 & 15, word >> 21 & 7, word >> 16 & 15, word & 15, word >> 5 & 7)
            if word & 0x00100000:
                waiting.append((place, number))
            else:
                found.append(Access("mcr", place, register(number)))
                if place == CSSELR:
                    selected.append(register(number))
                if physical and place == SCTLR:
                    core_of.emu_stop()
        elif word & LOAD_MASK == LOAD:
            found.append(Access("load", (), register(word >> 16 & 15)))

    def anywhere(_: Any, __: int, address: int, size: int, ___: int, ____: object) -> bool:
        provide(address, size)
        return True

    provide(STOP, PAGE)
    for number in range(13):
        core_of.reg_write(UC_ARM_REG_R0 + number, int.from_bytes(4 * DIRT, "little"))
    core_of.reg_write(UC_ARM_REG_SP, STOP + PAGE)
    core_of.reg_write(UC_ARM_REG_LR, STOP)
    for at in watched:
        core_of.hook_add(UC_HOOK_CODE, each, begin=at, end=at)
    core_of.hook_add(UC_HOOK_MEM_READ_UNMAPPED | UC_HOOK_MEM_WRITE_UNMAPPED, anywhere)
    core_of.emu_start(start, STOP, count=AT_MOST)
    return found, lambda address, size: bytes(core_of.mem_read(address, size))


def accesses(address: int, code: bytes) -> set[int]:
    """Where the instructions are that are watched, and those behind a read of a coprocessor."""
    words = enumerate(struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4]))
    kinds = {address + 4 * i: word & 0x0F100010 for i, word in words if is_watched(word)}
    return set(kinds) | {at + 4 for at, kind in kinds.items() if kind == MRC}


def is_watched(word: int) -> bool:
    return word & 0x0F100010 in (MCR, MRC) or word & LOAD_MASK == LOAD


def _physical(elf: Path, address: int) -> int:
    """Cleared memory is behind the last segment before it."""
    with elf.open("rb") as file:
        segments = [(int(s["p_vaddr"]), int(s["p_paddr"]))
                    for s in ELFFile(file).iter_segments("PT_LOAD")]  # fmt: skip
    virtual, physical = max(segment for segment in segments if segment[0] <= address)
    return physical + address - virtual


def wrong_boot(elf: Path, machine: str) -> str:
    """The first error of boot up to the MMU, on any revision of the core, or ""."""
    wrong = (wrong_boot_of(elf, machine, main_id) for main_id in REVISIONS[machine])
    return next(filter(None, wrong), "")


def wrong_boot_of(elf: Path, machine: str, main_id: int) -> str:
    """The first error of boot up to the MMU on the revision with this main ID, or ""."""
    found, read = executed(elf, "_start", machine, physical=True, main_id=main_id)
    closed = {access.place for access in found} & THREAD_REGISTERS
    if closed != REVISIONS[machine][main_id]:
        return f"of thread registers {closed} are closed on revision {main_id:#x}"
    for access in found:
        wanted = WRITTEN[machine].get(access.place, access.value)
        if access.kind == "mcr" and access.value != wanted:
            return f"{access.place} becomes {access.value:#x}, not {wanted:#x}"
    directory = _physical(elf, symbols(elf)["kernel_directory"]) | TABLE_WALK
    if [a.value for a in found if a.kind == "mcr" and a.place == TTBR] != [directory]:
        return f"tables are not walked from {directory:#x}"
    (control,) = [a.value for a in found if a.kind == "mcr" and a.place == SCTLR]
    ones, zeros = CONTROL[machine]
    if control & (ones | zeros) != ones:
        return f"the control register becomes {control:#x}"
    wrong = wrong_memory(elf, machine, read)
    if wrong or machine != "cortex-a8":
        return wrong
    if not [a for a in found if a.kind == "mcr" and a.place == ACTLR and a.value & 2]:
        return "the L2 cache stays off"
    return wrong_invalidation(found)


def wrong_memory(elf: Path, machine: str, read: Read) -> str:
    """The first wrong word of cleared memory or wrong entry of the translation tables, or ""."""
    table = symbols(elf)
    begin, end = (_physical(elf, table[name]) for name in ("__bss_start", "__bss_end"))
    left = bytearray(read(begin, end - begin))
    for name, entries in tables(elf, machine).items():
        at = _physical(elf, table[name]) - begin
        size = 4 * len(entries)
        found = struct.unpack(f"<{len(entries)}I", left[at : at + size])
        for number, (got, want) in enumerate(zip(found, entries, strict=True)):
            if got != want:
                return f"entry {number:#x} of {name} is {got:#x}, not {want:#x}"
        left[at : at + size] = bytes(size)
    return "not all of .bss is cleared" if any(left) else ""


def tables(elf: Path, machine: str) -> dict[str, list[int]]:
    """The tables that boot leaves. Only the first megabyte of the window is executed."""
    table = symbols(elf)
    ram, devices = BOARDS[machine]
    directory, device_table, vector_table = [0] * 4096, [0] * 256, [0] * 256
    for number in range(RAM // MIB):
        directory[WINDOW // MIB + number] = ram + number * MIB | SECTION_NEVER
    directory[WINDOW // MIB] = directory[ram // MIB] = ram | SECTION
    directory[DEVICE_WINDOW // MIB] = _physical(elf, table["device_table"]) | TABLE
    directory[VECTORS // MIB] = _physical(elf, table["vector_table"]) | TABLE
    for number, page in devices:
        device_table[number] = page | DEVICE_PAGE
    vector_table[VECTORS // PAGE % 256] = _physical(elf, table["vector_reset"]) | VECTOR_PAGE
    return {
        "kernel_directory": directory, "device_table": device_table, "vector_table": vector_table,
    }  # fmt: skip


def wrong_invalidation(found: list[Access]) -> str:
    """Whether each set and way of each data cache of the Cortex-A8 is invalidated; how not."""
    done = [access.value for access in found if access.place == BY_SET_AND_WAY]
    (levels,) = [access.value for access in found if access.place == CLIDR]
    sizes = iter([access.value for access in found if access.place == CCSIDR])
    wanted = []
    for level in range(7):
        if (levels >> 3 * level) & 7 < 2:
            continue
        size = next(sizes, None)
        if size is None:
            return f"the size of level {level + 1} is not asked for"
        line, ways, sets = (size & 7) + 4, (size >> 3 & 0x3FF) + 1, (size >> 13 & 0x7FFF) + 1
        shift = 32 - (ways - 1).bit_length()
        wanted += [
            level << 1 | a_set << line | (way << shift if ways > 1 else 0)
            for a_set in range(sets)
            for way in range(ways)
        ]
    if sorted(done) != sorted(wanted):
        return f"{len(set(done) & set(wanted))} of {len(wanted)} lines in {len(done)} operations"
    return ""


def _table(elf: Path, name: str) -> list[int]:
    """Addresses up to a zero."""
    with elf.open("rb") as file:
        address, words = symbols(elf)[name], []
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            offset = address - int(segment["p_vaddr"])
            if 0 <= offset < segment["p_filesz"]:
                data = segment.data()[offset:]
                words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, 520, 4)]
    return words[: words.index(0)]


def wrong_locking(elf: Path) -> str:
    """The first difference from the ARM1136's sequence to lock both tables, or ""."""
    table = symbols(elf)
    own = range(table["pin_lines"], table["pin_lines_end"] + 64, LINE)
    instructions, data = _table(elf, "pinned_instructions"), _table(elf, "pinned_data")
    steps = [
        (LOCK_INSTRUCTIONS, [TARGET]), (FETCH, list(own)), (LOCK_INSTRUCTIONS, [OTHERS]),
        (FETCH, instructions), (LOCK_INSTRUCTIONS, [TARGET]), (LOCK_DATA, [TARGET]),
        (EVICT, data), (DRAIN, [0]), (LOCK_DATA, [OTHERS]), ((), data), (LOCK_DATA, [TARGET]),
    ]  # fmt: skip
    wanted = [(place, value) for place, values in steps for value in values]
    places = {place for place, _ in steps}
    found = [
        (access.place, access.value)
        for access in executed(elf, "pin_lines", "arm1136", physical=False)[0]
        if access.place in places
    ]
    for at, (got, want) in enumerate(zip(found, wanted, strict=False)):
        if got != want:
            return f"step {at} is {got[0]} {got[1]:#x}, not {want[0]} {want[1]:#x}"
    return "" if len(found) == len(wanted) else f"{len(found)} steps, not {len(wanted)}"


def wrong_entries(elf: Path) -> str:
    """The first wrong exception entry, or "".

    It is another function at a vector, a handler whose stack is not empty, an exception from the
    kernel without a panic, or a panic that ends.
    """
    table = symbols(elf)
    panic = table["kernel_panic"]
    for number, entry in enumerate(VECTOR_ENTRIES):
        at, _ = after(elf, VECTORS + 4 * number, 1)
        if at != table[entry]:
            return f"vector {number} enters {at:#x}, not {entry}"
    for entry, handler in HANDLERS.items():
        wanted = table[handler], table["kernel_stack_top"]
        if after(elf, table[entry], A_HANDLER, stop=wanted[0]) != wanted:
            return f"{entry} does not come to {handler} with an empty stack"
        if entry not in FROM_ANYWHERE:
            at, _ = after(elf, table[entry], A_HANDLER, SUPERVISOR, stop=panic)
            if at != panic:
                return f"{entry} from the kernel is no panic"
    at, _ = after(elf, panic, A_HANDLER)
    return "" if panic <= at < panic + 8 else f"a panic goes on at {at:#x}"


def after(elf: Path, start: int, count: int, status: int = USER, stop: int = 0) -> tuple[int, int]:
    """pc and sp of a core after ``count`` instructions, or at ``stop``, or after a fault.

    ``status``: the interrupted code's status.
    """
    core = Uc(UC_ARCH_ARM, UC_MODE_ARM)
    with elf.open("rb") as file:
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            first = segment["p_vaddr"] // PAGE * PAGE
            last = -(-(segment["p_vaddr"] + segment["p_memsz"]) // PAGE) * PAGE
            core.mem_map(first, last - first)
            core.mem_write(segment["p_vaddr"], segment.data())

    def anywhere(_: Any, __: int, address: int, ___: int, ____: int, _____: object) -> bool:
        core.mem_map(address // PAGE * PAGE, PAGE)
        return True

    core.hook_add(UC_HOOK_MEM_READ_UNMAPPED | UC_HOOK_MEM_WRITE_UNMAPPED, anywhere)
    core.reg_write(UC_ARM_REG_SPSR, status)
    core.reg_write(UC_ARM_REG_SP, WINDOW + PAGE // 2)
    with suppress(UcError):
        core.emu_start(start, stop, count=count)
    return int(core.reg_read(UC_ARM_REG_PC)), int(core.reg_read(UC_ARM_REG_SP))
