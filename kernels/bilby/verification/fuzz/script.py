# SPDX-License-Identifier: BSD-2-Clause
"""Sequences of operations by hand, in step with the specification, preempted everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels.bilby.verification.fuzz.draw import Operation
from kernels.bilby.verification.fuzz.host import PC, Answer, Host
from kernels.bilby.verification.fuzz.run import Run, symbols
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, SLICE, has_field, message
from kernels.bilby.verification.spec.state import Cap, Context, State, Thread

NODE, TCB, DIRECTORY = (API[f"ROOT_{name}"] for name in ("CNODE", "TCB", "PAGE_DIRECTORY"))
REGISTERS = API["MESSAGE_REGISTERS"]
ANY_WORD = 0x1234
NOWHERE = 1 << 31  # an address at which the first thread has nothing
LINE = 7  # whose signal wakes the urgent thread
LOOKUPS = 2  # of a deletion: the CNode, and the slot below it


class Script:
    """All threads share the first thread's CNode, so an address means the same to each."""

    def __init__(self, host: Host, path: Path, preset: str = "after") -> None:
        self.path = path
        self.run = Run(host, symbols(path), 0, preset)
        self.begin_again()

    def begin_again(self) -> None:
        """From the state after boot."""
        self.run.start(0)
        self._next = API["ROOT_FREE"]
        self.in_step = True

    def slots(self, count: int = 1) -> int:
        """The first of some empty slots."""
        self._next += count
        return self._next - count

    def cap_of(self, slot: int) -> Cap:
        cap = self.run.kernel.thread(self.run.first_thread).slots["cspace"].cap
        assert cap is not None
        found = self.run.kernel.cnode(cap["object"]).slots[slot].cap
        assert found is not None
        return found

    def object_of(self, slot: int) -> int:
        """The address of a capability's object."""
        return self.cap_of(slot)["object"]

    def thread_of(self, slot: int) -> Thread:
        return self.run.kernel.thread(self.object_of(slot))

    def runs(self, slot: int) -> bool:
        return self.run.kernel.current is self.thread_of(slot)

    # ---- system calls

    def syscall(
        self,
        name: str,
        address: int = 0,
        sent: int = 0,
        words: Sequence[int] = (),
        buffer: Mapping[int, int] | None = None,
        second: int = 0,
    ) -> None:
        """``second``: r6, of a call that sends and receives."""
        padded = [*words[:REGISTERS], *[ANY_WORD] * (REGISTERS - len(words))]
        number = API[f"SYS_{name}"]
        registers = [address, sent, *padded]
        operation = Operation("syscall", number, registers, dict(buffer or {}), name, second)
        self.run.step(operation, True)

    def fault(self, kind: str, address: int = 0x1000, status: int = 5) -> None:
        number = API[f"FAULT_{kind}"]
        self.run.step(Operation("fault", number, [address, status, 0, 0, 0, 0], name=kind), True)

    def interrupt(self, line: int) -> None:
        self.run.step(Operation("interrupt", line, name="interrupt"), True)

    def invoke(
        self,
        address: int,
        label: str,
        words: Sequence[int] = (),
        caps: Sequence[int] = (),
        error: str = "NONE",
        length: int | None = None,
    ) -> None:
        """A call on an object; fails if the error is not this one."""
        caller = self.run.kernel.current
        assert caller is not None
        buffer = {API["BUFFER_WORDS"] + i: words[i] for i in range(REGISTERS, len(words))}
        buffer |= {API["BUFFER_CAPS"] + i: cap for i, cap in enumerate(caps)}
        sent = message(len(words) if length is None else length, len(caps), 0,
                       API[f"LABEL_{label}"])  # fmt: skip
        self.syscall("CALL", address, sent, words, buffer)
        if self.run.kernel.current is caller:
            assert caller.regs[1] == message(0, 0, 0, E[error]), f"{label}: {caller.regs[1]:#x}"

    # ---- between two attempts: only the invariants are checked from there on

    def begin(self, label: str, slot: int, test: int, node: int = NODE) -> bool:
        """Delete, revoke or recycle, preempted at a test during its work; returns whether it was.

        If lookups are cached, it was preempted after each of them before.
        """
        self.in_step = False
        sent = message(2, 0, 0, API[f"LABEL_{label}"])
        registers = [node, sent, slot, 32, ANY_WORD, ANY_WORD]
        if self.keeps_lookups:
            self.begin_lookups(LOOKUPS, "CALL", node, sent, [slot, 32])
        return self._attempt(registers, test)

    def _attempt(self, registers: list[int], test: int) -> bool:
        """Whether the call was preempted: it is to be made again."""
        caller = self.run.host.current
        self.run.host.attempt(API["SYS_CALL"], registers, test)
        return self.run.host.word(caller + 4 * 15) < PC

    @property
    def keeps_lookups(self) -> bool:
        """A call can be preempted after each address that it looks up."""
        return has_field("tcb", "lookups")

    def begin_lookups(
        self, count: int, name: str, address: int, sent: int = 0, words: Sequence[int] = ()
    ) -> None:
        """A call, preempted after each of its first lookups and left so."""
        self.in_step = False
        registers = [address, sent, *words, *[ANY_WORD] * (REGISTERS - len(words))]
        for _ in range(count):
            self.run.host.attempt(API[f"SYS_{name}"], registers, 1)

    def interrupt_at_the_end(
        self,
        name: str,
        address: int,
        line: int = 0,
        lookups: int = 1,
        sent: int = 0,
        words: Sequence[int] = (),
    ) -> None:
        """A call; an interrupt comes when it is done, but for who runs next."""
        self.in_step = False
        registers = [address, sent, *words, *[ANY_WORD] * (REGISTERS - len(words))]
        test = 1 + lookups if self.keeps_lookups else 1
        self.run.host.attempt(API[f"SYS_{name}"], registers, test | line << 16)

    def begin_retype(self, kind: str, region: int, test: int) -> bool:
        """One object, preempted at a test and left so; whether it was."""
        return self._attempt(self._retype(kind, region, 1), test)

    def meanwhile_retype(self, kind: str, region: int, count: int = 1) -> None:
        """The same thread makes other objects of that region instead."""
        self.run.host.syscall(API["SYS_CALL"], self._retype(kind, region, count))

    def meanwhile_delete(self, slot: int) -> None:
        sent = message(2, 0, 0, API["LABEL_CNODE_DELETE"])
        self.run.host.syscall(API["SYS_CALL"], [NODE, sent, slot, 32, ANY_WORD, ANY_WORD])

    def _retype(self, kind: str, region: int, count: int) -> list[int]:
        """The registers of the call; other words go to the message buffer."""
        self.in_step = False
        caller = self.run.kernel.current
        assert caller is not None
        words = [API[f"TYPE_{kind}"], 0, 0, 0, self.slots(count), count]
        buffer = {API["BUFFER_WORDS"] + i: words[i] for i in range(REGISTERS, len(words))}
        for i, value in (buffer | {API["BUFFER_CAPS"]: NODE}).items():
            self.run.host.write(caller.buffer + 4 * i, value)
        sent = message(len(words), 1, 0, API["LABEL_UNTYPED_RETYPE"])
        return [region, sent, *words[:REGISTERS]]

    def meanwhile(
        self, name: str, address: int, sent: int = 0, words: Sequence[int] = (), force: bool = True
    ) -> Answer:
        """Whoever runs now makes a system call, of words that fit into registers."""
        self.in_step = False
        registers = [address, sent, *words, *[ANY_WORD] * (REGISTERS - len(words))]
        return self.run.host.syscall(API[f"SYS_{name}"], registers, force)

    def meanwhile_invoke(
        self, address: int, label: str, words: Sequence[int] = (), caps: Sequence[int] = ()
    ) -> Answer:
        """The same on an object, of any length; fails if that thread goes on and is refused."""
        self.in_step = False
        caller = self.run.host.current
        buffer = {API["BUFFER_WORDS"] + i: words[i] for i in range(REGISTERS, len(words))}
        buffer |= {API["BUFFER_CAPS"] + i: cap for i, cap in enumerate(caps)}
        place = self.run.kernel.thread(caller).buffer
        writes = {place + 4 * i: value for i, value in buffer.items()}
        sent = message(len(words), len(caps), 0, API[f"LABEL_{label}"])
        registers = [address, sent, *words[:REGISTERS]]
        registers += [ANY_WORD] * (2 + REGISTERS - len(registers))
        answer = self.run.host.syscall(API["SYS_CALL"], registers, False, writes)
        if self.run.host.current == caller:
            result = self.run.host.word(caller + 4)
            assert result == message(0, 0, 0, E["NONE"]), f"{label}: {result:#x}"
        return answer

    def now_runs(self, slot: int) -> bool:
        """As ``runs``, but between two attempts."""
        return self.run.host.current == self.thread_of(slot).address

    def urgent(self) -> tuple[int, int]:
        """A thread more urgent than the first; it waits for a signal of the line ``LINE``.

        Gives both; the first thread has priority 100 from here on.
        """
        notification, handler = self.make("NOTIFICATION"), self.slots()
        self.invoke(API["ROOT_IRQ_CONTROL"], "IRQ_GET", [LINE, handler, 32], [NODE])
        self.invoke(handler, "IRQ_SET_NOTIFICATION", [], [notification])
        self.invoke(handler, "IRQ_ACKNOWLEDGE")
        thread = self.thread(frame=self.make("FRAME_4K"))
        self.syscall("YIELD")
        self.syscall("RECEIVE", notification, buffer={API["BUFFER_CAPS"]: NODE})
        self.invoke(TCB, "TCB_SET_PRIORITY", [100])
        return thread, notification

    def meanwhile_fault(self, kind: str) -> None:
        """Whoever runs now faults."""
        self.run.host.fault(API[f"FAULT_{kind}"], 0x1000, 5)

    # ---- time, where it is a capability

    @property
    def is_timed(self) -> bool:
        return self.run.kernel.time is not None

    def context(self, budget: int = SLICE, period: int = SLICE) -> int:
        """A new one; amounts are ticks."""
        slot = self.make("CONTEXT", region=2)
        self.allot(slot, budget, period)
        return slot

    def allot(self, context: int, budget: int, period: int, error: str = "NONE") -> None:
        words = [budget, period]
        self.invoke(API["ROOT_SCHED_CONTROL"], "CONTEXT_CONFIGURE", words, [context], error)

    def bind(self, context: int, thread: int, error: str = "NONE") -> None:
        self.invoke(context, "CONTEXT_BIND", [], [thread], error)

    def passive(self, endpoint: int, frame: int = 0, handler: int = 0, bound: int = 0) -> int:
        """A server that waits for messages without a context: it runs on donated contexts."""
        thread = self.make("TCB")
        self.configure(thread, frame, handler=handler)
        if bound:
            self.invoke(thread, "TCB_BIND", [], [bound])
        context = self.context()
        self.bind(context, thread)
        self.start(thread, 255)
        self.yield_until(thread)
        self.syscall("RECEIVE", endpoint)
        self.yield_until(TCB)
        self.invoke(context, "CONTEXT_UNBIND")
        self.delete(context)
        return thread

    def yield_until(self, thread: int) -> None:
        """It runs; fails if all others have had their turns before it."""
        turns = len(self.run.kernel.runnable())
        while not self.runs(thread):
            assert turns
            self.syscall("YIELD")
            turns -= 1

    def paid(
        self, budget: int, period: int, priority: int = 255, frame: int = 0
    ) -> tuple[int, int]:
        """A thread, and its context, which has so many ticks in each period."""
        thread = self.make("TCB")
        self.configure(thread, frame)
        context = self.context(budget, period)
        self.bind(context, thread)
        self.start(thread, priority)
        return thread, context

    def context_of(self, slot: int) -> Context:
        return self.run.kernel.context(self.object_of(slot))

    def waits_for_context(self, slot: int) -> bool:
        """The thread would run, and is on none."""
        thread = self.thread_of(slot)
        return thread.state is State.WITHOUT_CONTEXT and thread.context is None

    def waits_for_time(self, context: int) -> bool:
        """It is in the release queue."""
        time = self.run.kernel.time
        return time is not None and self.context_of(context) in time.waiting

    def pass_time(self, ticks: int, *, alarms: bool = True) -> None:
        """The next operation is so much later; alarms interrupt in time, or not at all."""
        time = self.run.kernel.time
        assert time is not None
        until = self.run.host.now + ticks
        while alarms and time.alarm_at <= until:
            self.run.host.now = time.alarm_at
            self.run.alarm()
        self.run.host.now = until

    def use_up_slice(self) -> None:
        """The current thread has run as long as its turn is; the timer is about to interrupt."""
        if self.is_timed:
            self.run.host.now += SLICE

    # ---- objects

    def make(self, kind: str, size: int = 0, count: int = 1, region: int = 1) -> int:
        """New objects; the slot of the first capability."""
        first = self.slots(count)
        words = [API[f"TYPE_{kind}"], size, 0, 0, first, count]
        untyped = region if region >= API["ROOT_UNTYPED"] else API["ROOT_UNTYPED"] + region
        self.invoke(untyped, "UNTYPED_RETYPE", words, [NODE])
        return first

    def space(self, region: int = 1) -> int:
        """A page directory that can be used."""
        directory = self.make("PAGE_DIRECTORY", region=region)
        if self.run.kernel.pools:
            self.invoke(API["ROOT_ASID_POOL"], "ASID_ASSIGN", [], [directory])
        return directory

    def copy(self, source: int, rights: int = 7, error: str = "NONE") -> int:
        to = self.slots()
        self.invoke(NODE, "CNODE_COPY", [to, 32, source, 32, rights], [NODE], error)
        return to

    def mint(self, source: int, data: int, error: str = "NONE") -> int:
        to = self.slots()
        self.invoke(NODE, "CNODE_MINT", [to, 32, source, 32, 7, data], [NODE], error)
        return to

    def delete(self, slot: int) -> None:
        self.invoke(NODE, "CNODE_DELETE", [slot, 32])

    def revoke(self, slot: int) -> None:
        self.invoke(NODE, "CNODE_REVOKE", [slot, 32])

    def recycle(self, slot: int, error: str = "NONE") -> None:
        self.invoke(NODE, "CNODE_RECYCLE", [slot, 32], error=error)

    def configure(
        self, thread: int, frame: int = 0, space: int = DIRECTORY, handler: int = 0
    ) -> None:
        caps = [NODE, space, frame] if frame else [NODE, space]
        self.invoke(thread, "TCB_CONFIGURE", [handler, 0], caps)

    def start(self, thread: int, priority: int) -> None:
        """Where time is a capability, on a context of its own, by turns with its equals."""
        self.invoke(thread, "TCB_SET_PRIORITY", [priority])
        if self.is_timed and self.thread_of(thread).home is None:
            self.bind(self.context(), thread)
        self.invoke(thread, "TCB_RESUME")

    def thread(
        self, priority: int = 255, frame: int = 0, space: int = DIRECTORY, handler: int = 0
    ) -> int:
        """A thread that is ready to run."""
        slot = self.make("TCB")
        self.configure(slot, frame, space, handler)
        self.start(slot, priority)
        return slot
