# SPDX-License-Identifier: BSD-2-Clause
"""Sequences of random operations: which come next, and several that only make sense together.

Everything is drawn from one generator, so a seed gives the same sequence again.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from kernels.bilby.verification.fuzz.draw import Operation
from kernels.bilby.verification.fuzz.draw_time import TimedDraw
from kernels.bilby.verification.spec.layout import API, BUDGET_LEAST, SLICE, message
from kernels.bilby.verification.spec.state import Kernel

WAITING = [API[f"SYS_{name}"] for name in ("CALL", "SEND", "RECEIVE", "REPLY_RECEIVE")]
TIMED_WAITING = [API[f"SYS_{name}"] for name in ("SIGNAL_RECEIVE", "NB_SEND_RECEIVE")]


class Generator(TimedDraw):
    def __init__(self, rng: random.Random, kernel: Kernel) -> None:
        super().__init__(rng, kernel)
        self.agenda: list[Callable[[], Operation]] = []

    def crowd(self) -> Operation:
        """One more thread that waits to send, if somebody else can run."""
        if not self.kernel.scheduler.others():
            self.plan_thread()
            return self.do_yield()
        slots = [s for s in self.slots("endpoint") if s.cap and s.cap["can_send"]]
        slots = slots[-3:] or slots
        if not slots:
            return self.do_yield()
        number = self.rng.choice([API["SYS_SEND"], API["SYS_CALL"]])
        words = [self.rng.getrandbits(32) for _ in range(4)]
        registers = [self.prefix() | self.rng.choice(slots).index, message(4, 0, 0, 0), *words]
        return Operation("syscall", number, registers, {}, "crowd")

    # ---- plans: several operations that only make sense together

    def plan_thread(self) -> None:
        """A thread that will run, in an address space of its own or not, with a buffer or none."""
        slot, frame, directory = self.fresh(3)
        node = API["ROOT_CNODE"]
        has_space = self.rng.random() < 0.4
        if not has_space:
            directory = API["ROOT_PAGE_DIRECTORY"]
        priority = self.rng.choice([100, 200, 254, 255, 255, 255])
        has_buffer = self.rng.random() < 0.8
        caps = [node, directory, frame] if has_buffer else [node, directory]
        tcb = API["TYPE_TCB"]
        steps = [self.make_step("thread", tcb, 0, slot)]
        if has_space:
            steps.append(self.make_step("space", API["TYPE_PAGE_DIRECTORY"], 0, directory))
            steps += self.number_step(directory)
        if has_buffer:
            steps.append(self.make_step("buffer", API["TYPE_FRAME_4K"], 0, frame))
        handler = self.pick("endpoint")
        words = [self.rng.getrandbits(32) for _ in range(17)]
        steps += [
            lambda: self.invoke("configure", slot, API["LABEL_TCB_CONFIGURE"],
                                [handler, 0], caps, sure=True),
            lambda: self.invoke("write registers", slot, API["LABEL_TCB_WRITE_REGISTERS"],
                                words, [], sure=True),
            lambda: self.invoke("set priority", slot, API["LABEL_TCB_SET_PRIORITY"],
                                [priority], [], sure=True),
            *self.time_steps(slot),
            lambda: self.invoke("resume", slot, API["LABEL_TCB_RESUME"], [], [], sure=True),
        ]  # fmt: skip
        if self.kernel.time is not None:
            steps.append(self.do_yield)
        self.agenda += steps

    def time_steps(self, thread: int) -> list[Callable[[], Operation]]:
        """Operations on time as a capability: contexts of a thread, and donations."""
        if self.kernel.time is None:
            return []
        steps: list[Callable[[], Operation]] = []
        if self.rng.random() < 0.25:
            level, label = self.rng.randrange(4), API["LABEL_TCB_SET_CRITICALITY"]
            steps.append(lambda: self.invoke("set criticality", thread, label, [level], []))
        has_handler = self.rng.random() < 0.35
        if has_handler:
            steps.append(lambda: self.invoke("set timeout", thread, API["LABEL_TCB_SET_TIMEOUT"],
                                             [], [self.pick("endpoint")], sure=True))  # fmt: skip
        if self.rng.random() < 0.15:
            return steps
        (context,) = self.fresh(1)
        words = [SLICE, SLICE] if self.rng.random() < 0.5 else self.amounts()
        if has_handler:
            words = [BUDGET_LEAST, 2 * SLICE]
        return [
            *steps,
            self.make_step("context", API["TYPE_CONTEXT"], 0, context),
            lambda: self.invoke("configure context", API["ROOT_SCHED_CONTROL"],
                                API["LABEL_CONTEXT_CONFIGURE"], words, [context], sure=True),
            lambda: self.invoke("bind context", context, API["LABEL_CONTEXT_BIND"], [], [thread],
                                sure=True),
        ]  # fmt: skip

    def plan_server(self) -> None:
        """A thread that waits for messages, and has no context of its own: others donate theirs."""
        slot, endpoint, context = self.fresh(3)
        node, directory = API["ROOT_CNODE"], API["ROOT_PAGE_DIRECTORY"]
        priority = self.rng.choice([200, 255, 255, 255])
        label = API["LABEL_TCB_CONFIGURE"]
        steps = [
            self.make_step("thread", API["TYPE_TCB"], 0, slot),
            self.make_step("endpoint", API["TYPE_ENDPOINT"], 0, endpoint),
            self.make_step("context", API["TYPE_CONTEXT"], 0, context),
            lambda: self.invoke("configure", slot, label, [endpoint, 0], [node, directory],
                                sure=True),
            lambda: self.invoke("set priority", slot, API["LABEL_TCB_SET_PRIORITY"], [priority],
                                [], sure=True),
            lambda: self.invoke("configure context", API["ROOT_SCHED_CONTROL"],
                                API["LABEL_CONTEXT_CONFIGURE"], [SLICE, SLICE], [context],
                                sure=True),
            lambda: self.invoke("bind context", context, API["LABEL_CONTEXT_BIND"], [], [slot],
                                sure=True),
            lambda: self.invoke("resume", slot, API["LABEL_TCB_RESUME"], [], [], sure=True),
            *[lambda: self.serve(slot, endpoint)] * 4,
            lambda: self.invoke("unbind context", context, API["LABEL_CONTEXT_UNBIND"], [], [],
                                sure=True),
            *[lambda: self.use_server(endpoint)] * 3,
        ]  # fmt: skip
        if self.rng.random() < 0.4:
            steps.insert(4, lambda: self.invoke(
                "set timeout", slot, API["LABEL_TCB_SET_TIMEOUT"], [], [self.pick("endpoint")],
                sure=True))  # fmt: skip
        self.agenda += steps

    def serve(self, thread: int, endpoint: int) -> Operation:
        """If that thread runs it waits for messages; else it has its turn."""
        node = self.space()
        cap = None if node is None else node.slots[thread % len(node.slots)].cap
        is_server = cap is not None and cap.kind == "tcb" and cap["object"] == self.thread.address
        if not is_server or not self.kernel.scheduler.others():
            return self.do_yield()
        registers = [self.prefix() | endpoint, *[self.rng.getrandbits(7)] * 5]
        return Operation("syscall", API["SYS_RECEIVE"], registers, {}, "serve")

    def is_received(self, endpoint: int) -> bool:
        """Somebody waits for messages at this place."""
        node = self.space()
        cap = None if node is None else node.slots[endpoint % len(node.slots)].cap
        if cap is None or cap.kind != "endpoint":
            return False
        found = self.kernel.endpoint(cap["object"])
        return bool(found.queue) and not found.sending

    def use_server(self, endpoint: int) -> Operation:
        """With a message, if it waits for one or somebody else can run."""
        if not self.is_received(endpoint) and not self.kernel.scheduler.others():
            return self.do_yield()
        name = self.rng.choice(["CALL", "CALL", "CALL", "SEND", "NB_SEND", "NB_SEND_RECEIVE"])
        registers = [self.prefix() | endpoint, message(2, 0, 0, 0), 1, 2, 3, 4]
        second = registers[0]
        if name == "NB_SEND_RECEIVE":
            registers[0] = self.pick("endpoint")
        number = API[f"SYS_{name}"]
        return Operation("syscall", number, registers, {}, f"SYS_{name}", second)

    def plan_space(self) -> None:
        """An address space with a table, and frames in it."""
        directory, table, frame = self.fresh(3)
        address = self.rng.choice([1, 2, 0x100, 0xAFF]) << 20
        self.agenda += [
            self.make_step("directory", API["TYPE_PAGE_DIRECTORY"], 0, directory),
            *self.number_step(directory),
            self.make_step("table", API["TYPE_PAGE_TABLE"], 0, table),
            self.make_step("frame", API["TYPE_FRAME_4K"], 0, frame),
            lambda: self.invoke("map table", table, API["LABEL_PAGE_TABLE_MAP"], [address],
                                [directory], sure=True),
            lambda: self.invoke("map frame", frame, API["LABEL_FRAME_MAP"],
                                [address, 3, self.rng.randrange(4)], [directory], sure=True),
        ]  # fmt: skip

    def plan_line(self) -> None:
        """A line that interrupts."""
        handler, notification = self.fresh(2)
        line = self.rng.randrange(62)
        node = API["ROOT_CNODE"]
        self.agenda += [
            self.make_step("notification", API["TYPE_NOTIFICATION"], 0, notification),
            lambda: self.invoke("get line", API["ROOT_IRQ_CONTROL"], API["LABEL_IRQ_GET"],
                                [line, handler, 32], [node], sure=True),
            lambda: self.invoke("set notification", handler, API["LABEL_IRQ_SET_NOTIFICATION"],
                                [], [notification], sure=True),
            lambda: self.invoke("acknowledge", handler, API["LABEL_IRQ_ACKNOWLEDGE"], [], [],
                                sure=True),
        ]  # fmt: skip

    def number_step(self, directory: int) -> list[Callable[[], Operation]]:
        """Where spaces have numbers, a directory is of no use without."""
        if not self.kernel.pools:
            return []
        return [lambda: self.invoke("assign", self.pick("asid_pool"), API["LABEL_ASID_ASSIGN"],
                                    [], [directory], sure=True)]  # fmt: skip

    def plan_pool(self) -> None:
        region, pool = self.fresh(2)
        self.agenda += [
            self.make_step("region", API["TYPE_UNTYPED"], 12, region),
            lambda: self.invoke("make pool", API["ROOT_ASID_CONTROL"], API["LABEL_ASID_MAKE_POOL"],
                                [pool, 32], [region, API["ROOT_CNODE"]], sure=True),
        ]  # fmt: skip

    def fresh(self, count: int) -> list[int]:
        """Empty slots of the first thread's CNode."""
        node = self.space()
        if node is None or len(node.slots) <= 4096:
            return [self.rng.randrange(16) for _ in range(count)]
        free = [i for i in range(API["ROOT_FREE"], API["ROOT_FREE"] + 800) if i not in node.filled]
        return self.rng.sample(free, count)

    def make_step(self, name: str, kind: int, size: int, slot: int) -> Callable[[], Operation]:
        untyped = API["ROOT_UNTYPED"] + self.rng.randrange(3)
        words = [kind, size, 0, 0, slot, 1]
        return lambda: self.invoke(f"retype {name}", untyped, API["LABEL_UNTYPED_RETYPE"], words,
                                   [API["ROOT_CNODE"]], sure=True)  # fmt: skip

    def choices(self) -> dict[Callable[[], Operation], int]:
        timed = {} if self.kernel.time is None else {
            **self.timed_choices(), self.ipc: 40, self.answer: 14
        }  # fmt: skip
        return {
            self.retype: 14, self.retype_device: 3, self.copy: 8, self.mint: 8, self.configure: 8,
            self.write_registers: 2, self.resume: 8, self.set_priority: 4,
            self.map_table: 4, self.map_frame: 8, self.get_line: 2,
            self.set_notification: 2, self.acknowledge: 2, self.ipc: 20,
            self.crowd: 12, self.answer: 6,
            self.move: 5, self.rotate: 3, self.delete: 7, self.revoke: 3, self.recycle: 3,
            self.suspend: 2, self.unmap: 3, self.clean: 2,
            self.read_registers: 2, self.unconfigure: 2, self.tell_address: 1, self.bind: 3,
            self.assign: 3 if self.kernel.pools else 1,
            self.clear_notification: 1, self.hostile: 6,
            self.do_yield: 3, self.fault: 1, self.interrupt: 2,
        } | timed  # fmt: skip

    def would_strand(self, operation: Operation) -> bool:
        """The last runnable thread would stop."""
        alone = not self.kernel.scheduler.others()
        waiting = WAITING if self.kernel.time is None else WAITING + TIMED_WAITING
        stops = operation.kind == "fault" or operation.number in waiting
        ends = operation.kind != "interrupt" and stops and operation.name in (
            "fault", "SYS_CALL", "SYS_SEND", "SYS_RECEIVE", "SYS_REPLY_RECEIVE", "hostile",
            "SYS_SIGNAL_RECEIVE", "SYS_NB_SEND_RECEIVE",
        )  # fmt: skip
        return alone and ends

    def next(self) -> Operation:
        if self.kernel.current is None:
            return self.interrupt()
        if self.space() is not None and self.thread.buffer:
            if not self.agenda and self.rng.random() < 0.08:
                plans = [self.plan_thread] * 4 + [self.plan_space, self.plan_line]
                if self.kernel.time is not None:
                    plans += [self.plan_server] * 4
                self.rng.choice([*plans, *[self.plan_pool][: len(self.kernel.pools)]])()
            if self.agenda and self.rng.random() < 0.7:
                return self.agenda.pop(0)()
        table = self.choices()
        for _ in range(4):
            make = self.rng.choices(list(table), list(table.values()))[0]
            operation = make()
            if not self.would_strand(operation):
                return operation
        return self.do_yield()
