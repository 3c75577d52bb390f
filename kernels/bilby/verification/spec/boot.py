# SPDX-License-Identifier: BSD-2-Clause
"""The abstract state that boot leaves: read from memory, once, before any operation.

Boot makes a small, fixed set of objects, on which the invariants were checked. From then on nothing
is read back: the specification computes its own state.
"""

from __future__ import annotations

from collections.abc import Callable

from kernels.bilby.verification.spec.budgets import Time
from kernels.bilby.verification.spec.layout import (
    API,
    LIMITS,
    RAM,
    SIZES,
    SLICE,
    WINDOW,
    decode_cap,
    has_field,
    offset,
    read_field,
)
from kernels.bilby.verification.spec.levels import Levels
from kernels.bilby.verification.spec.numbers import add_pool
from kernels.bilby.verification.spec.schedule import Benno, Lazy
from kernels.bilby.verification.spec.state import (
    Cap,
    Context,
    Kernel,
    Memory,
    Slot,
    State,
    Table,
    Thread,
)
from kernels.bilby.verification.spec.tables import POOL_ENTRIES, Numbered, Shadow

LINK = ~0xF


def after_boot(
    read: Callable[[int], int], current: int, irq_slots: int, lazy: bool = False
) -> Kernel:
    """``current``: address of the first thread; ``irq_slots``: of the kernel's array."""
    is_timed = has_field("tcb", "context")
    scheduler = Lazy if lazy else Levels if is_timed else Benno
    spaces = Numbered() if has_field("asid_pool", "space") else Shadow()
    kernel = Kernel(read, spaces, scheduler, Time() if is_timed else None)
    for line in range(LIMITS["IRQ_LINES"]):
        kernel.irq_slots.append(kernel.add_slot(irq_slots + SIZES["slot"] * line))
    thread = kernel.add_thread(current)
    kernel.init_thread(thread)
    kind, space = decode_cap(read(thread.slots["cspace"].address), read_second(read, thread.slots))
    assert kind == "cnode"
    node = kernel.add_cnode(space["object"], space["radix"])
    given = [node.slots[index] for index in range(API["ROOT_FREE"])]
    for slot in [*given, *thread.slots.values()]:
        read_slot(kernel, slot, read)
    for slot in given:
        if slot.cap is not None:
            node.filled[slot.index] = slot
            add_object(kernel, slot.cap, read)
    for slot in kernel.slots.values():
        if slot.cap is not None:
            link(kernel, slot, read)
            kernel.count[slot.cap.identity] += 1
    thread.regs = [read(current + 4 * i) for i in range(17)]
    thread.state = State.RUNNING
    thread.priority = read_field(read, "tcb", current, "priority")
    thread.buffer = read(current + offset("tcb", "buffer"))
    kernel.current = thread
    if kernel.time is not None:
        own = node.slots[API["ROOT_CONTEXT"]].cap
        assert own is not None
        give_time(kernel.time, kernel.context(own["object"]), thread)
    return kernel


def give_time(time: Time, context: Context, thread: Thread) -> None:
    """Give the first thread its context: it shares time with its equals, and controls all."""
    context.home = context.thread = thread
    thread.home = thread.context = time.running = context
    context.budget = context.period = context.left = SLICE
    thread.limits = (API["PRIORITIES"] - 1, API["CRITICALITIES"] - 1)
    time.bound = 1
    time.set_alarm()


def read_second(read: Callable[[int], int], slots: dict[str, Slot]) -> int:
    return read(slots["cspace"].address + 4)


def read_slot(kernel: Kernel, slot: Slot, read: Callable[[int], int]) -> None:
    if slot.cap is not None:
        kernel.count[slot.cap.identity] -= 1
    kind, fields = decode_cap(read(slot.address), read(slot.address + 4))
    slot.cap = None if kind == "null" else Cap(kind, fields)
    slot.revocable = bool(read(slot.address + offset("slot", "prev")) & 1)


def link(kernel: Kernel, slot: Slot, read: Callable[[int], int]) -> None:
    slot.prev = kernel.slots.get(read(slot.address + offset("slot", "prev")) & LINK)
    slot.next = kernel.slots.get(read(slot.address + offset("slot", "next")) & LINK)
    head = slot.prev
    while head is not None and head.prev is not None:
        head = head.prev
    slot.parent = head


def add_object(kernel: Kernel, cap: Cap, read: Callable[[int], int]) -> None:
    if cap.kind in ("page_table", "page_directory"):
        is_directory = cap.kind == "page_directory"
        table = Table(cap["object"], is_directory)
        for index in range(WINDOW >> 20 if is_directory else 256):
            if value := read(table.address + 4 * index):
                table.descriptors[index] = value
        kernel.add(table)
    elif cap.kind == "asid_pool":
        pool = add_pool(kernel, cap["object"], cap["index"])
        for number in range(POOL_ENTRIES):
            if space := read(pool.address + 4 * number):
                pool.spaces[number] = space
    elif cap.kind == "context":
        kernel.add(Context(cap["object"]))
    elif cap.kind == "frame" and not cap["device"]:
        base = (cap["base"] << 12) - RAM + WINDOW
        kernel.add(Memory(base, 1 << 12 + 4 * cap["size"]))
