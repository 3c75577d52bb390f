# SPDX-License-Identifier: BSD-2-Clause
"""Operations on objects: what each checks, and what it then changes."""

from __future__ import annotations

from dataclasses import dataclass

from tests.kernels.spec.calls import (
    Invocation,
    Refused,
    copy_to,
    derive,
    find,
    find_empty,
    resolve,
    set_pc,
    suspend,
)
from tests.kernels.spec.deletion import (
    check_recycle,
    delete,
    delete_derived,
    recycle,
    unmap_frame,
    unmap_table,
)
from tests.kernels.spec.layout import API, LIMITS, RAM, SIZES, WINDOW, cap_fields
from tests.kernels.spec.state import (
    Cap,
    Endpoint,
    Kernel,
    Memory,
    Notification,
    Slot,
    State,
    Table,
    Thread,
)

LINES = LIMITS["IRQ_LINES"]
FRAME_BITS = (12, 16, 20, 24)
LARGE = 16
KERNEL_FIRST = 4096 - LIMITS["KERNEL_DESCRIPTORS"]


def perform(call: Invocation) -> None:
    """Raises Refused with the error code of the API, or changes the state."""
    operation = OPERATIONS.get((call.cap.kind, call.label))
    if operation is None:
        raise Refused("ILLEGAL_OPERATION")
    operation(call)


# ---- untyped memory


@dataclass(frozen=True, slots=True)
class Plan:
    """What a retype makes."""

    type: int
    size_bits: int
    bits: int  # log2 of the bytes of one object
    count: int
    base: int
    slots: list[Slot]


NAMES = {
    API["TYPE_TCB"]: "tcb",
    API["TYPE_ENDPOINT"]: "endpoint",
    API["TYPE_NOTIFICATION"]: "notification",
    API["TYPE_PAGE_TABLE"]: "page_table",
    API["TYPE_PAGE_DIRECTORY"]: "page_directory",
}
FRAMES = {
    API[f"TYPE_FRAME_{size}"]: 12 + 4 * i for i, size in enumerate(("4K", "64K", "1M", "16M"))
}


def object_bits(kind: int, size_bits: int) -> int:
    if kind == API["TYPE_UNTYPED"]:
        if LIMITS["UNTYPED_BITS_MIN"] <= size_bits <= LIMITS["UNTYPED_BITS_MAX"]:
            return size_bits
    elif kind == API["TYPE_CNODE"]:
        if 1 <= size_bits <= LIMITS["CNODE_RADIX_MAX"]:
            return size_bits + SIZES["slot"].bit_length() - 1
    elif kind in FRAMES:
        return FRAMES[kind]
    elif kind in NAMES:
        return SIZES[NAMES[kind]].bit_length() - 1
    raise Refused("INVALID_ARGUMENT")


def find_node(call: Invocation) -> Cap:
    call.require(0, 1)
    slot: Slot | None = call.extra[0]
    assert slot is not None
    if slot.cap is None or slot.cap.kind != "cnode":
        raise Refused("INVALID_CAPABILITY")
    depth = call.word(3)
    if depth > 32:
        raise Refused("RANGE")
    if depth:
        slot = resolve(call.kernel, slot.cap, call.word(2), depth)
    if slot is None:
        raise Refused("LOOKUP_FAILED")
    if slot.cap is None or slot.cap.kind != "cnode":
        raise Refused("INVALID_CAPABILITY")
    return slot.cap


def find_slots(call: Invocation, node: Cap) -> list[Slot]:
    first, count = call.word(4), call.word(5)
    slots = call.kernel.cnode(node["object"]).slots
    if not 1 <= count <= LIMITS["RETYPE_OBJECTS_MAX"] or first + count > len(slots):
        raise Refused("RANGE")
    found = [slots[first + i] for i in range(count)]
    if any(slot.cap is not None for slot in found):
        raise Refused("SLOT_OCCUPIED")
    return found


