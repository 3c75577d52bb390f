"""Random instruction sequences, executed and interpreted abstractly."""

from __future__ import annotations

import random
import struct
from collections import Counter

from quoll.abstract_domain.abstract_state import AbstractState
from quoll.abstract_domain.compiled import compile_block
from quoll.abstract_domain.terms import TAINT, AnchoredTerm, Fact, is_stack
from quoll.abstract_domain.transfer import run
from quoll.arm.decode import decode
from quoll.arm.insn import AccessKind, ControlFlow, Insn
from quoll.arm.system_registers import changes_translation, discards_line
from quoll.arm.unpredictable import has_meaning
from quoll.errors import ControlFlowError
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from quoll.intervals.masked_words import MaskedWords
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.semantics.lift import lift
from quoll.semantics.ops import Op, OpCode
from tests.testing.arm.interpreter import ConcreteMachine, ConcreteMemory, Oracle
from tests.testing.values import encodings
from tests.testing.values.concretes import (
    KNOWN_STACK,
    READ_ONLY,
    WRITABLE,
    differences,
    environment,
    in_stack,
    random_pair,
)

START = 0x10000
DEVICE = 0x6800_0000  # of which the analysis is given something: it then follows bits
FRAMES = 0x100  # bytes above sp that may be in use


class Excluded(Exception):
    """The execution violates S1 or S2, so that no claim applies to it."""


PARTLY_FIXED = MemoryMap(
    tuple(
        MemoryRegion(name, low, high, RegionKind.CACHED, low, fixed=True)
        for name, low, high in (
            ("constants", READ_ONLY.start, READ_ONLY.stop - 1),
            ("data", WRITABLE.start, WRITABLE.start + 0x17),
            ("the top of the known stack", KNOWN_STACK - 0x10, KNOWN_STACK + 0x3FF),
        )
    )
)


def effect(op: Op, machine: ConcreteMachine, choose: Oracle, rng: random.Random) -> int:
    """Other memory where no translation is fixed, but for the stack of unknown place (S6)."""
    if op.code is OpCode.DISCARD:
        return rng.randrange(256)
    if op.code is not OpCode.RETRANSLATE:
        return choose(op)
    memory = machine.memory.memory if isinstance(machine.memory, Watched) else machine.memory
    for start, stop in (
        (WRITABLE.start, WRITABLE.stop),
        (KNOWN_STACK - 0x100, KNOWN_STACK + 0x100),
    ):
        for addr in range(start, stop):
            if not PARTLY_FIXED.fixed(addr):
                memory.store(addr, 1, rng.randrange(256))
    return 0


class Watched:
    """The memory of a machine, with the addresses stored to by the current instruction."""

    def __init__(self, memory: ConcreteMemory) -> None:
        self.memory = memory
        self.stores: list[int] = []

    def load(self, addr: int, size: int) -> int:
        return self.memory.load(addr, size)

    def store(self, addr: int, size: int, value: int) -> None:
        self.stores.append(addr)
        self.memory.store(addr, size, value)


def maintenance(rng: random.Random) -> bytes:
    """A write of a register of coprocessor 15 that changes translations, or discards a line."""
    crn, crm, op2 = rng.choice([(7, 6, 1), (7, 6, 1), (2, 0, 0), (8, 7, 0), (13, 0, 1)])
    word = 0xEE000F10 | crn << 16 | rng.choice([0, 1, 2, 3, 13]) << 12 | op2 << 5 | crm
    return struct.pack("<I", word if rng.random() < 0.8 else word & ~(14 << 28))


def sequence(rng: random.Random, thumb: bool, maintained: bool = False) -> list[Insn]:
    insns: list[Insn] = []
    at = START
    length = rng.choice([1, 1, 2, 3, 6, 12])
    while len(insns) < length:
        raw = encodings.thumb(rng) if thumb else encodings.arm(rng)
        if insns and not thumb and rng.random() < 0.2:
            raw = encodings.arm_store_at(rng, sorted(insns[-1].writes))
        if maintained and rng.random() < 0.3:
            raw = maintenance(rng)
        insn = decode(raw, at, thumb)
        try:
            lift(insn)
        except ControlFlowError:
            continue
        if insn.flow is not ControlFlow.NEXT or not has_meaning(insn):
            continue
        insns.append(insn)
        at = insn.next
    if not thumb and rng.random() < 0.5:
        insns.append(decode(encodings.arm_branch(rng), at, False))
    return insns


