# SPDX-License-Identifier: BSD-2-Clause
"""The abstract state: objects, capabilities in slots, the derivation tree, who waits where.

An object is known by its address in the kernel window, because retype promises where objects lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from kernels.bilby.verification.spec import donations
from kernels.bilby.verification.spec.budgets import Begins
from kernels.bilby.verification.spec.layout import API, BUDGET_MIN, SIZES, TICK, has_field, offset
from kernels.bilby.verification.spec.schedule import Benno, Scheduler

if TYPE_CHECKING:
    from kernels.bilby.verification.spec.budgets import Time
    from kernels.bilby.verification.spec.tables import Spaces

WORD = 0xFFFFFFFF
USER_FIXED = 0x150  # of the cpsr


class State(IntEnum):
    """The state of a thread; the numbers are kernel.h's."""

    INACTIVE = 0
    RUNNING = 1
    SEND = 2
    RECEIVE = 3
    WAIT = 4
    REPLY = 5
    WITHOUT_CONTEXT = 6  # it would run, but has no time, where that is a capability


@dataclass(slots=True)
class Cap:
    """A capability: its kind and its fields, by the names of ``objects.layout``."""

    kind: str
    fields: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.fields[name]

    def copy(self, **changes: int) -> Cap:
        return Cap(self.kind, self.fields | changes)

    @property
    def identity(self) -> tuple[str, ...]:
        """The same for all capabilities to one object."""
        names = {
            "frame": ("base", "size"),
            "device": ("base", "size_bits"),
            "irq_handler": ("irq",),
        }.get(self.kind, ("object",))
        return (self.kind, *(str(self.fields.get(name)) for name in names))


@dataclass(slots=True, eq=False)
class Slot:
    """A place for a capability, in the derivation tree and in its pre-order list."""

    address: int
    cap: Cap | None = None
    prev: Slot | None = None
    next: Slot | None = None
    parent: Slot | None = None
    revocable: bool = False
    node: CNode | None = None  # that it is in, and where
    index: int = 0
    buffer_of: Thread | None = None  # the thread whose message buffer's frame it keeps

    def children(self) -> Iterator[Slot]:
        """The directly derived slots, among the following slots that are below it."""
        below = {self}
        following = self.next
        while following is not None and following.parent in below:
            if following.parent is self:
                yield following
            below.add(following)
            following = following.next


@dataclass(slots=True, eq=False)
class Thread:
    address: int
    slots: dict[str, Slot]
    regs: list[int] = field(default_factory=lambda: [0] * 17)
    state: State = State.INACTIVE
    priority: int = 0
    buffer: int = 0
    fault_handler: int = 0
    fault: int = 0
    fault_info: tuple[int, int] = (0, 0)
    waits_on: Endpoint | Notification | None = None
    send_badge: int = 0
    send_call: bool = False
    may_grant: bool = False
    bound: Notification | None = None
    context: Context | None = None  # that it is on,
    home: Context | None = None  # and that is bound to it
    donated: bool = False  # its context, with the call whose answer it waits for
    criticality: int = 0
    limits: tuple[int, int] | None = None  # highest priority and criticality that it may give

    @property
    def control_priority(self) -> int:
        return self.priority if self.limits is None else self.limits[0]

    @property
    def control_criticality(self) -> int:
        return 0 if self.limits is None else self.limits[1]

    @property
    def is_running(self) -> bool:
        return self.state is State.RUNNING


@dataclass(slots=True, eq=False)
class Context:
    """Processor time. Amounts are ticks, of which ``left`` may be less than none."""

    address: int
    home: Thread | None = None  # to which it is bound
    thread: Thread | None = None  # that is on it: its home, or a donee
    budget: int = 0
    period: int = 0
    left: int = 0
    used: int = 0  # since ``anchor``
    due: int = 0  # used before, and returns at ``due_at``
    anchor: int = 0
    due_at: int = 0
    consumed: int = 0  # since somebody asked
    excused: bool = False  # the donee was told that its home counts no more
    told: bool = False  # its thread was told that the budget is used up
    begins: Begins = Begins.NOT  # its thread has become runnable, and was not chosen since
    notification: Notification | None = None  # to which it is bound: its signals donate it

    @property
    def is_full(self) -> bool:
        """Its time is shared by turns."""
        return self.budget == self.period

    @property
    def is_lacking(self) -> bool:
        return self.left < BUDGET_MIN

    @property
    def is_bound(self) -> bool:
        """To a thread or to a notification."""
        return self.home is not None or self.notification is not None


@dataclass(slots=True, eq=False)
class Endpoint:
    address: int
    sending: bool = False  # which kind of thread waits, if any
    queue: list[Thread] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Notification:
    address: int
    signalled: bool = False
    pending: int = 0
    queue: list[Thread] = field(default_factory=list)
    bound: Thread | None = None
    context: Context | None = None  # that is bound to it


