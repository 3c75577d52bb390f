"""Random instruction sequences, executed and interpreted abstractly."""

from __future__ import annotations

import random
from collections import Counter

from quoll.arm.decode import decode
from quoll.arm.insn import Access, Flow, Insn
from quoll.arm.semantics import lift
from quoll.domain.abstract_state import State
from quoll.domain.compiled import compile_block
from quoll.domain.terms import TAINT, Anchored, Fact, is_stack
from quoll.domain.transfer import run
from quoll.errors import ControlFlowError
from quoll.words.strided_interval import ValueSet
from tests.testing.arm.interpreter import ConcreteMachine, ConcreteMemory
from tests.testing.values import encodings
from tests.testing.values.concretes import (
    READ_ONLY,
    differences,
    environment,
    in_stack,
    random_pair,
)

START = 0x10000


class Excluded(Exception):
    """The execution is outside what the analysis speaks of: S1 or S2 does not hold in it."""


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


def sequence(rng: random.Random, thumb: bool) -> list[Insn]:
    insns: list[Insn] = []
    at = START
    length = rng.choice([1, 1, 2, 3, 6, 12])
    while len(insns) < length:
        raw = encodings.thumb(rng) if thumb else encodings.arm(rng)
        if insns and not thumb and rng.random() < 0.2:
            raw = encodings.arm_store_at(rng, sorted(insns[-1].writes))
        insn = decode(raw, at, thumb)
        try:
            lift(insn)
        except ControlFlowError:
            continue
        if insn.flow is not Flow.NEXT:
            continue
        insns.append(insn)
        at = insn.next
    if not thumb and rng.random() < 0.5:
        insns.append(decode(encodings.arm_branch(rng), at, False))
    return insns


class Computed:
    """Which registers are computed from a stack address: their stores are not S1's concern.

    What is loaded counts as not computed, so that the assumption speaks of it.
    """

    def __init__(self, state: State) -> None:
        self.registers = {r for r in range(15) if on_stack(state.fact(r))}

    def addresses(self, insn: Insn) -> bool:
        """Whether the address of the access comes from one of them."""
        memory = insn.memory
        return memory is not None and bool(self.registers & {memory.base, memory.index})

    def step(self, insn: Insn) -> None:
        loaded = insn.transfers if insn.memory and insn.memory.access is not Access.STORE else ()
        sources = insn.reads - set(insn.transfers) if insn.memory else insn.reads
        for register in insn.writes:
            if register not in loaded and sources & self.registers:
                self.registers.add(register)
            elif not insn.conditional:
                self.registers.discard(register)


def on_stack(fact: Fact) -> bool:
    return isinstance(fact, Anchored) and (fact.base == TAINT or is_stack(fact.base))


def execute(insns: list[Insn], machine: ConcreteMachine, state: State) -> bool:
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
            live = in_stack(addr) and addr + 3 >= sp
            if addr in READ_ONLY or (live and not exact and not computed.addresses(insn)):
                raise Excluded
        computed.step(insn)
    return machine.registers[15] != insns[-1].next


def check(seed: int, thumb: bool) -> Counter[str]:
    """One case. Counts what it was, to show that cases vary."""
    rng = random.Random(seed)
    around = environment()
    state, machine, rigid = random_pair(rng, around)
    assert not differences(state, machine, rigid, around.stacks)
    insns = sequence(rng, thumb)
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
        left=int(left),
        stored=int(bool(after.frames or after.globals)),
        conditional=int(any(i.conditional for i in insns)),
        registers_known=known,
    )