def retype(call: Invocation) -> None:
    call.require(6)
    node = find_node(call)
    slots = find_slots(call, node)
    kind, size_bits, count = call.word(0), call.word(1), call.word(5)
    bits = object_bits(kind, size_bits)
    if kind == API["TYPE_PAGE_DIRECTORY"] and count != 1:
        raise Refused("RANGE")
    used = call.cap["free"] * 16 if call.kernel.has_child(call.slot) else 0
    start = used + (1 << bits) - 1 >> bits << bits
    size = 1 << call.cap["size_bits"]
    if start >= size or count > (size - start) >> bits:
        raise Refused("NO_MEMORY")
    base = call.cap["object"] + start
    make(call, Plan(kind, size_bits, bits, count, base, slots))


def make(call: Invocation, plan: Plan) -> None:
    kernel = call.kernel
    end = plan.base + (plan.count << plan.bits)
    if not kernel.has_child(call.slot):
        region = call.cap["object"]
        kernel.cleared.append((region, region + 16 * call.cap["free"]))
    call.cap.fields["free"] = (end - call.cap["object"]) // 16
    kernel.touch(call.slot)
    if plan.type != API["TYPE_UNTYPED"]:
        kernel.cleared.append((plan.base, end))
    above = call.slot
    for i, slot in enumerate(plan.slots):
        cap = new_object(kernel, plan, plan.base + (i << plan.bits))
        kernel.insert(slot, cap, above, True)
        slot.parent = call.slot
        above = slot


def new_object(kernel: Kernel, plan: Plan, at: int) -> Cap:
    """An object in cleared memory and the first capability to it."""
    kind = plan.type
    if kind == API["TYPE_UNTYPED"]:
        return Cap("untyped", {"object": at, "size_bits": plan.size_bits, "free": 0})
    if kind == API["TYPE_CNODE"]:
        kernel.add_cnode(at, plan.size_bits)
        fields = {"object": at, "radix": plan.size_bits, "guard_size": 0, "guard": 0}
        return Cap("cnode", fields)
    if kind == API["TYPE_TCB"]:
        thread = kernel.add_thread(at)
        kernel.touch(*thread.slots.values())
        return Cap("tcb", {"object": at})
    if kind == API["TYPE_ENDPOINT"]:
        kernel.add(Endpoint(at))
        rights = {"can_send": 1, "can_receive": 1, "can_grant": 1}
        return Cap("endpoint", {"object": at, **rights, "badge": 0})
    if kind == API["TYPE_NOTIFICATION"]:
        kernel.add(Notification(at))
        return Cap("notification", {"object": at, "can_send": 1, "can_receive": 1, "badge": 0})
    if kind in (API["TYPE_PAGE_TABLE"], API["TYPE_PAGE_DIRECTORY"]):
        is_directory = kind == API["TYPE_PAGE_DIRECTORY"]
        kernel.add(Table(at, is_directory))
        return Cap("page_directory" if is_directory else "page_table", {"object": at})
    frame = Memory(at, 1 << plan.bits)
    kernel.add(frame)
    kernel.new_frames.append(frame)
    size = kind - API["TYPE_FRAME_4K"]
    fields = dict.fromkeys(cap_fields("frame"), 0)
    return Cap("frame", fields | {"base": at - WINDOW + RAM >> 12, "size": size, "can_write": 1})


# ---- CNodes

RIGHTS = {
    "endpoint": {"can_send": 1, "can_receive": 2, "can_grant": 4},
    "notification": {"can_send": 1, "can_receive": 2},
    "frame": {"can_write": 2},
}


def restrict(cap: Cap, rights: int) -> None:
    for name, bit in RIGHTS.get(cap.kind, {}).items():
        if not rights & bit:
            cap.fields[name] = 0


def set_guard(cap: Cap, data: int) -> None:
    size, value = data & 31, data >> 5 & (1 << LIMITS["GUARD_BITS"]) - 1
    if size + cap["radix"] > 32 or value >> size:
        raise Refused("RANGE")
    cap.fields |= {"guard_size": size, "guard": value}


def set_data(cap: Cap, data: int) -> None:
    """Mint's last argument. A badge cannot be changed, only given."""
    if cap.kind in ("endpoint", "notification"):
        if data >> API["BADGE_BITS"]:
            raise Refused("RANGE")
        if cap["badge"]:
            raise Refused("ILLEGAL_OPERATION")
        cap.fields["badge"] = data
    elif cap.kind == "cnode":
        set_guard(cap, data)
    else:
        raise Refused("ILLEGAL_OPERATION")


