"""Executions of preemptible kernels on the concrete machine: how long interrupts are masked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from pipeline.block_times import transfers
from pipeline.native import CompiledTrace, Instructions, execute
from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import LR, PC, Condition, Insn
from quoll.arm.operation import Operation
from quoll.arm.status import INTERRUPT_MASK, StatusField, state_change, status_written
from quoll.image.image import Image
from quoll.semantics.ops import Op, OpCode
from tests.testing.arm.interpreter import ByteMemory
from tests.testing.arm.interpreter import ConcreteMachine as Interpreter
from tests.testing.quoll.building import address
from wcet.executions.path_replay import ReplayPath as Walk
from wcet.executions.path_replay import StartContents, executed, random_machine
from wcet.platforms.platform_model import Platform

USER, MODE, LONGEST = 0x1000, 0x13, 20_000


@dataclass(frozen=True)
class MaskedTime:
    """Cycles from ``start`` (address of the instruction that masked, or the entry) to its end."""

    start: int
    cycles: int


class _Memory(ByteMemory):
    """Memory of a kernel; ``first`` is the lowest address of an instruction's access."""

    def __init__(self, image: Image) -> None:
        super().__init__({}, lambda addr: (image.read(addr, 1) or b"\0")[0])
        self.first: int | None = None

    def load(self, addr: int, size: int) -> int:
        self._note(addr)
        return super().load(addr, size)

    def store(self, addr: int, size: int, value: int) -> None:
        self._note(addr)
        super().store(addr, size, value)

    def _note(self, addr: int) -> None:
        self.first = addr if self.first is None else min(addr, self.first)


def masked_times(
    image: Image, platform: Platform, random: Random, argument: int
) -> Iterator[MaskedTime]:
    """The masked intervals of one system call from random caches."""
    pcs, accesses, masks = _executed(image, argument)
    insns = tuple(insn for _, insn in pcs)
    following = [*(pc for pc, _ in pcs[1:]), USER]
    taken = tuple(
        transfers(insn) and after != insn.next for insn, after in zip(insns, following, strict=True)
    )
    path = Walk(insns, taken, tuple(range(len(insns))))
    steps = executed(path, accesses, platform, random)
    machine = random_machine(platform, steps, random.choice(list(StartContents)), random)
    instructions = Instructions(machine.core, aligned=machine.aligned)
    trace = CompiledTrace.of(instructions, steps)
    finished = execute(machine, trace)
    clocks = [*[0, *trace.issued.tolist()][: len(insns)], finished]
    begin: int | None = 0
    for at, mask in enumerate([*masks, False]):
        if mask and begin is None:
            begin = at - 1  # the instruction before this one has masked
        elif not mask and begin is not None:
            start = insns[begin].addr
            yield MaskedTime(start, clocks[at] - clocks[begin])
            begin = None


def _executed(
    image: Image, argument: int
) -> tuple[list[tuple[int, Insn]], dict[int, int], list[bool]]:
    """The execution of a system call, its accesses, and whether each instruction starts masked."""
    machine = Interpreter(oracle=lambda op: status(op))
    masked = True

    def status(op: Op) -> int:
        if op.code is OpCode.BANK:  # the mode stays
            return machine.registers[op.ins[0].offset]
        return MODE | (INTERRUPT_MASK if masked else 0)

    memory = _Memory(image)
    machine.memory = memory
    machine.registers[0], machine.registers[LR] = argument, USER
    machine.registers[PC] = address(image, "vector_svc")
    end = address(image, "exit_to_user")
    pcs: list[tuple[int, Insn]] = []
    accesses: dict[int, int] = {}
    masks: list[bool] = []
    block: tuple[Condition, ...] = ()
    for at in range(LONGEST):
        pc = machine.registers[PC]
        code = image.read(pc, 4) or image.read(pc, 2)
        assert code is not None
        insn = decode(code, pc, machine.thumb, block[:1])
        block = block[1:] or it_conditions(insn)
        pcs.append((pc, insn))
        masks.append(masked)
        if pc == end:
            return pcs, accesses, masks
        memory.first = None
        written = _written(insn, machine)
        machine.step(insn)
        masked = masked if written is None else written
        if memory.first is not None:
            accesses[at] = memory.first
    raise AssertionError("the path does not end")


def _written(insn: Insn, machine: Interpreter) -> bool | None:
    """Whether interrupts are masked after ``insn``; None if it leaves that."""
    change = state_change(insn)
    if change is not None and change.interrupts:
        return None if change.enables is None else not change.enables
    if insn.operation is Operation.WRITE_STATUS and StatusField.CONTROL in status_written(insn):
        return bool(machine.registers[insn.sources[0]] & INTERRUPT_MASK)
    return None
