# SPDX-License-Identifier: BSD-2-Clause
"""Memory against the abstract state: every changed word is accounted for, and is as specified.

After an operation, each word that changed must belong to an object that the specification
touched, to a buffer word that it wrote, to memory that it made into objects, or to the
kernel's own variables; and each object that it touched must read as the specification says.
"""

from __future__ import annotations

from collections.abc import Callable

from kernels.bilby.verification.spec.layout import (
    SIZES,
    WINDOW,
    decode_cap,
    has_field,
    offset,
    read_field,
)
from kernels.bilby.verification.spec.state import (
    CNode,
    Context,
    Endpoint,
    Kernel,
    Memory,
    Notification,
    Object,
    Pool,
    Slot,
    State,
    Table,
    Thread,
)

WORD = 0xFFFFFFFF
LINK = ~0xF
Read = Callable[[int], int]


class Mismatch(AssertionError):
    """The kernel did something else than the specification."""


def expect(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        text = [f"{v:#x}" if isinstance(v, int) else str(v) for v in (got, wanted)]
        raise Mismatch(f"{what}: the kernel has {text[0]}, the specification {text[1]}")


def check_slot(read: Read, slot: Slot) -> None:
    where = f"slot {slot.address:#x}"
    kind, fields = decode_cap(read(slot.address), read(slot.address + 4))
    expect(where, kind, "null" if slot.cap is None else slot.cap.kind)
    for name, value in (slot.cap.fields if slot.cap else {}).items():
        expect(f"{where}, {kind}.{name}", fields[name], value)
    prev = slot.prev.address if slot.prev else 0
    following = slot.next.address if slot.next else 0
    expect(f"{where}, previous", read(slot.address + offset("slot", "prev")) & LINK, prev)
    expect(f"{where}, next", read(slot.address + offset("slot", "next")) & LINK, following)


def check_thread(read: Read, kernel: Kernel, thread: Thread) -> None:
    def get(name: str) -> int:
        return read_field(read, "tcb", thread.address, name)

    where = f"thread {thread.address:#x}"
    for i, value in enumerate(thread.regs):
        expect(f"{where}, register {i}", read(thread.address + 4 * i), value)
    expect(f"{where}, state", State(get("state")), thread.state)
    expect(f"{where}, priority", get("priority"), thread.priority)
    expect(f"{where}, buffer", get("buffer"), thread.buffer)
    expect(f"{where}, fault", get("fault"), thread.fault)
    if thread.fault:
        info = thread.address + offset("tcb", "fault_info")
        expect(f"{where}, fault_info", (read(info), read(info + 4)), thread.fault_info)
    expect(f"{where}, fault_handler", get("fault_handler"), thread.fault_handler)
    expect(f"{where}, bound", get("bound"), thread.bound.address if thread.bound else 0)
    if thread.waits_on is not None:
        expect(f"{where}, waits_on", get("waits_on"), thread.waits_on.address)
        check_neighbours(get, where, "wait", thread.waits_on.queue, thread)
    if kernel.scheduler.ordered:
        queued = kernel.scheduler.is_queued(thread)
        expect(f"{where}, queued", get("queued"), int(queued))
        if queued:
            check_neighbours(get, where, "sched", kernel.scheduler.queue(thread), thread)
    if kernel.time is not None:
        check_time_of_thread(get, where, thread)
    if thread.state is State.SEND:
        expect(f"{where}, send_badge", get("send_badge"), thread.send_badge)
        expect(f"{where}, send_call", get("send_call"), int(thread.send_call))
    if thread.state in (State.SEND, State.RECEIVE):
        expect(f"{where}, may_grant", get("may_grant"), int(thread.may_grant))


def address_of(item: Object | None) -> int:
    return 0 if item is None else item.address


def check_time_of_thread(get: Callable[[str], int], where: str, thread: Thread) -> None:
    expect(f"{where}, context", get("context"), address_of(thread.context))
    expect(f"{where}, home", get("home"), address_of(thread.home))
    expect(f"{where}, donated", get("donated"), int(thread.donated))
    expect(f"{where}, criticality", get("criticality"), thread.criticality)
    expect(f"{where}, limited", get("limited"), int(thread.limits is not None))
    if thread.limits is not None:
        limits = (get("control_priority"), get("control_criticality"))
        expect(f"{where}, limits", limits, thread.limits)


def check_context(read: Read, kernel: Kernel, context: Context) -> None:
    def get(name: str) -> int:
        return read_field(read, "context", context.address, name)

    assert kernel.time is not None
    where = f"context {context.address:#x}"
    expect(f"{where}, home", get("home"), address_of(context.home))
    expect(f"{where}, thread", get("thread"), address_of(context.thread))
    expect(f"{where}, notification", get("notification"), address_of(context.notification))
    expect(f"{where}, left", get("left"), context.left & WORD)
    for name in ("budget", "period", "used", "due", "anchor", "consumed"):
        expect(f"{where}, {name}", get(name), getattr(context, name))
    for name in ("excused", "told", "begins"):
        expect(f"{where}, {name}", get(name), int(getattr(context, name)))
    if context.due:
        expect(f"{where}, due_at", get("due_at"), context.due_at)
    heap = kernel.time.waiting
    place = heap.index(context) + 1 if context in heap else 0
    expect(f"{where}, place", get("place"), place)


def check_neighbours(
    get: Callable[[str], int], where: str, kind: str, queue: list[Thread], thread: Thread
) -> None:
    at = queue.index(thread)
    before = queue[at - 1].address if at else 0
    after = queue[at + 1].address if at + 1 < len(queue) else 0
    expect(f"{where}, {kind}_prev", get(f"{kind}_prev"), before)
    expect(f"{where}, {kind}_next", get(f"{kind}_next"), after)


def check_queue(read: Read, kind: str, item: Endpoint | Notification) -> None:
    queue = [thread.address for thread in item.queue]
    ends = (queue[0], queue[-1]) if queue else (0, 0)
    got = tuple(read(item.address + offset(kind, name)) for name in ("head", "tail"))
    expect(f"{kind} {item.address:#x}, ends of its queue", got, ends)


def check_endpoint(read: Read, item: Endpoint) -> None:
    check_queue(read, "endpoint", item)
    state = 0 if not item.queue else 1 if item.sending else 2
    expect(f"endpoint {item.address:#x}, state", read(item.address), state)


def check_notification(read: Read, item: Notification) -> None:
    where = f"notification {item.address:#x}"
    check_queue(read, "notification", item)
    pending = read(item.address + offset("notification", "pending"))
    signalled = read(item.address + offset("notification", "signalled"))
    expect(f"{where}, pending", pending, item.pending)
    expect(f"{where}, signalled", signalled, int(item.signalled))
    bound = read(item.address + offset("notification", "bound"))
    expect(f"{where}, bound", bound, item.bound.address if item.bound else 0)
    if has_field("notification", "context"):
        context = read(item.address + offset("notification", "context"))
        expect(f"{where}, context", context, address_of(item.context))


def check_table(read: Read, table: Table, changed: set[int]) -> None:
    """The descriptors that changed, and all that are specified."""
    count = WINDOW >> 20 if table.is_directory else 256
    indices = {(a - table.address) // 4 for a in changed} | set(table.descriptors)
    for index in indices:
        if 0 <= index < count:
            got = read(table.address + 4 * index)
            wanted = table.descriptors.get(index, 0)
            expect(f"table {table.address:#x}, descriptor {index}", got, wanted)


def check_pool(read: Read, pool: Pool, changed: set[int]) -> None:
    places = {(address - pool.address) // 4 for address in changed} | set(pool.spaces)
    for number in places:
        where = f"pool {pool.address:#x}, number {number}"
        expect(where, read(pool.address + 4 * number), pool.spaces.get(number, 0))


class Owners:
    """Which object a word of memory belongs to."""

    def __init__(self) -> None:
        self._small: dict[int, int] = {}  # by 16 bytes
        self._large: dict[int, int] = {}  # by 4 KiB

    def add(self, address: int, size: int) -> None:
        if size < 4096:
            self._small.update(dict.fromkeys(range(address // 16, (address + size) // 16), address))
        else:
            self._large.update(
                dict.fromkeys(range(address // 4096, (address + size) // 4096), address)
            )

    def forget(self, address: int) -> None:
        """An object or slot that is no more; its memory has no owner."""
        for table, unit in ((self._small, 16), (self._large, 4096)):
            at = address // unit
            while table.get(at) == address:
                del table[at]
                at += 1

    def copy(self) -> Owners:
        made = Owners()
        made._small, made._large = self._small.copy(), self._large.copy()
        return made

    def find(self, address: int) -> int | None:
        found = self._small.get(address // 16)
        return self._large.get(address // 4096) if found is None else found


def size_of(item: Object | Slot) -> int:
    match item:
        case Slot():
            return SIZES["slot"]
        case Thread():
            return SIZES["tcb"]
        case Endpoint():
            return SIZES["endpoint"]
        case Notification():
            return SIZES["notification"]
        case Table():
            return SIZES["page_directory" if item.is_directory else "page_table"]
        case Memory():
            return item.size
        case Pool():
            return SIZES["asid_pool"]
        case Context():
            return SIZES["context"]
        case CNode():
            return 0  # its slots are


def is_kept_lookup(at: int) -> bool:
    """Whether a byte of a thread belongs to its cached lookups."""
    return has_field("tcb", "lookups") and at >= offset("tcb", "lookups")


class Refinement:
    """Checks one kernel against one abstract state, operation by operation."""

    def __init__(self, kernel: Kernel, read: Read, variables: tuple[int, int]) -> None:
        self.kernel = kernel
        self.read = read
        self.variables = variables
        self.owners = Owners()
        self.has_left = False  # a thread may have left a deletion, which the idle thread ends

    def copy_for(self, kernel: Kernel) -> Refinement:
        """Of a copy of the abstract state, against the same memory."""
        made = Refinement(kernel, self.read, self.variables)
        made.owners, made.has_left = self.owners.copy(), self.has_left
        return made

    def learn(self) -> None:
        """Learn dead and new objects, outer objects first, because a thread contains its slots."""
        for address in reversed(self.kernel.died):
            self.owners.forget(address)
        for address in self.kernel.died:
            self.owners.forget(address)
        self.kernel.died.clear()
        new = [item for item in self.kernel.new if self.is_there(item)]
        for item in sorted(new, key=lambda item: isinstance(item, Slot)):
            self.owners.add(item.address, size_of(item))
        self.kernel.new.clear()

    def is_there(self, item: Object | Slot) -> bool:
        """Still: one operation can make a slot by looking it up, and end with its CNode."""
        if isinstance(item, Slot):
            return self.kernel.slots.get(item.address) is item
        return self.kernel.objects.get(item.address) is item

    def check(self, changes: dict[int, int], current: int, idle: int) -> None:
        kernel = self.kernel
        kernel.scheduler.resolve(None if current == idle else current)
        self.learn()
        self.check_accounted(changes)
        for address in kernel.touched:
            if address in kernel.slots:
                check_slot(self.read, kernel.slots[address])
            self.check_object(kernel.objects.get(address), set(changes))
        for address, value in kernel.written.items():
            expect(f"buffer word {address:#x}", self.read(address), value)
        wanted = idle if kernel.current is None else kernel.current.address
        expect("the current thread", current, wanted)

    def check_accounted(self, changes: dict[int, int]) -> None:
        first, end = self.variables
        written, touched, find = self.kernel.written, self.kernel.touched, self.owners.find
        for address, value in changes.items():
            if first <= address < end or address in written:
                continue
            owner = find(address)
            if owner not in touched and not self.is_free(owner, address, value):
                raise Mismatch(
                    f"{address:#x} became {value:#x}; the specification does not touch it"
                )

    def is_free(self, owner: int | None, address: int, value: int) -> bool:
        """Whether memory belongs to an object that died or was made now, or is unspecified."""
        for base, end in self.kernel.died_now:
            if base <= address < end:
                return True
        if value == 0:
            for base, end in self.kernel.cleared:
                if base <= address < end:
                    return True
        if self.has_left:
            return self.is_left_over(owner, address)
        return owner is not None and self.is_unspecified(owner, address)

    def is_left_over(self, owner: int | None, address: int) -> bool:
        """Whether the idle thread may have changed memory while it ended an abandoned deletion.

        The memory belongs to a dead object, or has the specified content of its new owner; raises
        Mismatch if it does not.
        """
        if owner is None:
            return any(base <= address < end for base, end in self.kernel.dead)
        if self.is_unspecified(owner, address):
            return True
        if owner in self.kernel.slots:
            check_slot(self.read, self.kernel.slots[owner])
        else:
            self.check_object(self.kernel.objects.get(owner), {address})
        item = self.kernel.objects.get(owner)
        return owner in self.kernel.slots or (item is not None and not isinstance(item, Memory))

    def is_unspecified(self, owner: int, address: int) -> bool:
        """Whether any switch may change the byte.

        Such bytes are a space's hardware number, a thread's own registers, cached lookups and lazy
        queues.
        """
        match self.kernel.objects.get(owner):
            case Table(is_directory=True):
                return address == owner + offset("page_directory", "asid") & ~3
            case Thread() if is_kept_lookup(address - owner):
                return True
            case Thread() if address == owner + offset("tcb", "machine"):
                return True
            case Thread() if not self.kernel.scheduler.ordered:
                names = ("queued", "sched_next", "sched_prev")
                return address - owner in [offset("tcb", name) & ~3 for name in names]
            case _:
                return self.is_marked(owner)

    def is_marked(self, owner: int) -> bool:
        """A CNode capability on the way of a kept lookup; the rest of its slot is as specified."""
        slot = self.kernel.slots.get(owner)
        if not has_field("tcb", "lookups") or slot is None or slot.cap is None:
            return False
        check_slot(self.read, slot)
        return slot.cap.kind == "cnode"

    def check_object(self, item: Object | None, changed: set[int]) -> None:
        match item:
            case Thread():
                check_thread(self.read, self.kernel, item)
            case Endpoint():
                check_endpoint(self.read, item)
            case Notification():
                check_notification(self.read, item)
            case Table():
                own = {a for a in changed if item.address <= a < item.address + size_of(item)}
                check_table(self.read, item, own)
            case Context():
                check_context(self.read, self.kernel, item)
            case Pool():
                own = {a for a in changed if item.address <= a < item.address + size_of(item)}
                check_pool(self.read, item, own)
            case _:
                pass

    def check_everything(self) -> None:
        """All objects and slots: once in a while, at the cost of reading them all."""
        for slot in self.kernel.slots.values():
            check_slot(self.read, slot)
        for item in self.kernel.objects.values():
            self.check_object(item, set())


__all__ = ["Mismatch", "Refinement", "has_field"]