def copy(call: Invocation, mint: bool = False) -> None:
    call.require(6 if mint else 5)
    to = find_empty(call.kernel, call.slot.cap, call.word(0), call.word(1))
    call.require(0, 1)
    source = find(call.kernel, call.extra[0].cap, call.word(2), call.word(3))
    cap = derive(source.cap)
    restrict(cap, call.word(4))
    if mint:
        set_data(cap, call.word(5))
    copy_to(call.kernel, to, cap, source)


def mint(call: Invocation) -> None:
    copy(call, mint=True)


def move(call: Invocation, mutate: bool = False) -> None:
    call.require(5 if mutate else 4, 1)
    to = find_empty(call.kernel, call.slot.cap, call.word(0), call.word(1))
    source = find(call.kernel, call.extra[0].cap, call.word(2), call.word(3))
    if source.cap is None:
        raise Refused("INVALID_CAPABILITY")
    cap = source.cap.copy()
    if mutate:
        if cap.kind != "cnode":
            raise Refused("ILLEGAL_OPERATION")
        set_guard(cap, call.word(4))
    call.kernel.move(to, source)
    to.cap = cap


def mutate(call: Invocation) -> None:
    move(call, mutate=True)


def rotate(call: Invocation) -> None:
    call.require(6, 2)
    kernel = call.kernel
    to = find(kernel, call.slot.cap, call.word(0), call.word(1))
    pivot = find(kernel, call.extra[0].cap, call.word(2), call.word(3))
    source = find(kernel, call.extra[1].cap, call.word(4), call.word(5))
    if pivot in (source, to):
        raise Refused("INVALID_ARGUMENT")
    if to is not source and to.cap is not None:
        raise Refused("SLOT_OCCUPIED")
    if pivot.cap is None or source.cap is None:
        raise Refused("INVALID_CAPABILITY")
    kernel.move(kernel.transit, pivot)
    kernel.move(pivot, source)
    kernel.move(to, kernel.transit)


def one_slot(call: Invocation) -> Slot:
    call.require(2)
    return find(call.kernel, call.slot.cap, call.word(0), call.word(1))


def delete_one(call: Invocation) -> None:
    delete(call.kernel, one_slot(call))


def revoke(call: Invocation) -> None:
    delete_derived(call.kernel, one_slot(call))


def recycle_one(call: Invocation) -> None:
    slot = one_slot(call)
    check_recycle(slot.cap)
    recycle(call.kernel, slot)


# ---- threads


def suspend_thread(call: Invocation) -> None:
    suspend(call.kernel, call.kernel.thread(call.cap["object"]))


def check_buffer(frame: Cap | None, offset: int) -> None:
    if frame is None or frame.kind != "frame":
        raise Refused("INVALID_CAPABILITY")
    if frame["device"]:
        raise Refused("ILLEGAL_OPERATION")
    if not frame["can_write"]:
        raise Refused("NO_RIGHT")
    if offset % API["IPC_BUFFER_BYTES"]:
        raise Refused("ALIGNMENT")
    if offset >> FRAME_BITS[frame["size"]]:
        raise Refused("RANGE")


def configure(call: Invocation) -> None:
    kernel, thread = call.kernel, call.kernel.thread(call.cap["object"])
    call.require(2, 2)
    if any(thread.slots[name].cap for name in ("cspace", "vspace", "buffer_frame")):
        raise Refused("ILLEGAL_OPERATION")
    kinds = [slot.cap.kind if slot.cap else None for slot in call.extra]
    if kinds[:2] != ["cnode", "page_directory"]:
        raise Refused("INVALID_CAPABILITY")
    if len(call.extra) == 3:
        check_buffer(call.extra[2].cap, call.word(1))
    kernel.touch(thread)
    for name, source in zip(("cspace", "vspace", "buffer_frame"), call.extra, strict=False):
        copy_to(kernel, thread.slots[name], derive(source.cap), source)
    thread.fault_handler = call.word(0)
    if len(call.extra) == 3:
        frame = call.extra[2].cap
        kept = thread.slots["buffer_frame"].cap
        assert frame is not None
        assert kept is not None
        if "buffer" in kept.fields:
            kept.fields["buffer"] = 1
        thread.buffer = (frame["base"] << 12) - RAM + WINDOW + call.word(1)


