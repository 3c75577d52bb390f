"""One instruction on one state: the interpreter against Unicorn (QEMU's core as a library).

A result of the interpreter is *unknown* where it depends on an UNKNOWN or BANK op. That is found
by running it with several oracles: where they all agree, the value must be Unicorn's.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import unicorn
from unicorn import arm_const as uc
from unicorn.unicorn_const import UC_PROT_ALL

from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow, Insn
from quoll.errors import ControlFlowError
from quoll.semantics.lift import lift
from quoll.semantics.ops import Op
from quoll.semantics.system import COPROCESSOR
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine, Oracle

PAGE = 0x1000
PAGES = 512  # kept mapped; QEMU dies of some thousands of separate regions
SVC = 0x13
GENERAL = [
    *(getattr(uc, f"UC_ARM_REG_R{n}") for n in range(13)),
    uc.UC_ARM_REG_SP,
    uc.UC_ARM_REG_LR,
]
FLAG_BITS = (31, 30, 29, 28, 27, 16, 17, 18, 19)  # N Z C V Q GE0..GE3, as numbered in ops


def background(addr: int) -> int:
    """The byte at an address that nobody has written."""
    return (addr * 0x9E3779B1 >> 13 ^ addr >> 3) & 0xFF


BLOCKS: dict[int, bytes] = {}


def background_page(page: int) -> bytes:
    if page not in BLOCKS:
        BLOCKS[page] = bytes(background(page + n) for n in range(PAGE))
    return BLOCKS[page]


@dataclass
class State:
    """Registers 0 to 14 and flags before an instruction, and the saved status for returns."""

    general: list[int]
    flags: list[int]
    spsr: int


@dataclass
class Result:
    """The result of one execution. ``memory``: the written bytes; ``registers``: None on a trap."""

    registers: list[int] | None
    pc: int = 0
    thumb: bool = False
    memory: dict[int, int] = field(default_factory=dict)


class Verdict(Enum):
    EQUAL = "equal"
    UNKNOWN = "equal where known"
    WRONG = "wrong"


class Core:
    """Unicorn's Cortex-A15 in supervisor mode, VFP on; pages appear when touched."""

    def __init__(self) -> None:
        self._uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM)
        self._pages: set[int] = set()
        self._written: dict[int, int] = {}
        self._trapped = False
        everything = unicorn.UC_HOOK_MEM_UNMAPPED
        self._uc.hook_add(everything, self._unmapped)
        self._uc.hook_add(unicorn.UC_HOOK_MEM_WRITE, self._write)
        self._uc.hook_add(unicorn.UC_HOOK_INTR, self._interrupt)
        access = self._uc.reg_read(uc.UC_ARM_REG_C1_C0_2)
        self._uc.reg_write(uc.UC_ARM_REG_C1_C0_2, access | 0xF << 20)
        self._uc.reg_write(uc.UC_ARM_REG_FPEXC, 1 << 30)

    def _map(self, page: int) -> None:
        if page not in self._pages:
            self._uc.mem_map(page, PAGE, UC_PROT_ALL)
            self._uc.mem_write(page, background_page(page))
            self._pages.add(page)

    def _forget_pages(self) -> None:
        if len(self._pages) > PAGES:
            for page in self._pages:
                self._uc.mem_unmap(page, PAGE)
            self._pages.clear()

    def _unmapped(self, _uc: object, _kind: int, addr: int, size: int, _v: int, _d: object) -> bool:
        for at in (addr, addr + size - 1):
            self._map(at & 0xFFFFFFFF & -PAGE)
        return True

    def _write(self, _uc: object, _kind: int, addr: int, size: int, value: int, _d: object) -> None:
        for place in range(size):
            self._written[addr + place & 0xFFFFFFFF] = value >> 8 * place & 0xFF

    def _interrupt(self, _uc: object, _number: int, _d: object) -> None:
        self._trapped = True
        self._uc.emu_stop()

    def run(self, insn: Insn, state: State, it: bool) -> Result:
        """Execute ``insn`` once, in an IT block if ``it``; the memory is as before afterwards.

        Unicorn does not count the ``it``, and counts the instructions after it together.
        """
        self._forget_pages()
        core, code, start = self._uc, insn.raw, insn.addr
        if it:
            start -= 2
            code = bytes([insn.cond << 4 | 8, 0xBF]) + code
        for at in (start, start + len(code) - 1):
            self._map(at & -PAGE)
        core.mem_write(start, code)
        core.ctl_flush_tb()  # one-instruction and longer translations must not be mixed up
        status = SVC | insn.thumb << 5
        for bit, flag in zip(FLAG_BITS, state.flags, strict=True):
            status |= flag << bit
        core.reg_write(uc.UC_ARM_REG_CPSR, status)
        core.reg_write(uc.UC_ARM_REG_SPSR, state.spsr)
        for number, value in zip(GENERAL, state.general, strict=True):
            core.reg_write(number, value)
        self._written, self._trapped = {}, False
        try:
            core.emu_start(start | insn.thumb, 0xFFFFFFFE, count=1)
        except unicorn.UcError:
            self._trapped = self._trapped or core.reg_read(uc.UC_ARM_REG_PC) == insn.addr
        result = self._result()
        for at in [*self._written, *range(start, start + len(code))]:
            core.mem_write(at, bytes([background(at)]))
        return result

    def _result(self) -> Result:
        if self._trapped:
            return Result(None)
        core = self._uc
        status = core.reg_read(uc.UC_ARM_REG_CPSR)
        registers = [core.reg_read(number) for number in GENERAL]
        registers += [status >> bit & 1 for bit in FLAG_BITS]
        pc = core.reg_read(uc.UC_ARM_REG_PC)
        thumb = bool(status >> 5 & 1)
        # an interworking branch to 2 modulo 4 in ARM state is UNPREDICTABLE (A2.3.1)
        return Result(registers, pc & (~1 if thumb else ~3), thumb, dict(self._written))


