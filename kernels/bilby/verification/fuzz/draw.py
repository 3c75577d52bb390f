# SPDX-License-Identifier: BSD-2-Clause
"""Single random operations that know the state: most could succeed, some are wrong in one place.

Everything is drawn from one generator, so a seed gives the same sequence again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from kernels.bilby.verification.spec.layout import API, TICK, WINDOW, message
from kernels.bilby.verification.spec.state import CNode, Kernel, Slot, Thread

HOSTILE = [0, 1, 2, 3, 31, 32, 33, 64, 127, 255, 256, 4096, 1 << 20, 1 << 28]
HOSTILE += [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, WINDOW, WINDOW - 4096, 0xF0000000]
MUTATE = 0.15  # of the operations have one wrong argument


@dataclass(slots=True)
class Operation:
    """An operation of the current thread, and the words it writes into its buffer before."""

    kind: str  # "syscall", "fault", "interrupt"
    number: int = 0
    registers: list[int] = field(default_factory=lambda: [0] * 6)
    buffer: dict[int, int] = field(default_factory=dict)  # word by index
    name: str = ""
    second: int = 0  # r6, of a call that sends and receives

    def __str__(self) -> str:
        words = " ".join(f"{r:#x}" for r in self.registers)
        extra = " ".join(f"[{i}]={v:#x}" for i, v in sorted(self.buffer.items()))
        second = f"r6={self.second:#x}" if self.second else ""
        return " ".join(f"{self.name}: {self.kind} {self.number} {words} {extra} {second}".split())


class Draw:
    def __init__(self, rng: random.Random, kernel: Kernel) -> None:
        self.rng = rng
        self.kernel = kernel

    # ---- the current state

    @property
    def thread(self) -> Thread:
        assert self.kernel.current is not None
        return self.kernel.current

    def space(self) -> CNode | None:
        """The CNode that resolves whole addresses of the current thread."""
        cap = self.thread.slots["cspace"].cap
        if cap is None or cap["radix"] + cap["guard_size"] != 32:
            return None
        return self.kernel.cnode(cap["object"])

    def prefix(self) -> int:
        cap = self.thread.slots["cspace"].cap
        assert cap is not None
        return cap["guard"] << cap["radix"]

    def slots(self, *kinds: str) -> list[Slot]:
        node = self.space()
        if node is None:
            return []
        return [slot for slot in node.filled.values() if slot.cap and slot.cap.kind in kinds]

    def pick(self, *kinds: str) -> int:
        """The address of a capability of one of these kinds; a wrong one if there is none."""
        found = self.slots(*kinds)
        if not found or self.rng.random() < 0.02:
            return self.rng.randrange(300)
        return self.prefix() | self.rng.choice(found).index

    def empty(self, node: CNode) -> int:
        first = API["ROOT_FREE"] if len(node.slots) > 4096 else 0
        span = min(len(node.slots) - first, 600)
        for _ in range(20):
            index = first + self.rng.randrange(span)
            if index not in node.filled:
                return index
        return first + self.rng.randrange(span)

    def node(self) -> tuple[int, CNode | None, int, int]:
        """A CNode's capability: address, object, bits of a whole level, guard in its place."""
        found = self.slots("cnode")
        if not found:
            return self.rng.randrange(300), None, 32, 0
        slot = self.rng.choice(found)
        assert slot.cap is not None
        node = self.kernel.cnode(slot.cap["object"])
        depth = slot.cap["radix"] + slot.cap["guard_size"]
        return self.prefix() | slot.index, node, depth, slot.cap["guard"] << slot.cap["radix"]

    def place(self, occupied: bool) -> tuple[int, int, int]:
        """A slot as CNode address, index and depth."""
        address, node, depth, guard = self.node()
        if node is None:
            return address, self.rng.randrange(16), depth
        filled = sorted(node.filled)
        index = self.rng.choice(filled) if occupied and filled else self.empty(node)
        return address, guard | index, depth

    # ---- operations

    def invoke(
        self,
        name: str,
        address: int,
        label: int,
        words: list[int],
        caps: list[int],
        sure: bool = False,
    ) -> Operation:
        """A call to an object; the message beyond registers goes through the buffer."""
        words, caps = list(words), list(caps)
        if not sure and self.rng.random() < MUTATE:
            target = self.rng.choice([words, caps]) if caps and words else words or caps
            if target:
                target[self.rng.randrange(len(target))] = self.rng.choice(HOSTILE)
        length = len(words)
        if not sure and self.rng.random() < 0.03:
            length = self.rng.randrange(128)
        if not sure and self.rng.random() < 0.03:
            caps = caps[: self.rng.randrange(len(caps) + 1)]
        buffer = {API["BUFFER_WORDS"] + i: words[i] for i in range(4, len(words))}
        buffer |= {API["BUFFER_CAPS"] + i: cap for i, cap in enumerate(caps)}
        registers = [address, message(length & 0x7F, len(caps), 0, label), *words[:4]]
        registers += [self.rng.getrandbits(32)] * (6 - len(registers))
        return Operation("syscall", API["SYS_CALL"], registers, buffer, name)

    def retype(self) -> Operation:
        timed = [] if self.kernel.time is None else [API["TYPE_CONTEXT"]] * 2
        kind = self.rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 9, 9, 10, 7, *timed])
        size = {0: self.rng.randrange(4, 17), 1: self.rng.randrange(1, 9)}.get(kind, 0)
        address, node, _, _ = self.node()
        count = self.rng.choice([1, 1, 1, 2, 4])
        first = self.empty(node) if node else 0
        words = [kind, size, 0, 0, first, count]
        return self.invoke("retype", self.pick("untyped"), API["LABEL_UNTYPED_RETYPE"], words,
                           [address])  # fmt: skip

    def retype_device(self) -> Operation:
        kind = self.rng.choice([0, 0, 5, 5, 5, 6, 7, 8, 2])
        address, node, _, _ = self.node()
        words = [kind, self.rng.randrange(11, 20), 0, 0, self.empty(node) if node else 0,
                 self.rng.choice([1, 1, 2, 4])]  # fmt: skip
        return self.invoke("retype device", self.pick("device"), API["LABEL_UNTYPED_RETYPE"], words,
                           [address])  # fmt: skip

    def copy(self) -> Operation:
        to, index, depth = self.place(occupied=False)
        source, from_index, from_depth = self.place(occupied=True)
        badged = [s for s in self.slots("endpoint", "notification") if s.cap and s.cap["badge"]]
        if badged and self.rng.random() < 0.3:
            source, from_index, from_depth = API["ROOT_CNODE"], self.rng.choice(badged).index, 32
        rights = self.rng.choice([7, 7, 7, 1, 2, 3, 5, self.rng.randrange(8)])
        words = [index, depth, from_index, from_depth, rights]
        return self.invoke("copy", to, API["LABEL_CNODE_COPY"], words, [source])

    def mint(self) -> Operation:
        to, index, depth = self.place(occupied=False)
        source, from_index, from_depth = self.place(occupied=True)
        data = self.rng.choice([1, 2, 3, 0xFFFFFFF, self.rng.randrange(19), 32 - 8, 32 - 4])
        words = [index, depth, from_index, from_depth, 7, data]
        return self.invoke("mint", to, API["LABEL_CNODE_MINT"], words, [source])

    def configure(self) -> Operation:
        frames = [s for s in self.slots("frame") if s.cap and not s.cap["device"]]
        caps = [self.pick("cnode") if self.rng.random() < 0.3 else API["ROOT_CNODE"],
                self.pick("page_directory")]  # fmt: skip
        if frames and self.rng.random() < 0.85:
            caps.append(self.prefix() | self.rng.choice(frames).index)
        words = [self.pick("endpoint"), self.rng.choice([0, 512, 3584])]
        return self.invoke("configure", self.pick("tcb"), API["LABEL_TCB_CONFIGURE"], words, caps)

    def write_registers(self) -> Operation:
        words = [self.rng.getrandbits(32) for _ in range(17)]
        return self.invoke(
            "write registers", self.pick("tcb"), API["LABEL_TCB_WRITE_REGISTERS"], words, []
        )

    def resume(self) -> Operation:
        return self.invoke("resume", self.pick("tcb"), API["LABEL_TCB_RESUME"], [], [])

    def set_priority(self) -> Operation:
        words = [self.rng.choice([0, 1, 100, 100, 200, 254, 255])]
        return self.invoke(
            "set priority", self.pick("tcb"), API["LABEL_TCB_SET_PRIORITY"], words, []
        )

    def map_table(self) -> Operation:
        address = self.rng.choice([1, 2, 3, 0x100, 0xAFF, 0xB00]) << 20
        return self.invoke("map table", self.pick("page_table"), API["LABEL_PAGE_TABLE_MAP"],
                           [address], [self.pick("page_directory")])  # fmt: skip

    def map_frame(self) -> Operation:
        frames = self.slots("frame")
        if not frames:
            return self.hostile()
        slot = self.rng.choice(frames)
        assert slot.cap is not None
        bits = 12 + 4 * slot.cap["size"]
        base = self.rng.choice([1, 1, 2, 3, 0x100, 0xAFF, 0xB00]) << 20
        address = (base + (self.rng.randrange(256) << 12)) >> bits << bits
        words = [address, self.rng.randrange(4), self.rng.choice([0, 0, 1, 2, 3])]
        return self.invoke("map frame", self.prefix() | slot.index, API["LABEL_FRAME_MAP"], words,
                           [self.pick("page_directory")])  # fmt: skip

    def get_line(self) -> Operation:
        to, index, depth = self.place(occupied=False)
        words = [self.rng.randrange(62), index, depth]
        return self.invoke("get line", API["ROOT_IRQ_CONTROL"], API["LABEL_IRQ_GET"], words, [to])

    def set_notification(self) -> Operation:
        return self.invoke(
            "set notification",
            self.pick("irq_handler"),
            API["LABEL_IRQ_SET_NOTIFICATION"],
            [],
            [self.pick("notification")],
        )

    def acknowledge(self) -> Operation:
        return self.invoke(
            "acknowledge", self.pick("irq_handler"), API["LABEL_IRQ_ACKNOWLEDGE"], [], []
        )

    def move(self) -> Operation:
        to, index, depth = self.place(occupied=False)
        source, from_index, from_depth = self.place(occupied=True)
        words = [index, depth, from_index, from_depth]
        if self.rng.random() < 0.7:
            return self.invoke("move", to, API["LABEL_CNODE_MOVE"], words, [source])
        words.append(self.rng.choice([0, 32 - 8, 3 << 5 | 4, self.rng.getrandbits(10)]))
        return self.invoke("mutate", to, API["LABEL_CNODE_MUTATE"], words, [source])

    def rotate(self) -> Operation:
        to, index, depth = self.place(occupied=False)
        pivot, pivot_index, pivot_depth = self.place(occupied=True)
        source, from_index, from_depth = self.place(occupied=True)
        words = [index, depth, pivot_index, pivot_depth, from_index, from_depth]
        if self.rng.random() < 0.4:
            to, words[0], words[1] = source, from_index, from_depth
        return self.invoke("rotate", to, API["LABEL_CNODE_ROTATE"], words, [pivot, source])

    def victim(self) -> tuple[int, int, int]:
        """A slot whose loss does not end the sequence, mostly; every kind is as likely."""
        node = self.space()
        if node is not None and len(node.slots) > 4096 and self.rng.random() < 0.6:
            mine = [s for s in node.filled.values() if s.cap and s.index >= API["ROOT_FREE"]]
            kinds = sorted({s.cap.kind for s in mine if s.cap})
            if kinds:
                kind = self.rng.choice(kinds)
                slot = self.rng.choice([s for s in mine if s.cap and s.cap.kind == kind])
                return API["ROOT_CNODE"], slot.index, 32
        for _ in range(6):
            address, index, depth = self.place(occupied=True)
            if index >= API["ROOT_FREE"] or depth < 32 or self.rng.random() < 0.02:
                break
        return address, index, depth

    def delete(self) -> Operation:
        address, index, depth = self.victim()
        return self.invoke("delete", address, API["LABEL_CNODE_DELETE"], [index, depth], [])

    def revoke(self) -> Operation:
        address, index, depth = self.victim()
        above = [s for s in self.slots("endpoint", "endpoint", "notification", "cnode", "frame",
                                       "tcb", "irq_handler", "page_directory")
                 if s.index >= API["ROOT_FREE"] and self.kernel.has_child(s)]  # fmt: skip
        if above and self.rng.random() < 0.7:
            badged = [s for s in above if s.cap and s.cap.fields.get("badge")]
            slot = self.rng.choice(badged or above)
            address, index, depth = API["ROOT_CNODE"], slot.index, 32
        if self.rng.random() < 0.02:
            address, index, depth = API["ROOT_CNODE"], API["ROOT_UNTYPED"] + 1, 32
        return self.invoke("revoke", address, API["LABEL_CNODE_REVOKE"], [index, depth], [])

    def recycle(self) -> Operation:
        slots = self.slots("endpoint", "notification", "tcb")
        crowded = [s for s in slots if s.cap and s.cap.kind == "endpoint"
                   and len(self.kernel.endpoint(s.cap["object"]).queue) > 1]  # fmt: skip
        if crowded and self.rng.random() < 0.7:
            slots = crowded
        if not slots or self.rng.random() < 0.1:
            address, index, depth = self.victim()
        else:
            address, index, depth = API["ROOT_CNODE"], self.rng.choice(slots).index, 32
        return self.invoke("recycle", address, API["LABEL_CNODE_RECYCLE"], [index, depth], [])

    def read_registers(self) -> Operation:
        label = API["LABEL_TCB_READ_REGISTERS"]
        return self.invoke("read registers", self.pick("tcb"), label, [], [])

    def unconfigure(self) -> Operation:
        label = API["LABEL_TCB_UNCONFIGURE"]
        return self.invoke("unconfigure", self.pick("tcb"), label, [], [])

    def bind(self) -> Operation:
        if self.rng.random() < 0.25:
            return self.invoke("unbind", self.pick("tcb"), API["LABEL_TCB_UNBIND"], [], [])
        return self.invoke("bind", self.pick("tcb"), API["LABEL_TCB_BIND"], [],
                           [self.pick("notification")])  # fmt: skip

    def tell_address(self) -> Operation:
        return self.invoke("address", self.pick("frame"), API["LABEL_FRAME_ADDRESS"], [], [])

    def suspend(self) -> Operation:
        return self.invoke("suspend", self.pick("tcb"), API["LABEL_TCB_SUSPEND"], [], [])

    def clean(self) -> Operation:
        label = self.rng.choice(["LABEL_FRAME_CLEAN", "LABEL_FRAME_PUBLISH"])
        words = [32 * self.rng.randrange(130), 32 * self.rng.randrange(34)]
        return self.invoke("clean", self.pick("frame"), API[label], words, [])

    def unmap(self) -> Operation:
        if self.rng.random() < 0.7:
            return self.invoke("unmap", self.pick("frame"), API["LABEL_FRAME_UNMAP"], [], [])
        return self.invoke(
            "unmap table", self.pick("page_table"), API["LABEL_PAGE_TABLE_UNMAP"], [], []
        )

    def assign(self) -> Operation:
        """A number for a directory; where spaces have none, a wrong kind of capability."""
        if self.rng.random() < 0.3:
            to, index, depth = self.place(occupied=False)
            return self.invoke("make pool", API["ROOT_ASID_CONTROL"], API["LABEL_ASID_MAKE_POOL"],
                               [index, depth], [self.pick("untyped"), to])  # fmt: skip
        return self.invoke("assign", self.pick("asid_pool"), API["LABEL_ASID_ASSIGN"], [],
                           [self.pick("page_directory")])  # fmt: skip

    def clear_notification(self) -> Operation:
        return self.invoke("clear notification", self.pick("irq_handler"),
                           API["LABEL_IRQ_CLEAR_NOTIFICATION"], [], [])  # fmt: skip

    def signal(self) -> Operation:
        """To a notification; nobody waits."""
        registers = [self.pick("notification"), message(0, 0, 0, 0), 0, 0, 0, 0]
        return Operation("syscall", API["SYS_NB_SEND"], registers, {}, "signal")

    def ipc(self) -> Operation:
        """A message, with words and capabilities that may be received."""
        number = self.rng.choice(["SYS_CALL", "SYS_CALL", "SYS_SEND", "SYS_NB_SEND",
                                  "SYS_RECEIVE", "SYS_RECEIVE", "SYS_REPLY_RECEIVE",
                                  "SYS_REPLY_RECEIVE", "SYS_REPLY", "SYS_POLL"])  # fmt: skip
        length = self.rng.choice([0, 1, 4, 4, 5, 20, 120, 121, 127])
        extra = self.rng.choice([0, 0, 1, 2, 3])
        buffer = {}
        if extra:
            wanted = [self.pick("endpoint"), self.pick("frame", "cnode", "endpoint", "tcb")]
            buffer = {API["BUFFER_CAPS"] + i: self.rng.choice(wanted) for i in range(extra)}
        if self.rng.random() < 0.5:
            to, index, depth = self.place(occupied=False)
            buffer[API["BUFFER_RECEIVE_ROOT"]] = to
            buffer[API["BUFFER_RECEIVE_INDEX"]] = index
            buffer[API["BUFFER_RECEIVE_DEPTH"]] = depth
        if self.rng.random() < 0.3:
            buffer |= {self.rng.randrange(5, 121): self.rng.getrandbits(32) for _ in range(3)}
        label = self.rng.choice([0, 0, 7, 0xFFFFF])
        words = [self.rng.getrandbits(32) for _ in range(4)]
        kinds = ("endpoint",) if self.rng.random() < 0.75 else ("notification",)
        registers = [self.pick(*kinds), message(length, extra, 0, label), *words]
        return Operation("syscall", API[number], registers, buffer, number)

    def answer(self) -> Operation:
        """The shortest way to serve: answer, and wait for the next."""
        if self.thread.slots["caller"].cap is None:
            slots = [s for s in self.slots("endpoint") if s.cap and self.kernel.endpoint(
                s.cap["object"]).sending]  # fmt: skip
            if not slots:
                return self.ipc()
            registers = [self.prefix() | slots[0].index, *[self.rng.getrandbits(7)] * 5]
            return Operation("syscall", API["SYS_RECEIVE"], registers, {}, "serve")
        words = [self.rng.getrandbits(32) for _ in range(4)]
        registers = [self.pick("endpoint"), message(self.rng.randrange(5), 0, 0, 0), *words]
        return Operation("syscall", API["SYS_REPLY_RECEIVE"], registers, {}, "answer")

    def hostile(self) -> Operation:
        def draw() -> int:
            return self.rng.choice(
                (self.rng.choice(HOSTILE), self.rng.randrange(400), self.rng.getrandbits(32))
            )

        registers = [draw() for _ in range(6)]
        if self.rng.random() < 0.7:
            registers[0] = self.rng.randrange(300)
            registers[1] = message(self.rng.randrange(128), self.rng.randrange(4), 0,
                                   self.rng.randrange(33))  # fmt: skip
        buffer = {self.rng.randrange(128): draw() for _ in range(self.rng.randrange(6))}
        numbers, second = [1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, draw()], 0
        if self.kernel.time is not None:
            numbers, second = [*numbers, 9, 10, 11], draw()
        return Operation("syscall", self.rng.choice(numbers), registers, buffer, "hostile", second)

    def do_yield(self) -> Operation:
        return Operation("syscall", API["SYS_YIELD"], name="yield")

    def fault(self) -> Operation:
        kind = self.rng.randrange(1, 4)
        words = [self.rng.getrandbits(32), self.rng.randrange(32)]
        return Operation("fault", kind, [*words, 0, 0, 0, 0], name="fault")

    def interrupt(self) -> Operation:
        lines = sorted(self.kernel.issued - self.kernel.masked) or [self.rng.randrange(62)]
        lines.append(TICK)
        return Operation("interrupt", self.rng.choice(lines), name="interrupt")