def write_registers(call: Invocation) -> None:
    thread = call.kernel.thread(call.cap["object"])
    call.require(17)
    if thread.state is not State.INACTIVE:
        raise Refused("ILLEGAL_OPERATION")
    set_pc(thread, call.word(0), call.word(2))
    thread.regs[13] = call.word(1)
    thread.regs[0:13] = [call.word(3 + i) for i in range(13)]
    thread.regs[14] = call.word(16)
    call.kernel.touch(thread)


def resume(call: Invocation) -> None:
    thread = call.kernel.thread(call.cap["object"])
    if thread.state is not State.INACTIVE or thread.slots["cspace"].cap is None:
        raise Refused("ILLEGAL_OPERATION")
    thread.fault = 0
    call.kernel.wake(thread)


def set_priority(call: Invocation) -> None:
    kernel, thread = call.kernel, call.kernel.thread(call.cap["object"])
    call.require(1)
    priority = call.word(0)
    if priority > call.caller.priority:
        raise Refused("RANGE")
    kernel.touch(thread)
    queued = kernel.is_queued(thread)
    kernel.remove(thread)
    thread.priority = priority
    if queued:
        kernel.make_ready(thread)


# ---- address spaces


def directory_of(call: Invocation) -> Table:
    cap = call.extra[0].cap
    if cap is None or cap.kind != "page_directory":
        raise Refused("INVALID_CAPABILITY")
    return call.kernel.table(cap["object"])


def map_table(call: Invocation) -> None:
    table = call.kernel.table(call.cap["object"])
    call.require(1, 1)
    directory = directory_of(call)
    address = call.word(0)
    if address >= WINDOW:
        raise Refused("RANGE")
    if address % (1 << 20):
        raise Refused("ALIGNMENT")
    descriptor = table.address - WINDOW + RAM | 1
    mapped = any(
        descriptor in other.descriptors.values()
        for other in call.kernel.objects.values()
        if isinstance(other, Table) and other.is_directory
    )
    if address >> 20 in directory.descriptors or mapped:
        raise Refused("ALREADY_MAPPED")
    directory.descriptors[address >> 20] = descriptor
    call.kernel.touch(directory, table, call.slot)


def entry_for(call: Invocation, directory: Table, address: int, size: int) -> tuple[Table, int]:
    """The table and the index of the first descriptor for a frame at an address."""
    first = directory.descriptors.get(address >> 20, 0)
    if size >= 2:
        return directory, address >> 20
    if first & 3 == 1:
        table = call.kernel.table((first & ~0x3FF) - RAM + WINDOW)
        return table, address >> 12 & 0xFF
    raise Refused("ALREADY_MAPPED" if first else "NO_TABLE")


def descriptor_of(frame: Cap, write: bool, execute: bool, memory: int) -> int:
    """ARM ARM, extended small and large pages, sections and supersections; domain 0, nG."""
    base = frame["base"] << 12
    if frame["size"] >= 2:
        rights = 0xC00 if write else 0x800
        large = 0x40000 if frame["size"] == 3 else 0
        return base | large | 0x20002 | rights | memory | (0 if execute else 0x10)
    rights = 0x30 if write else 0x20
    if frame["size"] == 1:
        return base | 0x801 | rights | memory | (0 if execute else 0x8000)
    return base | 0x802 | rights | memory | (0 if execute else 1)


