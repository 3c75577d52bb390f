# SPDX-License-Identifier: BSD-2-Clause
"""Random sequences of operations on the host build, each compared with the specification."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from kernels.bilby.verification.fuzz.clock import Clock
from kernels.bilby.verification.fuzz.draw import Operation
from kernels.bilby.verification.fuzz.generate import Generator
from kernels.bilby.verification.fuzz.host import PC, CheckFailure, Host
from kernels.bilby.verification.spec import calls, layout
from kernels.bilby.verification.spec.boot import after_boot
from kernels.bilby.verification.spec.flags import IT
from kernels.bilby.verification.spec.layout import API, TICK, message
from kernels.bilby.verification.spec.refinement import Mismatch, Refinement
from kernels.bilby.verification.spec.state import Kernel, Thread

PREEMPT_LINE = 63
SEQUENCE = 250  # operations, then everything starts again
ALARMS = 2  # that come before one operation, at most


@dataclass(slots=True)
class Statistics:
    """The numbers of executed operations, and of operations with the intended effect."""

    operations: int = 0
    succeeded: int = 0
    preemption_tests: int = 0
    by_name: Counter[str] = field(default_factory=Counter)
    errors: Counter[int] = field(default_factory=Counter)

    @property
    def success(self) -> float:
        return self.succeeded / max(self.operations, 1)


def symbols(program: Path) -> dict[str, int]:
    """Addresses by name."""
    return _symbols(program, program.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _symbols(program: Path, modified: int) -> dict[str, int]:
    done = subprocess.run(["nm", program], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


class Run:
    """One host build, one specification, in step."""

    def __init__(self, host: Host, table: dict[str, int], seed: int, preset: str = "after") -> None:
        layout.use(preset)
        self.host = host
        self.table = table
        self.seed = seed
        self.statistics = Statistics()
        self.history: list[str] = []
        self.first_thread = 0
        self.is_lazy = "scheduler_is_lazy" in table

    def start(self, sequence: int) -> None:
        self.host.reset()
        self.host.now = 0
        self.history.clear()
        if not self.first_thread:
            self.first_thread = self.host.word(self.table["current_thread"])
        self.kernel: Kernel = after_boot(
            self.host.word, self.first_thread, self.table["irq_slots"], self.is_lazy
        )
        variables = (self.table["kernel_data_start"], self.table["kernel_data_end"])
        self.refinement = Refinement(self.kernel, self.host.word, variables)
        if sequence % 2 and "last_asid" in self.table:
            self.host.write(self.table["last_asid"], 252)  # as after many spaces: reuse is near
        self.generator = Generator(random.Random(f"{self.seed}/{sequence}"), self.kernel)
        self.clock = Clock(random.Random(f"{self.seed}/{sequence}/clock"))
        if self.kernel.time is not None and sequence % 3 == 2:
            for alarm_at in self.clock.start():
                self.host.now = alarm_at
                self.alarm()

    def let_time_pass(self) -> None:
        """Where it is a capability; alarms come meanwhile, but not many."""
        time = self.kernel.time
        if time is None:
            return
        until = self.clock.later(time, idle=self.kernel.current is None)
        for _ in range(ALARMS):
            if until < time.alarm_at:
                break
            self.host.now = max(time.now, time.alarm_at + self.clock.delay())
            self.alarm()
        last = time.alarm_at - 1
        if until > last and self.clock.is_late():
            last += self.clock.delay()
        self.host.now = max(time.now, min(until, last))

    def alarm(self) -> None:
        self.history.append(f"{self.host.now}: alarm")
        self.interrupt(TICK)
        self.statistics.by_name["alarm"] += 1

    def step(self, operation: Operation, force: bool) -> None:
        at = "" if self.kernel.time is None else f"{self.host.now}: "
        self.history.append(f"{at}{operation}")
        if operation.kind == "syscall":
            self.syscall(operation, force)
        elif operation.kind == "fault":
            kind, (address, status) = operation.number, operation.registers[:2]
            changes = self.host.fault(kind, address, status)
            caller = self.kernel.current
            assert caller is not None
            if kind != API["FAULT_DATA_ABORT"]:
                address = caller.regs[15]
            if kind == API["FAULT_UNDEFINED"]:
                status = 0
            calls.fault(self.kernel, kind, address, status, self.host.now)
            self.refinement.check(changes.changes, changes.current, self.table["idle_thread"])
        else:
            self.interrupt(operation.number)
        self.statistics.operations += 1
        self.statistics.by_name[operation.name] += 1

    def syscall(self, operation: Operation, force: bool) -> None:
        caller = self.kernel.current
        assert caller is not None
        writes = {}
        if caller.buffer:
            writes = {caller.buffer + 4 * i: value for i, value in operation.buffer.items()}
            self.kernel.given = writes
        self.settle_block(caller)
        number, registers, second = operation.number, operation.registers, operation.second
        calls.syscall(self.kernel, number, registers, PC, second=second, now=self.host.now)
        answer = self.host.syscall(number, registers, force, writes, second)
        self.refinement.check(answer.changes, answer.current, self.table["idle_thread"])
        self.statistics.preemption_tests += answer.tests
        for frame in self.kernel.new_frames:
            if not self.host.is_published(frame.address, frame.size):
                raise Mismatch(f"the new frame at {frame.address:#x} is not published")
        error = caller.regs[1] >> 12 if caller.regs[0] == 0 else 0
        failed = caller.regs[0] >> 31 or (
            operation.number == API["SYS_CALL"] and caller.regs[1] == message(0, 0, 0, error) != 0
        )
        self.statistics.succeeded += not failed
        if failed:
            self.statistics.errors[error or caller.regs[0] & 0xFF] += 1

    def settle_block(self, caller: Thread) -> None:
        """Whoever set the thread's flags, it has now executed an SVC.

        So if it is in an IT block, then behind the first instruction of it.
        """
        state = caller.regs[16] >> 8 & 0xFC | caller.regs[16] >> 25 & 3
        if state & 1 or (state and not state & 0xE):
            caller.regs[16] &= ~IT
            self.host.write(caller.address + 4 * 16, caller.regs[16])

    def interrupt(self, line: int) -> None:
        answer = self.host.interrupt(line)
        calls.interrupt(self.kernel, line, self.host.now)
        self.refinement.check(answer.changes, answer.current, self.table["idle_thread"])

    def is_stuck(self) -> bool:
        """Nobody runs and no interrupt can change that."""
        if self.kernel.current is not None or (self.kernel.time and self.kernel.time.waiting):
            return False
        lines = self.kernel.issued - self.kernel.masked
        return not any(self.kernel.irq_slots[line].cap for line in lines)

    def run(self, operations: int, force_every: int = 1) -> Statistics:
        """Raises CheckFailure or Mismatch with the sequence that led there."""
        sequence = 0
        while self.statistics.operations < operations:
            self.start(sequence)
            try:
                for _ in range(SEQUENCE):
                    if self.is_stuck() or self.statistics.operations >= operations:
                        break
                    self.let_time_pass()
                    number = self.statistics.operations
                    self.step(self.generator.next(), number % force_every == 0)
                self.refinement.check_everything()
            except (CheckFailure, Mismatch) as failure:
                last = "\n".join(self.history[-12:])
                raise type(failure)(
                    f"seed {self.seed}, sequence {sequence}, operation {len(self.history)}:\n"
                    f"{failure}\nafter\n{last}"
                ) from failure
            sequence += 1
        return self.statistics