class Row:
    """The slots of a CNode; one comes into being when somebody asks for it."""

    def __init__(self, kernel: Kernel, address: int, length: int) -> None:
        self._kernel = kernel
        self._address = address
        self._length = length
        self.node: CNode | None = None

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Slot:
        assert 0 <= index < self._length
        address = self._address + SIZES["slot"] * index
        slot = self._kernel.slots.get(address)
        if slot is None:
            slot = self._kernel.add_slot(address)
            slot.node, slot.index = self.node, index
        return slot

    def known(self) -> list[Slot]:
        """The slots that exist so far; all others are empty."""
        every = range(self._address, self._address + SIZES["slot"] * self._length, SIZES["slot"])
        return [self._kernel.slots[address] for address in every if address in self._kernel.slots]


@dataclass(slots=True, eq=False)
class CNode:
    address: int
    slots: Row
    filled: dict[int, Slot] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Table:
    """A page table (256 entries) or a page directory (4096)."""

    address: int
    is_directory: bool
    descriptors: dict[int, int] = field(default_factory=dict)  # by index; absent is 0


@dataclass(slots=True, eq=False)
class Memory:
    """Frames and untyped memory: no structure, only bytes."""

    address: int
    size: int


@dataclass(slots=True, eq=False)
class Pool:
    """Numbers of address spaces: the directory that has one, by its place in the pool."""

    address: int
    spaces: dict[int, int] = field(default_factory=dict)


Object = Thread | Endpoint | Notification | CNode | Table | Memory | Pool | Context