def map_frame(call: Invocation) -> None:
    frame = call.cap
    call.require(3, 1)
    directory = directory_of(call)
    if frame["entry"]:
        raise Refused("ALREADY_MAPPED")
    address, rights, flags = (call.word(i) for i in range(3))
    if address >= WINDOW:
        raise Refused("RANGE")
    if address % (1 << FRAME_BITS[frame["size"]]):
        raise Refused("ALIGNMENT")
    write, execute = bool(rights & API["RIGHT_WRITE"]), bool(flags & API["MAP_EXECUTE"])
    if (write and not frame["can_write"]) or (execute and frame["device"]):
        raise Refused("NO_RIGHT")
    table, index = entry_for(call, directory, address, frame["size"])
    count = LARGE if frame["size"] in (1, 3) else 1
    places = range(index, index + count)
    if any(i in table.descriptors for i in places):
        raise Refused("ALREADY_MAPPED")
    memory = 0x4 if frame["device"] else 0 if flags & API["MAP_UNCACHED"] else 0xC
    value = descriptor_of(frame, write, execute, memory)
    table.descriptors |= dict.fromkeys(places, value)
    frame.fields["entry"] = table.address + 4 * index
    call.kernel.touch(table, call.slot)


def unmap(call: Invocation) -> None:
    unmap_frame(call.kernel, call.slot)


def unmap_one_table(call: Invocation) -> None:
    unmap_table(call.kernel, call.kernel.table(call.cap["object"]))


# ---- interrupts


def clear_notification(call: Invocation) -> None:
    delete(call.kernel, call.kernel.irq_slots[call.cap["irq"]])


def get_line(call: Invocation) -> None:
    call.require(3, 1)
    line = call.word(0)
    if line >= LINES:
        raise Refused("RANGE")
    if line in call.kernel.issued:
        raise Refused("ILLEGAL_OPERATION")
    to = find_empty(call.kernel, call.extra[0].cap, call.word(1), call.word(2))
    call.kernel.issued.add(line)
    call.kernel.insert(to, Cap("irq_handler", {"irq": line}), call.slot, True)


def set_notification(call: Invocation) -> None:
    line = call.cap["irq"]
    call.require(0, 1)
    source = call.extra[0]
    if source.cap is None or source.cap.kind != "notification":
        raise Refused("INVALID_CAPABILITY")
    if not source.cap["can_send"]:
        raise Refused("NO_RIGHT")
    to = call.kernel.irq_slots[line]
    if to.cap is not None:
        raise Refused("SLOT_OCCUPIED")
    copy_to(call.kernel, to, derive(source.cap), source)


def acknowledge(call: Invocation) -> None:
    call.kernel.masked.discard(call.cap["irq"])


OPERATIONS = {
    ("untyped", API["LABEL_UNTYPED_RETYPE"]): retype,
    ("cnode", API["LABEL_CNODE_COPY"]): copy,
    ("cnode", API["LABEL_CNODE_MINT"]): mint,
    ("tcb", API["LABEL_TCB_CONFIGURE"]): configure,
    ("tcb", API["LABEL_TCB_WRITE_REGISTERS"]): write_registers,
    ("tcb", API["LABEL_TCB_RESUME"]): resume,
    ("tcb", API["LABEL_TCB_SET_PRIORITY"]): set_priority,
    ("page_table", API["LABEL_PAGE_TABLE_MAP"]): map_table,
    ("frame", API["LABEL_FRAME_MAP"]): map_frame,
    ("irq_control", API["LABEL_IRQ_GET"]): get_line,
    ("irq_handler", API["LABEL_IRQ_SET_NOTIFICATION"]): set_notification,
    ("irq_handler", API["LABEL_IRQ_ACKNOWLEDGE"]): acknowledge,
    ("irq_handler", API["LABEL_IRQ_CLEAR_NOTIFICATION"]): clear_notification,
    ("cnode", API["LABEL_CNODE_MOVE"]): move,
    ("cnode", API["LABEL_CNODE_MUTATE"]): mutate,
    ("cnode", API["LABEL_CNODE_ROTATE"]): rotate,
    ("cnode", API["LABEL_CNODE_DELETE"]): delete_one,
    ("cnode", API["LABEL_CNODE_REVOKE"]): revoke,
    ("cnode", API["LABEL_CNODE_RECYCLE"]): recycle_one,
    ("tcb", API["LABEL_TCB_SUSPEND"]): suspend_thread,
    ("frame", API["LABEL_FRAME_UNMAP"]): unmap,
    ("page_table", API["LABEL_PAGE_TABLE_UNMAP"]): unmap_one_table,
}
__all__ = ["OPERATIONS", "Thread", "perform"]