def interpret(insn: Insn, state: State, oracle: Oracle) -> Result:
    """The same with the interpreter."""
    return interpret_ops(insn, lift(insn), state, oracle)


def interpret_ops(insn: Insn, ops: tuple[Op, ...], state: State, oracle: Oracle) -> Result:
    """Execute ``ops`` instead of the ops of ``insn``."""
    code = dict(enumerate(insn.raw, insn.addr))
    memory = ByteMemory(code, background)
    machine = ConcreteMachine(memory, oracle)
    machine.thumb = insn.thumb
    machine.registers[:15] = state.general
    machine.registers[16:] = state.flags
    try:
        machine.execute(insn, ops)
    except ControlFlowError:
        if insn.flow not in (ControlFlow.TRAP, ControlFlow.UNDEFINED):
            raise
        return Result(None)
    written = {a: b for a, b in memory.content.items() if a not in code or b != code[a]}
    registers = machine.registers[:15] + machine.registers[16:]
    pc = machine.registers[15] & (~1 if machine.thumb else ~3)
    return Result(registers, pc, machine.thumb, written)


def placed(insn: Insn, it: bool, addr: int) -> tuple[Insn, bool]:
    """``insn`` at ``addr``, in an IT block if it was and if it stays there.

    Unicorn cannot be stopped between a branch that ends an IT block and its target.
    """
    stays = it and insn.flow is ControlFlow.NEXT
    return decode(insn.raw, addr, insn.thumb, (insn.cond,) if stays else ()), stays


def comparable(insn: Insn) -> bool:
    """Whether Unicorn can execute ``insn``: it only has coprocessors CP10, CP11 and CP15.

    ``it`` is left out, since Unicorn executes its block with it; so are waits, and ``rfe``, which
    loads a processor mode.
    """
    return insn.mnemonic not in UNCOMPARABLE and insn.flow is not ControlFlow.UNDEFINED


