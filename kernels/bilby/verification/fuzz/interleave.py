# SPDX-License-Identifier: BSD-2-Clause
"""Random interleavings: a call is preempted, a more urgent thread acts, the call is made again.

The outcome must be the specified outcome of one of two orders: the urgent thread acts first, or the
call does. Where a call is preempted, a copy of the abstract state follows the kernel in the other
order; the sequence continues with the order that is right. Only a call that works in steps (it
deletes, revokes, recycles or makes objects, or answers and receives) may end in neither: then
others saw some of its steps, only the invariants are checked, and the sequence begins again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernels.bilby.verification.fuzz.clock import Clock
from kernels.bilby.verification.fuzz.draw import Operation
from kernels.bilby.verification.fuzz.generate import Generator
from kernels.bilby.verification.fuzz.host import PC, SECOND, CheckFailure, Host
from kernels.bilby.verification.fuzz.run import symbols
from kernels.bilby.verification.fuzz.script import LINE, Script
from kernels.bilby.verification.spec import calls
from kernels.bilby.verification.spec.copying import copy_of
from kernels.bilby.verification.spec.flags import IT, THUMB
from kernels.bilby.verification.spec.layout import API, TICK, message
from kernels.bilby.verification.spec.refinement import Mismatch, Refinement
from kernels.bilby.verification.spec.state import Kernel, Thread

URGENT = 255
STEPS = 3  # of the urgent thread, at most
DRAWS = 20  # of one kind; if none will do, the thread yields
SEQUENCE = 120  # operations, then everything starts again
IN_STEPS = {
    API[f"LABEL_{name}"]
    for name in ("CNODE_DELETE", "CNODE_REVOKE", "CNODE_RECYCLE", "UNTYPED_RETYPE",
                 "TCB_UNCONFIGURE", "IRQ_CLEAR_NOTIFICATION")
}  # fmt: skip
TAKING = {
    API[f"LABEL_{name}"]
    for name in ("CNODE_DELETE", "CNODE_REVOKE", "CNODE_RECYCLE", "CNODE_MOVE", "CNODE_MUTATE",
                 "CNODE_ROTATE")
}  # fmt: skip


@dataclass(slots=True)
class Order:
    """One abstract state, and its objects touched since the last comparison."""

    kernel: Kernel
    refinement: Refinement
    touched: set[int] = field(default_factory=set)
    written: dict[int, int] = field(default_factory=dict)
    cleared: list[tuple[int, int]] = field(default_factory=list)
    died: list[tuple[int, int]] = field(default_factory=list)
    is_possible: bool = True

    def copy(self) -> Order:
        """To go on in another way. Only between a comparison and the next operation."""
        kernel = copy_of(self.kernel, self.kernel.read)
        return Order(kernel, self.refinement.copy_for(kernel))

    def note(self) -> None:
        """After each operation; the next one forgets."""
        kernel = self.kernel
        gone = [*kernel.cleared, *kernel.died_now]
        for address in [a for a in self.written if any(low <= a < high for low, high in gone)]:
            del self.written[address]
        self.touched |= kernel.touched
        self.written |= kernel.written
        self.cleared += kernel.cleared
        self.died += kernel.died_now
        self.refinement.learn()

    def compare(self, changes: dict[int, int], current: int, idle: int) -> None:
        """Raises Mismatch."""
        kernel = self.kernel
        kernel.touched |= self.touched
        kernel.written = dict(self.written)
        kernel.cleared, kernel.died_now = list(self.cleared), list(self.died)
        try:
            self.refinement.check(changes, current, idle)
        finally:
            self.touched, self.written, self.cleared, self.died = set(), {}, [], []


def in_root(address: int) -> int:
    """The slot of the first CNode, for any guard in the address."""
    return address % (1 << API["ROOT_RADIX"])


@contextmanager
def reading(kernel: Kernel, read: Callable[[int], int]) -> Iterator[None]:
    """The specification reads memory in another way."""
    usual, kernel.read = kernel.read, read
    yield
    kernel.read = usual


@dataclass(slots=True)
class Interleavings:
    """How many there were, and how they ended."""

    operations: int = 0
    interleaved: int = 0  # calls in which the urgent thread acted,
    preempted: int = 0  # and of these, calls that were then to be made again
    acts: int = 0  # of the urgent thread
    ends: Counter[str] = field(default_factory=Counter)
    by_name: Counter[str] = field(default_factory=Counter)


class Interleaver:
    """One host build and both orders."""

    def __init__(self, path: Path, host: Host, seed: int, preset: str) -> None:
        self.path = path
        self.host = host
        self.seed = seed
        self.preset = preset
        self.table = symbols(path)
        self.statistics = Interleavings()
        self.history: list[str] = []
        self.first: Order | None = None

    def start(self, sequence: int) -> None:
        """The first thread is less urgent than one that waits for a line."""
        self.history.clear()
        self.rng = random.Random(f"{self.seed}/{sequence}")
        if self.first is None:
            self.first = self.prepare()
        self.host.reset()
        self.host.now = 0
        self.clock = Clock(random.Random(f"{self.seed}/{sequence}/clock"))
        self.orders = [self.first.copy()]
        self.generator = Generator(self.rng, self.kernel)
        self.is_stale = False

    def prepare(self) -> Order:
        """All sequences begin here, where the urgent thread waits; on the host build too."""
        script = Script(self.host, self.path, self.preset)
        thread, self.notification = script.urgent()
        self.urgent = script.object_of(thread)
        if script.is_timed:
            script.invoke(thread, "TCB_SET_CRITICALITY", [API["CRITICALITIES"] - 1])
        self.kept_slots = set(range(self.notification, script.slots(0)))
        self.host.start_here()
        return Order(script.run.kernel, script.run.refinement)

    @property
    def kernel(self) -> Kernel:
        return self.orders[0].kernel

    # ---- one operation

    def writes_of(self, thread: Thread, operation: Operation) -> dict[int, int]:
        if not thread.buffer:
            return {}
        return {thread.buffer + 4 * i: value for i, value in operation.buffer.items()}

    def specify(
        self, order: Order, thread: int, operation: Operation, line: int | None = None
    ) -> None:
        """Perform a system call of this thread; drop an order in which it is impossible."""
        kernel = order.kernel
        kernel.scheduler.resolve(thread)
        if not order.is_possible or kernel.current is None or kernel.current.address != thread:
            order.is_possible = False
            return
        kernel.given = self.writes_of(kernel.current, operation)
        self.settle_block(kernel.current)
        number, registers, second = operation.number, operation.registers, operation.second
        calls.syscall(kernel, number, registers, PC, line, second=second, now=self.host.now)
        order.note()

    def settle_block(self, thread: Thread) -> None:
        """As Run.settle_block: it has executed an SVC."""
        state = thread.regs[16] >> 8 & 0xFC | thread.regs[16] >> 25 & 3
        if state & 1 or (state and not state & 0xE):
            thread.regs[16] &= ~IT
            self.host.write(thread.address + 4 * 16, thread.regs[16])

    def perform(self, operation: Operation) -> dict[int, int]:
        """On the kernel and both orders."""
        thread = self.host.current
        writes = self.writes_of(self.kernel.thread(thread), operation)
        for order in self.orders:
            self.specify(order, thread, operation)
        number, registers, second = operation.number, operation.registers, operation.second
        return self.host.syscall(number, registers, False, writes, second).changes

    def agree(self, changes: dict[int, int]) -> list[Mismatch]:
        """The mismatches of each order; empty if one agrees, which then remains."""
        failures, agreeing = [], []
        for order in self.orders:
            try:
                if not order.is_possible:
                    raise Mismatch("this order is impossible: another thread runs")
                order.compare(changes, self.host.current, self.table["idle_thread"])
                agreeing.append(order)
            except Mismatch as failure:
                failures.append(failure)
        self.is_stale = not agreeing
        self.orders = (agreeing or self.orders)[:1]
        self.generator.kernel = self.kernel
        return failures if self.is_stale else []

    # ---- an interleaving

    def act(self) -> Operation:
        """An operation of the urgent thread that does not wait."""
        draw = self.generator
        kinds: list[Callable[[], Operation]] = [
            draw.retype, draw.copy, draw.mint, draw.move, draw.rotate, draw.delete, draw.delete,
            draw.revoke, draw.recycle, draw.suspend, draw.resume, draw.set_priority, draw.unmap,
            draw.map_frame, draw.map_table, draw.signal, draw.bind, draw.retype_device,
        ]  # fmt: skip
        if self.kernel.time is not None:
            kinds += [draw.configure_context, draw.bind_context, draw.unbind_context,
                      draw.ask_consumed, draw.set_timeout, draw.set_level]  # fmt: skip
        return self.kept(self.rng.choice(kinds))

    def kept(self, make: Callable[[], Operation]) -> Operation:
        """Nothing that takes the line, its notification or the urgent thread away, or makes
        another as urgent: that one would go on at its own interrupt.
        """
        for _ in range(DRAWS):
            operation = make()
            named = [*operation.registers, *operation.buffer.values(), operation.second]
            words = set(map(in_root, named))
            label = operation.registers[1] >> 12
            takes = label in TAKING and self.is_needed(operation.registers[2])
            is_as_urgent = (
                label == API["LABEL_TCB_SET_PRIORITY"] and operation.registers[2] >= URGENT
            )
            if not (words & self.kept_slots or takes or is_as_urgent):
                return operation
        return self.generator.do_yield()

    def is_needed(self, index: int) -> bool:
        """Whether boot filled the slot, or a needed capability was derived from it.

        The slot is in the first CNode, or in a CNode in which this index means the same.
        """
        urgent = self.kernel.objects.get(self.urgent)
        cspace = urgent.slots["cspace"].cap if isinstance(urgent, Thread) else None
        if in_root(index) < API["ROOT_FREE"] or cspace is None:
            return True
        node = self.kernel.cnode(cspace["object"])
        above = {node.slots[kept].parent for kept in self.kept_slots}
        return any(
            slot is not None and slot.node and index % len(slot.node.slots) == slot.index
            for slot in above
        )

    def leave(self) -> list[Operation]:
        """The urgent thread waits again."""
        handler = self.notification + 1
        acknowledge = [handler, message(0, 0, 0, API["LABEL_IRQ_ACKNOWLEDGE"]), 0, 0, 0, 0]
        return [
            Operation("syscall", API["SYS_CALL"], acknowledge, {}, "acknowledge"),
            Operation(
                "syscall", API["SYS_RECEIVE"], [self.notification, 0, 0, 0, 0, 0], {}, "wait"
            ),
        ]

    def interleave(self, operation: Operation) -> None:
        caller, current = self.host.current, self.kernel.current
        assert current is not None
        writes = self.writes_of(current, operation)
        self.settle_block(current)
        tests = [1] * 6 + [2, 3, self.rng.randint(1, 12), self.rng.randint(1, 80)]
        test = self.rng.choice(tests)
        self.know_buffers()
        number, registers, second = operation.number, operation.registers, operation.second
        answer = self.host.attempt(number, registers, test, LINE, writes, second)
        changes = dict(answer.changes)
        self.statistics.by_name[operation.name] += 1
        preempted = answer.tests >= test and self.host.word(caller + 4 * 15) < PC
        after = self.orders[0]
        before = after.copy() if preempted else None
        at_end = answer.tests >= test and before is None
        with reading(after.kernel, self.host.word_before):
            self.specify(after, caller, operation, LINE if at_end else None)
        if answer.tests < test:
            self.finish(changes, "whole", operation)
            return
        if before is not None:
            self.stay_at_call(before, caller, operation)
            self.orders = [before, after]
            self.generator.kernel = before.kernel
            for order in self.orders:
                calls.interrupt(order.kernel, LINE, self.host.now)
                order.note()
        self.statistics.interleaved += 1
        self.statistics.preempted += preempted
        self.act_between(changes)
        if before is not None and self.host.current == caller:
            again = replace(operation, buffer={})  # which is written already
            self.specify(before, caller, again)
            changes |= self.host.syscall(number, registers, second=second).changes
        for order in self.orders if preempted else []:  # made again, it may be another call
            order.refinement.has_left = True
        self.finish(changes, "preempted" if preempted else "at its end", operation)

    def know_buffers(self) -> None:
        """Read the words that a call may read, so that its own writes do not lose them."""
        for item in self.kernel.objects.values():
            if isinstance(item, Thread) and item.buffer:
                self.host.word(item.buffer)

    def stay_at_call(self, order: Order, caller: int, operation: Operation) -> None:
        """Set only the caller's registers to its call; nothing else is done yet."""
        thread = order.kernel.thread(caller)
        order.kernel.begin()
        order.kernel.touch(thread)
        thread.regs[0:6], thread.regs[7] = operation.registers, operation.number
        if operation.number in SECOND:
            thread.regs[6] = operation.second
        thread.regs[15] = PC - (2 if thread.regs[16] & THUMB else 4)
        order.note()

    def act_between(self, changes: dict[int, int]) -> None:
        for _ in range(self.rng.randint(1, STEPS)):
            if self.host.current != self.urgent:
                return
            step = self.act()
            self.history.append(f"    {step}")
            self.statistics.acts += 1
            changes |= self.perform(step)
        for step in self.leave():
            if self.host.current == self.urgent:
                changes |= self.perform(step)

    def finish(self, changes: dict[int, int], how: str, operation: Operation) -> None:
        failures = self.agree(changes)
        if not failures:
            self.statistics.ends[how] += 1
            return
        label = operation.registers[1] >> 12
        if how != "preempted" or not self.is_in_steps(operation.number, label):
            raise Mismatch("\n".join(f"order {i}: {f}" for i, f in enumerate(failures)))
        self.statistics.ends["in steps that others saw"] += 1

    def is_in_steps(self, number: int, label: int) -> bool:
        return number == API["SYS_REPLY_RECEIVE"] or (
            number == API["SYS_CALL"] and label in IN_STEPS
        )

    def draw(self) -> Operation:
        """Of calls that work in steps, more than their share."""
        draw = self.generator
        if self.rng.random() < 0.6 and draw.space() is not None and draw.thread.buffer:
            steps = [draw.retype, draw.delete, draw.revoke, draw.recycle]
            return self.kept(self.rng.choice(steps))
        return self.kept(draw.next)

    def interrupt(self, operation: Operation) -> None:
        for order in self.orders:
            calls.interrupt(order.kernel, operation.number, self.host.now)
            order.note()
        self.finish(self.host.interrupt(operation.number).changes, "interrupt", operation)

    def let_time_pass(self) -> None:
        """Where it is a capability: until an alarm at most, which then interrupts."""
        time = self.kernel.time
        if time is None:
            return
        until = self.clock.later(time, idle=False)
        if until >= time.alarm_at:
            until = max(time.now, time.alarm_at + self.clock.delay())
            self.host.now = until
            self.history.append(f"{until}: alarm")
            self.interrupt(Operation("interrupt", TICK, name="alarm"))
        self.host.now = max(time.now, min(until, time.alarm_at - 1))

    def next(self) -> None:
        self.let_time_pass()
        if self.is_over():
            return
        operation = self.draw()
        self.history.append(str(operation))
        self.statistics.operations += 1
        current = self.kernel.current
        assert current is not None
        if operation.kind == "syscall" and not current.regs[16] & IT:
            self.interleave(operation)
        elif operation.kind == "syscall":
            self.finish(self.perform(operation), "whole", operation)
        elif operation.kind == "interrupt":
            self.interrupt(operation)

    def run(self, wanted: int) -> Interleavings:
        """Raises CheckFailure or Mismatch with the sequence that led there."""
        sequence = 0
        while self.statistics.interleaved < wanted:
            self.start(sequence)
            try:
                for _ in range(SEQUENCE):
                    if self.is_over() or self.statistics.interleaved >= wanted:
                        break
                    self.next()
            except (CheckFailure, Mismatch) as failure:
                last = "\n".join(self.history[-12:])
                raise type(failure)(
                    f"seed {self.seed}, sequence {sequence}:\n{failure}\nafter\n{last}"
                ) from failure
            sequence += 1
        return self.statistics

    def is_over(self) -> bool:
        """Neither order was right, nobody runs, or the line wakes nobody any more."""
        return (
            self.is_stale
            or self.kernel.current is None
            or self.host.current == self.urgent
            or self.urgent not in self.kernel.objects
            or LINE in self.kernel.masked
        )