class Kernel:
    """The whole abstract state, and the objects touched by the current operation."""

    def __init__(
        self,
        read: Callable[[int], int],
        spaces: Spaces | None = None,
        scheduler: Callable[[Kernel], Scheduler] = Benno,
        time: Time | None = None,
    ) -> None:
        self.read = read
        self.objects: dict[int, Object] = {}
        self.slots: dict[int, Slot] = {}
        self.irq_slots: list[Slot] = []
        self.limbo = Slot(0)  # deletion's own places; empty between operations
        self.transit = Slot(0)
        self.count: Counter[tuple[str, ...]] = Counter()  # capabilities to each object
        self.died: list[int] = []  # addresses of objects and slots that are no more
        self.died_now: list[tuple[int, int]] = []  # extents, in this operation
        self.dead: list[tuple[int, int]] = []  # in all
        self.pools: dict[int, Pool] = {}
        self.spaces = spaces
        self.issued: set[int] = set()
        self.masked: set[int] = set(range(64)) - {TICK}  # lines, at boot
        self.raised: set[int] = set()  # lines raised while they were masked
        self.time = time  # None: it is no capability
        self.scheduler = scheduler(self)
        self.current: Thread | None = None  # None: idle
        self.touched: set[int] = set()  # addresses of objects and slots
        self.written: dict[int, int] = {}  # words of buffers
        self.cleared: list[tuple[int, int]] = []  # extents made into objects: base, end

        self.given: dict[int, int] = {}  # words that the caller has just written
        self.new_frames: list[Memory] = []
        self.new: list[Slot | Object] = []  # not seen by the refinement yet

    def begin(self) -> None:
        self.new_frames.clear()
        self.died_now.clear()
        self.touched.clear()
        self.written.clear()
        self.cleared.clear()

    def touch(self, *things: Slot | Object | None) -> None:
        self.touched.update(thing.address for thing in things if thing is not None)

    # ---- memory that users share with the kernel

    def word(self, address: int) -> int:
        for known in (self.written, self.given):
            if address in known:
                return known[address]
        return self.read(address)

    def write(self, address: int, value: int) -> None:
        self.written[address] = value & WORD

    def buffer_word(self, thread: Thread, index: int) -> int:
        return self.word(thread.buffer + 4 * index)

    def write_buffer(self, thread: Thread, index: int, value: int) -> None:
        self.write(thread.buffer + 4 * index, value)

    def message_word(self, thread: Thread, index: int) -> int:
        if index < API["MESSAGE_REGISTERS"]:
            return thread.regs[2 + index]
        return self.buffer_word(thread, API["BUFFER_WORDS"] + index)

    # ---- objects

    def thread(self, address: int) -> Thread:
        found = self.objects[address]
        assert isinstance(found, Thread)
        return found

    def endpoint(self, address: int) -> Endpoint:
        found = self.objects[address]
        assert isinstance(found, Endpoint)
        return found

    def notification(self, address: int) -> Notification:
        found = self.objects[address]
        assert isinstance(found, Notification)
        return found

    def table(self, address: int) -> Table:
        found = self.objects[address]
        assert isinstance(found, Table)
        return found

    def cnode(self, address: int) -> CNode:
        found = self.objects[address]
        assert isinstance(found, CNode)
        return found

    def context(self, address: int) -> Context:
        found = self.objects[address]
        assert isinstance(found, Context)
        return found

    def add(self, item: Object) -> None:
        self.objects[item.address] = item
        self.new.append(item)
        self.touch(item)

    def add_slot(self, address: int) -> Slot:
        slot = Slot(address)
        self.slots[address] = slot
        self.new.append(slot)
        return slot

    def add_thread(self, address: int) -> Thread:
        names = ["cspace", "vspace", "reply", "caller", "buffer_frame"]
        if has_field("tcb", "timeout"):
            names.append("timeout")
        slots = {name: self.add_slot(address + offset("tcb", name)) for name in names}
        thread = Thread(address, slots)
        slots["buffer_frame"].buffer_of = thread
        self.add(thread)
        return thread

    def init_thread(self, thread: Thread) -> None:
        """Its end of a reply, and a user's flags: when it is configured for the first time."""
        reply = thread.slots["reply"]
        if reply.cap is not None:
            return
        thread.regs[16] |= USER_FIXED
        reply.cap = Cap("reply", {"object": thread.address, "master": 1, "can_grant": 0})
        reply.revocable = True
        self.count[reply.cap.identity] += 1
        self.touch(reply)

    def add_cnode(self, address: int, radix: int) -> CNode:
        row = Row(self, address, 1 << radix)
        node = CNode(address, row)
        row.node = node
        self.add(node)
        return node

    # ---- the derivation tree

    def insert(self, to: Slot, cap: Cap, above: Slot, revocable: bool) -> None:
        """Into an empty slot, right after another; a copy of a copy is its sibling."""
        assert to.cap is None
        to.cap = cap
        self.count[cap.identity] += 1
        if to.node is not None:
            to.node.filled[to.index] = to
        to.revocable = revocable
        to.parent = above if above.revocable else above.parent
        to.prev, to.next = above, above.next
        if above.next is not None:
            above.next.prev = to
            self.touch(above.next)
        above.next = to
        self.touch(to, above)

    def empty(self, slot: Slot) -> None:
        """Take a capability out; its derived capabilities move to its parent."""
        children = list(slot.children())
        for other in (slot.prev, slot.next):
            self.touch(other)
        if slot.prev is not None:
            slot.prev.next = slot.next
        if slot.next is not None:
            slot.next.prev = slot.prev
        for child in children:
            child.parent = slot.parent
        if slot.node is not None:
            del slot.node.filled[slot.index]
        if slot.cap is not None:
            self.count[slot.cap.identity] -= 1
        slot.cap = slot.prev = slot.next = slot.parent = None
        slot.revocable = False
        self.touch(slot)

    def move(self, to: Slot, source: Slot) -> None:
        """A capability changes its slot, not its place in the tree."""
        assert to.cap is None
        children = list(source.children())
        to.cap, to.prev, to.next = source.cap, source.prev, source.next
        to.parent, to.revocable = source.parent, source.revocable
        if to.prev is not None:
            to.prev.next = to
        if to.next is not None:
            to.next.prev = to
        for child in children:
            child.parent = to
        for slot, filled in ((source, False), (to, True)):
            if slot.node is not None and filled:
                slot.node.filled[slot.index] = slot
            elif slot.node is not None:
                del slot.node.filled[slot.index]
        source.cap = source.prev = source.next = source.parent = None
        source.revocable = False
        self.touch(to, source, to.prev, to.next)
        if self.spaces is not None:
            self.spaces.moved(self, to)

    def has_child(self, slot: Slot) -> bool:
        return slot.next is not None and slot.next.parent is slot

    def is_last(self, slot: Slot) -> bool:
        """No other capability leads to the object."""
        assert slot.cap is not None
        return self.count[slot.cap.identity] == 1

    def remove_object(self, address: int, size: int, slots: list[Slot]) -> None:
        """An object is no more; its memory belongs to the untyped region it was made from."""
        for slot in slots:
            del self.slots[slot.address]
            self.touched.discard(slot.address)
            self.died.append(slot.address)
        self.objects.pop(address, None)
        self.touched.discard(address)
        self.died.append(address)
        self.died_now.append((address, address + size))
        self.dead.append((address, address + size))

    # ---- scheduling

    def wake(self, thread: Thread) -> None:
        """Runnable again."""
        if self.make_runnable(thread):
            self.scheduler.wake(thread)

    def make_runnable(self, thread: Thread) -> bool:
        """If it has time; else it waits for a context."""
        self.touch(thread)
        if self.time is not None and thread.context is None:
            donations.wait(self, thread)
            return False
        thread.state = State.RUNNING
        donations.wakes(self, thread)
        return True

    def runnable(self) -> list[Thread]:
        found = [item for item in self.objects.values() if isinstance(item, Thread)]
        return [thread for thread in found if thread.is_running]
