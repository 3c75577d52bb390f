"""Abstract states with concrete machines inside them, and the check that one is in the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_state import FLAG, MODE, AbstractState
from quoll.abstract_domain.condition import (
    Condition,
    ConditionPair,
    SubtractionOverflow,
    TermComparison,
)
from quoll.abstract_domain.terms import (
    BIAS,
    ENTRY_SP,
    MASK,
    TAINT,
    AnchoredTerm,
    Fact,
    RotatedTerm,
    StatusWord,
    Term,
    entry_symbol,
    known_bits,
    rotated,
)
from quoll.intervals.interval_comparison import ComparisonOperator
from quoll.intervals.masked_words import MaskedWords, Words, masked
from quoll.intervals.strided_interval import ANY, WORD, ValueSet, progression
from quoll.semantics.ops import Op
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine

READ_ONLY = range(0x8000, 0x9000)
WRITABLE = range(0x20000, 0x21000)
KNOWN_STACK = 0x30000  # top
ENTRY_STACK = 0x50000  # sp at entry; its frames are around it
STACKS = (range(0x2F000, 0x30400), range(0x4F000, 0x50400))
ADDRESSES = (0x1000, 0x70000)
USER, SYSTEM = 0x10, 0x1F
MODE_AT_ENTRY = -1  # among the words of rigid symbols: the mode in which the machine starts


def byte_at(addr: int) -> int:
    """The initial content of memory."""
    return (addr * 2654435761 >> 7) & 0xFF


def constant(addr: int, size: int) -> int | None:
    if addr not in READ_ONLY or addr + size - 1 not in READ_ONLY:
        return None
    return int.from_bytes(bytes(byte_at(addr + i) for i in range(size)), "little")


def environment() -> AnalysisEnvironment:
    return AnalysisEnvironment(constant, lambda addr: addr in WRITABLE)


def signed(word: int) -> int:
    return word - WORD if word >> 31 else word


RELATIONS: Mapping[ComparisonOperator, Callable[[int, int], bool]] = {
    ComparisonOperator.EQ: lambda x, y: x == y,
    ComparisonOperator.NE: lambda x, y: x != y,
    ComparisonOperator.ULT: lambda x, y: x < y,
    ComparisonOperator.ULE: lambda x, y: x <= y,
    ComparisonOperator.SLT: lambda x, y: signed(x) < signed(y),
    ComparisonOperator.SLE: lambda x, y: signed(x) <= signed(y),
}


@dataclass
class Valuation:
    """Words of symbols: rigid ones given, existential ones found from where they stand."""

    rigid: Mapping[int, int]
    found: dict[int, int]
    state: AbstractState

    def word(self, term: Term) -> int | None:
        symbol = term >> 32
        if symbol == 0:
            return term
        base = self.rigid.get(symbol, self.found.get(symbol))
        return None if base is None else (base + term) & MASK

    def admits(self, term: Term, word: int) -> bool:
        """Whether ``term`` may be ``word``; decides the symbol of the term if it is open."""
        if self.word(term) is not None:
            return self.word(term) == word
        symbol = term >> 32
        self.found[symbol] = base = (word - term) & MASK
        return member(base, self.state.facts.get(symbol, ANY), self.rigid)

    def holds(self, condition: Condition) -> bool | None:
        if condition is None or isinstance(condition, bool):
            return condition
        if isinstance(condition, ConditionPair):
            p, q = self.holds(condition.p), self.holds(condition.q)
            if p is None or q is None:
                return None
            return (p or q) if condition.disjunction else (p and q)
        a = self.word(condition.a)
        b = self.word(condition.b)
        if a is None or b is None:
            return None
        if isinstance(condition, SubtractionOverflow):
            assert self.word(condition.result) in (None, (a - b) & MASK)
            return not -(1 << 31) <= signed(a) - signed(b) < 1 << 31
        return RELATIONS[condition.relation](a, b)


def member(word: int, fact: Fact, rigid: Mapping[int, int]) -> bool:
    if isinstance(fact, ValueSet | MaskedWords):
        return word in fact
    if isinstance(fact, RotatedTerm):
        return (word - fact.origin) & MASK in fact.members
    if isinstance(fact, StatusWord):
        modes = (USER, SYSTEM) if fact.mode == USER else (rigid[MODE_AT_ENTRY],)
        return word in known_bits(fact) and word & 31 in modes
    if fact.base == TAINT:
        return True
    return (word - rigid[fact.base] + BIAS) & MASK in fact.offsets


def rigid_words(
    machine: ConcreteMachine, environment: AnalysisEnvironment, sp: int
) -> dict[int, int]:
    """Entry symbols of a machine at entry; stacks."""
    words = {entry_symbol(r): machine.registers[r] for r in range(15)}
    words[ENTRY_SP] = sp
    return words


def differences(
    state: AbstractState,
    machine: ConcreteMachine,
    rigid: Mapping[int, int],
    stacks: Mapping[int, int],
) -> list[str]:
    """Where ``machine`` is not in ``state``."""
    valuation = Valuation({**rigid, **stacks}, {}, state)
    wrong: list[str] = []
    for register in range(15):
        word = machine.registers[register]
        if not valuation.admits(state.term(register), word):
            wrong.append(f"r{register} = {word:#x}, not {state.fact(register)}")
    for cells in (state.frames, state.globals):
        for key, cell in cells.items():
            size, term = cast("tuple[int, Term]", (4, cell) if isinstance(cell, int) else cell)
            addr = valuation.word(key)
            assert addr is not None
            word = machine.memory.load(addr, size)
            if not valuation.admits(term, word):
                wrong.append(f"{size} bytes at {addr:#x} are {word:#x}")
    for flag in range(FLAG, MODE):
        truth = valuation.holds(state.flags[flag - FLAG])
        if truth is not None and truth != machine.registers[flag - FLAG + 16]:
            wrong.append(f"flag {flag - FLAG} is not {state.registers[flag]}")
    return wrong


def random_field(rng: random.Random) -> tuple[Words, int]:
    """Words of which some bits are known, as of a device register, and one of them."""
    mask = rng.choice([0x3FF, 0xFF, 0xFFFF_0000, 0xFFFF_FFFC, 1 << rng.randrange(32),
                       rng.randrange(1, WORD)])  # fmt: skip
    low, high = sorted(rng.randrange(WORD) & mask for _ in range(2))
    members = rng.choice([ValueSet.of(low), progression(low, high, mask & -mask)])
    bits = rng.choice([low, high if members.stride else low])
    return masked(mask, members), bits | rng.randrange(WORD) & ~mask


def random_fact(rng: random.Random) -> Fact:
    kind = rng.randrange(7)
    if kind == 6:
        low = -4 * rng.randrange(1, 5)
        return rotated(low & MASK, progression(0, 4 * rng.randrange(9), 4))
    if kind == 0:
        return ANY
    if kind == 1:
        low = BIAS - 4 * rng.randrange(12)
        return AnchoredTerm(ENTRY_SP, progression(low, low + 4 * rng.randrange(6), 4))
    low = rng.choice([0, 1, 0x8000, 0x20000, 0x20010, WORD - 8, WORD // 2 - 4, rng.randrange(WORD)])
    stride = rng.choice([1, 1, 2, 4, 4, 12])
    return progression(low, min(WORD - 1, low + stride * rng.randrange(9)), stride)


def random_pair(
    rng: random.Random, environment: AnalysisEnvironment, fields: int = 0
) -> tuple[AbstractState, ConcreteMachine, dict[int, int]]:
    """An abstract state, a machine in it, and the words of the rigid symbols.

    ``fields``: how many of its four facts are about some bits only.
    """
    rigid = {entry_symbol(r): rng.randrange(*ADDRESSES) for r in range(15)}
    rigid[ENTRY_SP] = ENTRY_STACK
    stack = environment.stack(KNOWN_STACK)
    rigid[stack] = KNOWN_STACK
    facts: dict[int, Fact] = {}
    words: dict[int, int] = {}
    for slot in range(4):
        symbol = environment.names.of(0, ("initial", slot))
        if slot < fields:
            facts[symbol], words[symbol] = random_field(rng)
            continue
        fact = random_fact(rng)
        if isinstance(fact, AnchoredTerm):
            offset = fact.offsets.low + fact.offsets.stride * rng.randrange(fact.offsets.size)
            words[symbol] = (rigid[fact.base] + offset - BIAS) & MASK
        elif isinstance(fact, RotatedTerm):
            step = fact.members.stride * rng.randrange(fact.members.size)
            words[symbol] = (fact.origin + fact.members.low + step) & MASK
        elif fact == ANY:
            below = KNOWN_STACK - 4 * rng.randrange(12, 30)  # no live frame
            words[symbol] = rng.choice([rng.randrange(0x60000, 0x70000), below, 0x20000])
        else:
            assert isinstance(fact, ValueSet)
            words[symbol] = fact.low + fact.stride * rng.randrange(fact.size)
        facts[symbol] = fact
    valuation = {**rigid, **words}

    def term() -> Term:
        kind = rng.randrange(8)
        if kind < 2:
            place = 0x20000 + 4 * rng.randrange(12)
            return rng.choice([0, 1, 4, 0x8010, place, place, rng.randrange(WORD)])
        if kind < 5:
            return rng.choice(list(words)) << 32 | (rng.choice([0, 0, 1, 4, -1]) & MASK)
        if kind == 5:
            return rng.choice([ENTRY_SP, stack]) << 32 | (-4 * rng.randrange(10) & MASK)
        return entry_symbol(rng.randrange(13)) << 32

    def word(t: Term) -> int:
        return t if t <= MASK else (valuation[t >> 32] + t) & MASK

    registers = [term() for _ in range(15)]
    registers[13] = rng.choice([ENTRY_SP, stack]) << 32 | (-4 * rng.randrange(12) & MASK)
    base = registers[13]
    machine = ConcreteMachine(ByteMemory(background=byte_at), lambda op: unknown(op, rng))
    machine.registers[:15] = [word(t) for t in registers]
    frames: dict[int, Term] = {}
    for _ in range(rng.randrange(8)):
        key = base & ~MASK | (base + 4 * rng.randrange(-2, 10)) & MASK
        frames[key] = term()
        machine.memory.store(word(key), 4, word(frames[key]))
    globals_: dict[int, Term] = {}
    for _ in range(rng.randrange(10)):
        addr = 0x20000 + 4 * rng.randrange(12)
        globals_[addr] = term()
        machine.memory.store(addr, 4, word(globals_[addr]))
    flags: list[Condition] = []
    for flag in range(4):
        relation = rng.choice(list(ComparisonOperator))
        a, b = term(), term()
        truth = RELATIONS[relation](word(a), word(b))
        flags.append(rng.choice([None, truth, TermComparison(relation, a, b)]))
        machine.registers[16 + flag] = truth
    state = AbstractState((*registers, *flags, None, None), frames, globals_, {}, facts)
    return state, machine, rigid


def unknown(op: Op, rng: random.Random) -> int:
    """Any value of a result that is not defined; a flag is 0 or 1."""
    assert op.out is not None
    return rng.randrange(2) if op.out.size == 1 else rng.randrange(WORD)


def in_stack(addr: int) -> bool:
    return any(addr in stack for stack in STACKS)
