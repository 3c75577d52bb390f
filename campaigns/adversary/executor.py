"""Executes hostile programs in Unicorn, the processor core of QEMU, without code of the analysis.

The interrupt controller is modelled here: an interrupt that has arrived is pending until it is
acknowledged, and visible in the registers that the platform names. When an interrupt is pending and
not masked, the execution stops, as it would be taken there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from unicorn import (
    UC_ARCH_ARM,
    UC_HOOK_CODE,
    UC_HOOK_INTR,
    UC_HOOK_MEM_READ,
    UC_HOOK_MEM_WRITE,
    UC_MEM_WRITE,
    UC_MODE_ARM,
    UC_MODE_THUMB,
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

from campaigns.adversary.address_spaces import FIRST, SECOND, switched_on
from campaigns.adversary.interrupts import ACK
from campaigns.adversary.program import DATA_WORDS, Board, Input, Memory
from campaigns.adversary.write_back import DirtyLines, Maintenance, maintenance

__all__ = ["BELOW", "RETURN", "STEPS", "Arrival", "End", "Executor", "Run"]

RAM, SIZE = 0xF000_0000, 0x80_0000
LOW, LOW_SIZE = 0x0010_0000, 0x20_0000
BELOW = 0x1000_0000  # distance down to a second address of the same memory
STACK, IRQ_STACK = 0xF070_0000, 0xF071_0000
RETURN = 0xF07F_0000
SETUP = 0xF07E_0000  # code of the executor
STEPS = 2500
SVC, IRQ, USER, MASKED, THUMB_BIT = 0x13, 0x12, 0x10, 0xC0, 0x20
I_BIT, MODE = 0x80, 0x1F
IT_BITS = 0x0600FC00
NEVER = 1 << 60


class End(Enum):
    """The end of an execution."""

    RETURNED = "returned"
    TAKEN = "an interrupt was taken"
    STEPS = "too long"
    FAULT = "fault"
    WAITS = "waits for an interrupt"


@dataclass(frozen=True, slots=True)
class Arrival:
    """When a line becomes pending: before instruction ``step``, or just after a read."""

    step: int = NEVER
    read: int = NEVER  # number of reads of pending registers that saw nothing
    pattern: int = 1  # content of the first pending registers; one word of 32 bits each


@dataclass(slots=True)
class Run:
    """One execution: addresses of instructions, and its events."""

    pcs: list[int] = field(default_factory=list)
    accesses: dict[int, int] = field(default_factory=dict)  # instruction -> lowest address
    reads: list[int] = field(default_factory=list)  # instructions that read a pending register
    unmasked: list[int] = field(default_factory=list)  # instructions before which I is clear
    user: list[int] = field(default_factory=list)  # instructions in User mode
    end: End = End.STEPS
    arrived: int | None = None  # instruction before which, or in which, it arrived
    unaligned: bool = False

    @property
    def steps(self) -> int:
        """Instructions that were executed."""
        return len(self.pcs)


class Executor:
    """Runs the programs of one ELF."""

    def __init__(self, elf: Path, board: Board) -> None:
        self.board = board
        self._buffer = ctypes.create_string_buffer(SIZE + LOW_SIZE + 4096)
        self._base = (ctypes.addressof(self._buffer) + 4095) & ~4095
        self.symbols, self._text, self._data = read(elf)
        self._uc = uc = Uc(UC_ARCH_ARM, UC_MODE_THUMB if board.thumb else UC_MODE_ARM)
        uc.ctl_set_cpu_model(UC_CPU_ARM_CORTEX_A8 if board.armv7 else UC_CPU_ARM_1136)
        for window in (RAM, RAM - BELOW):
            uc.mem_map_ptr(window, SIZE, 7, ctypes.c_void_p(self._base))
        uc.mem_map_ptr(LOW, LOW_SIZE, 7, ctypes.c_void_p(self._base + SIZE))
        page = board.controller & ~0xFFF
        uc.mmio_map(page, 0x1000, self._device_read, page, self._device_write, page)
        for addr, content in self._text:
            self._put(addr, content)
        uc.hook_add(UC_HOOK_CODE, self._on_code)
        uc.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, self._on_access)
        uc.hook_add(UC_HOOK_INTR, self._on_exception)
        # The floating-point unit is on.
        uc.reg_write_batch([(UC_ARM_REG_CPSR, SVC | MASKED)])
        self._enable_fpu()
        self._start = uc.context_save()
        self._paged = False  # ever, so that there are translations to forget
        self.run = Run()
        self._arrival = Arrival()
        self._pending = self._watch = False
        self._quiet = 0  # reads that saw nothing
        self._in_it: tuple[int, ...] = ()
        self._blocks: dict[int, tuple[int, ...]] = {}
        self._masks: dict[int, bool] = {}
        self._unmasked = self._user = self._changed = False
        self._touched = False  # memory, by the instruction before
        self._dirty: DirtyLines | None = None
        self._operations: dict[int, Maintenance | None] = {}

    def _place(self, address: int) -> int:
        """The executor's address for the byte at a physical address; 0 if it has none."""
        if RAM <= address < RAM + SIZE:
            return self._base + address - RAM
        if LOW <= address < LOW + LOW_SIZE:
            return self._base + SIZE + address - LOW
        return 0

    def _put(self, address: int, content: bytes) -> None:
        ctypes.memmove(self._place(address), content, len(content))

    def _get(self, address: int, size: int) -> bytes:
        return ctypes.string_at(self._place(address), size)

    def _enable_fpu(self) -> None:
        from unicorn.arm_const import UC_ARM_REG_C1_C0_2, UC_ARM_REG_FPEXC

        self._uc.reg_write(UC_ARM_REG_C1_C0_2, 0xF00000)
        self._uc.reg_write(UC_ARM_REG_FPEXC, 0x40000000)

    def _device_read(self, uc: Uc, offset: int, size: int, page: int) -> int:
        word = page + offset & ~3
        if word not in self.board.pending:
            return 0
        run = self.run
        at = run.steps - 1
        if not run.reads or run.reads[-1] != at:
            run.reads.append(at)
        value = 0
        if self._pending:
            shift = 32 * self.board.pending.index(word)
            value = (self._arrival.pattern >> shift) & 0xFFFFFFFF
            if len(self.board.pending) == 1 and value == 0:
                value = 1
        else:
            self._quiet += 1
            if self._quiet == self._arrival.read:
                self._arrive(at)
        return (value >> 8 * (offset & 3)) & ((1 << 8 * size) - 1)

    def _device_write(self, uc: Uc, offset: int, size: int, value: int, page: int) -> None:
        if page + (offset & ~3) == self.board.controller + ACK:
            self._pending = False

    def _arrive(self, at: int) -> None:
        self.run.arrived = at
        self._pending = True

    def _on_code(self, uc: Uc, address: int, size: int, _: object) -> None:
        run = self.run
        if len(run.pcs) >= STEPS:
            uc.emu_stop()
            return
        if self._in_it:
            self._skipped(address)
        elif self._touched:
            self._leave_it_block()
        if run.arrived is None and len(run.pcs) >= self._arrival.step:
            self._arrive(len(run.pcs))
        if self._changed:
            state = uc.reg_read(UC_ARM_REG_CPSR)
            self._unmasked, self._user = not state & I_BIT, state & MODE == USER
            self._changed = False
        if self._user:
            run.user.append(len(run.pcs))
        if self._unmasked and self._watch:
            run.unmasked.append(len(run.pcs))
            if self._pending:
                run.end = End.TAKEN
                uc.emu_stop()
                return
        run.pcs.append(address)
        if self._dirty is not None:
            self._maintain(address)
        if self._watch:
            self._changed = self._may_unmask(address)
        if self.board.thumb and not self._in_it:
            self._in_it = self._it_block(address)

    def _skipped(self, address: int) -> None:
        """Add the skipped instructions of an IT block, which Unicorn does not report."""
        *inside, end = self._in_it
        if address in inside:
            at = inside.index(address)
            self.run.pcs += inside[:at]
            self._in_it = (*inside[at + 1 :], end) if inside[at + 1 :] else ()
        else:
            if address == end:
                self.run.pcs += inside
            self._in_it = ()

    def _leave_it_block(self) -> None:
        """Clear the IT bits, which do not belong to this instruction.

        Unicorn restores the previous instruction's bits when an access to memory is hooked; later
        instructions would be skipped.
        """
        self._touched = False
        state = self._uc.reg_read(UC_ARM_REG_CPSR)
        if state & IT_BITS:
            self._uc.reg_write(UC_ARM_REG_CPSR, state & ~IT_BITS)

    def _it_block(self, address: int) -> tuple[int, ...]:
        """The instructions of the IT block at ``address``, and the next instruction."""
        known = self._blocks.get(address)
        if known is None:
            code, found = self._half(address), list[int]()
            if code & 0xFF00 == 0xBF00 and code & 15:
                at = address + 2
                for _ in range(4 - ((code & -code).bit_length() - 1)):
                    found.append(at)
                    at += 4 if self._half(at) >> 11 in (0x1D, 0x1E, 0x1F) else 2
                found.append(at)
            known = self._blocks[address] = tuple(found)
        return known

    def _may_unmask(self, address: int) -> bool:
        """Whether the instruction there may change mode or masks."""
        known = self._masks.get(address)
        if known is None:
            first, second = self._half(address), self._half(address + 2)
            if self.board.thumb:
                narrow = first >> 11 not in (0x1D, 0x1E, 0x1F)
                known = first & 0xFFE8 == 0xB660 if narrow else first & 0xFE00 in (0xE800, 0xF200)
            else:
                code = second << 16 | first
                known = second >> 12 == 0xF or code & 0x0FB00000 in (0x01200000, 0x03200000)
                known = known or code & 0x0010F000 == 0x0010F000 or code & 0x0E508000 == 0x08508000
            self._masks[address] = known
        return known

    def _maintain(self, address: int) -> None:
        """Apply a maintenance operation to memory: Unicorn treats it as a NOP."""
        if address not in self._operations:
            first, second = self._half(address), self._half(address + 2)
            code = first << 16 | second if self.board.thumb else second << 16 | first
            self._operations[address] = maintenance(code, self.board)
        operation = self._operations[address]
        if operation is None or self._dirty is None:
            return
        if not self.board.thumb and not self._passes(self._half(address + 2) >> 12):
            return
        operands = (self._uc.reg_read(UC_ARM_REG_R0 + number) for number in operation.operands)
        self._dirty.maintain(operation, tuple(operands))

    def _passes(self, condition: int) -> bool:
        """Whether an ARM instruction of this condition is executed."""
        n, z, c, v = (
            bool(self._uc.reg_read(UC_ARM_REG_CPSR) >> bit & 1) for bit in (31, 30, 29, 28)
        )
        holds = (z, c, n, v, c and not z, n == v, not z and n == v, True)[condition >> 1]
        return holds != bool(condition & 1) or condition == 15

    def _half(self, address: int) -> int:
        place = self._place(address)
        return int(ctypes.c_uint16.from_address(place).value) if place else 0

    def _on_access(self, uc: Uc, kind: int, addr: int, size: int, value: int, _: object) -> None:
        run = self.run
        at = len(run.pcs) - 1
        self._touched = self.board.thumb
        if addr & (size - 1):
            run.unaligned = True
        if self._dirty is not None and kind == UC_MEM_WRITE and self._place(addr):
            self._dirty.stored(addr, size)
        before = run.accesses.get(at)
        if before is None or addr < before:
            run.accesses[at] = addr

    def _on_exception(self, uc: Uc, number: int, _: object) -> None:
        self.run.end = End.FAULT
        uc.emu_stop()

    def fresh(self, program: str, chance: Random | None) -> None:
        """Reset the data to the ELF's, with random words for ``program``."""
        for addr, content in (*self._text, *self._data):
            self._put(addr, content)
        ctypes.memset(self._base + STACK - 0x1000 - RAM, 0x5A, 0x2000)
        if chance is not None:
            place = self.symbols["d" + program]
            noise = chance.randbytes(4 * DATA_WORDS)
            ctypes.memmove(self._base + place - RAM, noise, len(noise))

    def execute(
        self,
        program: str,
        given: Input,
        arrival: Arrival | None,
        memory: Memory = Memory.FLAT,
        *,
        lost: bool = False,
    ) -> Run:
        """One execution of the entry of ``program``, interrupts watched if one may arrive.

        ``lost``: stores stay in a cache until their line is cleaned.
        """
        uc = self._begin(arrival, memory)
        if memory is Memory.CACHED and lost:
            self._dirty = DirtyLines(self.board, self._get, self._put)
        registers: dict[int, int] = dict.fromkeys(range(13), 0x1234)
        for name, value in given:
            registers[int(name[1:])] = self._value(program, value)
        for number, value in registers.items():
            uc.reg_write(UC_ARM_REG_R0 + number, value)
        uc.reg_write(UC_ARM_REG_SPSR, USER)
        uc.reg_write(UC_ARM_REG_SP, STACK)
        uc.reg_write(UC_ARM_REG_LR, RETURN | self.board.thumb)
        return self._go("p" + program)

    def handle(self, program: str, arrival: Arrival, *, pending: bool) -> Run:
        """One execution of the handler of ``program``: the mode is IRQ, as at its vector."""
        uc = self._begin(arrival)
        for number in range(13):
            uc.reg_write(UC_ARM_REG_R0 + number, 0x4321)
        state = IRQ | MASKED | (THUMB_BIT if self.board.thumb else 0)
        uc.reg_write(UC_ARM_REG_CPSR, state)
        uc.reg_write(UC_ARM_REG_SPSR, USER | (THUMB_BIT if self.board.thumb else 0))
        uc.reg_write(UC_ARM_REG_SP, IRQ_STACK)
        uc.reg_write(UC_ARM_REG_LR, RETURN + 4)
        self._pending = pending
        return self._go("h" + program)

    def _begin(self, arrival: Arrival | None, memory: Memory = Memory.FLAT) -> Uc:
        self.run = Run()
        self._dirty = None
        self._arrival = arrival or Arrival()
        self._watch = arrival is not None
        self._pending, self._quiet, self._in_it = False, 0, ()
        self._unmasked = self._user = self._changed = self._touched = False
        self._uc.context_restore(self._start)
        if memory is Memory.PAGED:
            self._paged = True
            for space in (FIRST, SECOND):
                self._put(space.base, space.table())
            self._prepare(switched_on(FIRST))
        elif self._paged:
            self._prepare(switched_on(None))
        return self._uc

    def _prepare(self, code: bytes) -> None:
        """Execute set-up code."""
        self._put(SETUP, code)
        words = code[:-4] if len(code) > 4 else code
        self._uc.reg_write(UC_ARM_REG_CPSR, SVC | MASKED)
        self._uc.ctl_remove_cache(SETUP, SETUP + len(code))
        self._uc.emu_start(SETUP, SETUP + len(words))
        self.run = Run()

    def _go(self, symbol: str) -> Run:
        uc, run = self._uc, self.run
        start = self.symbols[symbol] & ~1 | self.board.thumb
        try:
            uc.emu_start(start, RETURN)
        except UcError:
            run.end = End.FAULT
            return run
        if run.end is End.STEPS and run.steps < STEPS:
            returned = uc.reg_read(UC_ARM_REG_PC) & ~1 == RETURN
            run.end = End.RETURNED if returned else End.WAITS
        return run

    def _value(self, program: str, value: object) -> int:
        if isinstance(value, int):
            return value
        name, _, offset = str(value).partition("+")
        return self.symbols[name + program] + int(offset or 0)


Pieces = list[tuple[int, bytes]]


def read(elf: Path) -> tuple[Mapping[str, int], Pieces, Pieces]:
    """The symbols, the loaded sections and the writable sections of an ELF."""
    with elf.open("rb") as file:
        content = ELFFile(file)
        table = content.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = {s.name: s["st_value"] for s in table.iter_symbols() if s.name[:1] in "pdht"}
        loaded = [s for s in content.iter_sections() if s["sh_flags"] & 2 and s.data_size]
        pieces = [(s["sh_addr"], s.data()) for s in loaded if s["sh_type"] == "SHT_PROGBITS"]
        data = [(s["sh_addr"], s.data()) for s in loaded if s["sh_flags"] & 1]
    return symbols, pieces, data
