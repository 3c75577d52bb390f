"""Abstract state of the pipeline between two instructions, in max-plus algebra.

A state gives, for each resource, the number of cycles after the next issue slot until it is free at
the latest: results of registers, registers still to be read by a store, flags, the load/store unit.
All are granted in program order, so the state after an instruction is a maximum of sums over the
state before it (rule 14): joining by maximum is sound, larger states never give smaller costs, and
a delay of d cycles anywhere delays the end by at most d (rule 16). Misses, write-backs and uncached
accesses are therefore charged as a separate sum.

Branches: the target of a taken one starts no earlier than the branch + its cycles, and no
earlier than the flag setter + FLAGS_TO_TARGET: "5 to 7 cycles by flag distance" (rule 16).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.demand import InsnDemand
from pipeline.timing_model import CoreProfile
from quoll.arm.insn import Condition

__all__ = ["IDLE", "BlockStepper", "IssueTime", "State", "join", "leq", "worst"]

REGISTERS = 16
LOCK, FLAGS, TARGET, UNIT = REGISTERS, 2 * REGISTERS, 2 * REGISTERS + 1, 2 * REGISTERS + 2
SIZE = 2 * REGISTERS + 3

LONG_AGO = -1  # an early operand must be ready one cycle before the issue slot

# Cycles after the next issue slot, LONG_AGO or more: r0-r15 ready, r0-r15 unlocked, flags ready,
# target of a taken branch allowed, load/store unit free.
State = tuple[int, ...]
IDLE: State = (LONG_AGO,) * SIZE


def worst(longest: int, flags_to_target: int) -> State:
    """The state with every resource busy for as long as any instruction can use it (rule 15)."""
    state = [longest] * SIZE
    state[TARGET] = flags_to_target
    return tuple(state)


def join(a: State, b: State) -> State:
    """The least state that covers both."""
    return a if a == b else tuple(map(max, a, b))


def leq(a: State, b: State) -> bool:
    """Whether ``b`` covers ``a``."""
    return all(x <= y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True, slots=True)
class IssueTime:
    """The start of an instruction, in cycles after the start of its block, and its delays."""

    start: int
    issue: int
    stall: int
    reason: str  # the resource that delayed it last; "" without a stall


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Times of a register before an instruction that writes it only if ``cond`` holds."""

    cond: Condition
    flags_version: int
    ready: int
    lock: int


class BlockStepper:
    """Runs the instructions of one block; times count from the start of the block."""

    def __init__(self, state: State, profile: CoreProfile, flags_to_target: int) -> None:
        self.at = 0  # next issue slot
        self._flags_to_target = flags_to_target
        self.steps: list[IssueTime] = []
        self._free = list(state)
        # The nominal profile knows that opposite conditions exclude each other.
        self._opposites = profile is CoreProfile.NOMINAL
        self._guarded: dict[int, _Guarded] = {}
        self._flags_version = 0
        self._bypass: int | None = None  # base written back by the previous instruction

    def run(self, d: InsnDemand) -> None:
        """Issue one instruction."""
        start, reason = self._start(d)
        stall = start - self.at
        bypass = None
        for register, latency in d.results:
            self._write(d, register, start + latency)
        if d.updates is not None:
            self._write(d, d.updates[0], start + d.updates[1])
            bypass = d.updates[0]
        for register, lock in d.locks:
            self._free[LOCK + register] = max(self._free[LOCK + register], start + lock)
        if d.memory:
            self._free[UNIT] = start + d.memory
        issued = start + d.issue
        if d.sets_flags:
            self._free[FLAGS] = max(self._free[FLAGS], issued)
            allowed = issued - 1 + self._flags_to_target
            self._free[TARGET] = max(self._free[TARGET], allowed)
            self._flags_version += 1
        self._bypass = bypass
        self.steps.append(IssueTime(start, d.issue, stall, reason))
        self.at = issued

    def _start(self, d: InsnDemand) -> tuple[int, str]:
        start, reason = self.at, ""
        operands: list[tuple[int, str]] = []
        for register, cycles in d.waits:
            if register == self._bypass and d.memory and register in d.address:
                cycles -= 1
            ready = self._ready(d, register)
            operands.append((ready + cycles, f"r{register}"))
        for register, _ in d.results:
            operands.append((self._ready(d, register), f"r{register} written"))
            operands.append((self._lock(d, register), f"r{register} stored"))
        if d.updates is not None:
            operands.append((self._lock(d, d.updates[0]), f"r{d.updates[0]} stored"))
        if d.reads_flags:
            operands.append((self._free[FLAGS], "flags"))
        if d.memory:
            operands.append((self._free[UNIT], "load/store unit"))
        for time, name in operands:
            if time > start:
                start, reason = time, name
        return start, reason

    def _excluded(self, d: InsnDemand, register: int) -> _Guarded | None:
        """The guard of ``register`` if its writer and this instruction never both execute."""
        if not self._opposites or d.cond is Condition.AL or register in d.address:
            return None
        guard = self._guarded.get(register)
        if guard is None or guard.flags_version != self._flags_version:
            return None
        return guard if guard.cond == d.cond ^ 1 else None

    def _ready(self, d: InsnDemand, register: int) -> int:
        guard = self._excluded(d, register)
        return self._free[register] if guard is None else guard.ready

    def _lock(self, d: InsnDemand, register: int) -> int:
        guard = self._excluded(d, register)
        return self._free[LOCK + register] if guard is None else guard.lock

    def _write(self, d: InsnDemand, register: int, time: int) -> None:
        guard = self._guarded.pop(register, None)
        if d.cond is not Condition.AL:
            version = self._flags_version
            if guard is None or guard.cond is not d.cond or guard.flags_version != version:
                free, lock = self._free[register], self._free[LOCK + register]
                guard = _Guarded(d.cond, version, free, lock)
            self._guarded[register] = guard
        self._free[register] = max(self._free[register], time)

    def after(self, at: int) -> State:
        """The state when the next issue slot is at cycle ``at``."""
        return tuple(max(t - at, LONG_AGO) for t in self._free)

    @property
    def target_allowed(self) -> int:
        """First cycle in which the target of a taken branch may start, by the last flag setter."""
        return self._free[TARGET]