UNCOMPARABLE = frozenset(["it", "rfe", "wfe", "wfi", *COPROCESSOR])


def oracles() -> list[Oracle]:
    """Fixed choices that differ from each other in every bit."""
    noise = random.Random(7)

    def ones(op: Op) -> int:
        return (1 << 64) - 1

    def zeros(op: Op) -> int:
        return 0

    def random_bits(op: Op) -> int:
        return noise.getrandbits(64)

    return [zeros, ones, random_bits]


ORACLES = oracles()


class Comparison:
    """Runs both; keeps a core, and takes a new one before it believes in a difference.

    An exception or a change of mode can leave Unicorn in a state that registers do not show.
    """

    def __init__(self) -> None:
        self._core = Core()

    def __call__(self, insn: Insn, state: State, it: bool = False) -> tuple[Verdict, str]:
        """The verdict, and differences with the interpreter's value first."""
        found = [interpret(insn, state, oracle) for oracle in ORACLES]
        verdict, why = judge(found, self._core.run(insn, state, it))
        if verdict is Verdict.WRONG:
            self._core = Core()
            verdict, why = judge(found, self._core.run(insn, state, it))
        return verdict, why


def judge(found: list[Result], expected: Result) -> tuple[Verdict, str]:
    """Compare the interpreter's results ``found`` with several oracles to Unicorn's."""
    if (expected.registers is None) != (found[0].registers is None):
        return Verdict.WRONG, f"trap: {found[0].registers is None}, {expected.registers is None}"
    if expected.registers is None:
        return Verdict.EQUAL, ""
    differences, unknown = [], False
    for name, values, value in places(found, expected):
        if len(set(values)) > 1:
            unknown = True
        elif values[0] != value:
            differences.append(f"{name}: {values[0]:#x}, {value:#x}")
    if differences:
        return Verdict.WRONG, "; ".join(differences)
    return (Verdict.UNKNOWN if unknown else Verdict.EQUAL), ""


def places(found: list[Result], expected: Result) -> Iterator[tuple[str, list[int], int]]:
    """Everything to compare: its name, the interpreter's values, Unicorn's value."""
    yield "pc", [r.pc for r in found], expected.pc
    yield "state", [int(r.thumb) for r in found], int(expected.thumb)
    for number, value in enumerate(expected.registers or []):
        name = f"r{number}" if number < 15 else "NZCVQ0123"[number - 15]
        yield name, [(r.registers or [])[number] for r in found], value
    for addr in sorted(set(expected.memory).union(*(r.memory for r in found))):
        default = background(addr)
        values = [r.memory.get(addr, default) for r in found]
        yield f"[{addr:#x}]", values, expected.memory.get(addr, default)


INTERESTING = (
    *(0, 1, 2, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000),
    *(0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFF80, 0xFFFF8000),
)


def random_state(choice: random.Random, insn: Insn) -> State:
    """Words of all kinds; base registers point to aligned places far from the ends of memory."""
    general = [
        choice.choice(INTERESTING) if choice.random() < 0.4 else choice.getrandbits(32)
        for _ in range(15)
    ]
    if insn.flow in (
        ControlFlow.INDIRECT,
        ControlFlow.INDIRECT_CALL,
    ):  # Unicorn cannot stop in the last page
        general = [min(value, 0xFFFF0000) for value in general]
    flags = [choice.getrandbits(1) for _ in range(9)]
    if insn.memory is not None:
        memory = insn.memory
        if memory.index is not None and memory.index < 15:
            general[memory.index] = choice.choice((0, 4, 8, 64, 0x100)) << choice.randrange(3)
        base = memory.base if memory.base is not None else 13
        if base < 15:
            general[base] = choice.randrange(0x1000_0000, 0x1000_8000) & -8
            if memory.count == 1 and memory.size == 1:
                general[base] += choice.randrange(4)
    return State(general, flags, choice.getrandbits(5) << 27 | choice.choice((0x10, 0x13, 0x30)))