class Computed:
    """The registers that are computed from a stack address: S1 does not cover stores through them.

    Loaded words count as not computed, so that the assumption covers them.
    """

    def __init__(self, state: AbstractState) -> None:
        self.registers = {r for r in range(15) if on_stack(state.fact(r))}

    def addresses(self, insn: Insn) -> bool:
        """Whether the address of the access comes from one of them."""
        memory = insn.memory
        if discards_line(insn):
            return bool(self.registers & insn.reads)
        return memory is not None and bool(self.registers & {memory.base, memory.index})

    def step(self, insn: Insn) -> None:
        loaded = (
            insn.transfers if insn.memory and insn.memory.access is not AccessKind.STORE else ()
        )
        sources = insn.reads - set(insn.transfers) if insn.memory else insn.reads
        for register in insn.writes:
            if register not in loaded and sources & self.registers:
                self.registers.add(register)
            elif not insn.conditional:
                self.registers.discard(register)


def on_stack(fact: Fact) -> bool:
    return isinstance(fact, AnchoredTerm) and (fact.base == TAINT or is_stack(fact.base))


def execute(insns: list[Insn], machine: ConcreteMachine, state: AbstractState) -> bool:
    """Run to the end; whether the block was left by a branch."""
    memory = Watched(machine.memory)
    machine.memory = memory
    computed = Computed(state)
    for insn in insns:
        memory.stores.clear()
        sp = machine.registers[13]
        exact = insn.memory is not None and insn.memory.base == 15
        machine.step(insn)
        for addr in memory.stores:
            near = addr < sp + FRAMES  # of a stack that the sequence itself has chosen
            live = (in_stack(addr) or near) and addr + 3 >= sp
            if addr in READ_ONLY or (live and not exact and not computed.addresses(insn)):
                raise Excluded
        computed.step(insn)
    return machine.registers[15] != insns[-1].next


def check(seed: int, thumb: bool, maintained: bool = False, *, fields: int = 0) -> Counter[str]:
    """Check one case; counts of its features, which show that cases vary.

    ``maintained``: lines are invalidated, and memory of no fixed translation is exchanged.
    ``fields``: of so many of four words only some bits are known.
    """
    rng = random.Random(seed)
    around = environment()
    if fields:
        around.given = {DEVICE: ANY}
    if maintained:
        around.map = PARTLY_FIXED
        around.retranslated = True
    state, machine, rigid = random_pair(rng, around, fields)
    assert not differences(state, machine, rigid, around.stacks)
    if maintained:
        choose = machine.oracle
        machine.oracle = lambda op: effect(op, machine, choose, rng)
    insns = sequence(rng, thumb, maintained)
    outcome = run(compile_block(insns), state, around, 1)
    try:
        left = execute(insns, machine, state)
    except Excluded:
        return Counter(excluded=1)
    after = outcome.fall if not left else outcome.leave and outcome.leave.state
    text = "\n".join(f"{i.addr:x} {i.text}" for i in insns)
    assert after is not None, f"seed {seed}: not reached by\n{text}"
    wrong = differences(after, machine, rigid, around.stacks)
    assert not wrong, f"seed {seed}: {wrong} after\n{text}"
    known = sum(after.fact(r) != ValueSet(0, 0xFFFFFFFF, 1) for r in range(15))
    return Counter(
        checked=1,
        discarded=int(any(map(discards_line, insns))),
        retranslated=int(any(map(changes_translation, insns))),
        left=int(left),
        stored=int(bool(after.frames or after.globals)),
        conditional=int(any(i.conditional for i in insns)),
        registers_known=known,
        fields=sum(isinstance(after.fact(r), MaskedWords) for r in range(15)),
    )
