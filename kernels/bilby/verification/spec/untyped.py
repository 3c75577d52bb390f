# SPDX-License-Identifier: BSD-2-Clause
"""Untyped memory: the checks of retype, and the objects it makes."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.bilby.verification.spec.invocation import Invocation, Refused, resolve
from kernels.bilby.verification.spec.layout import API, LIMITS, RAM, SIZES, WINDOW, cap_fields
from kernels.bilby.verification.spec.state import (
    Cap,
    Context,
    Endpoint,
    Kernel,
    Memory,
    Notification,
    Slot,
    Table,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The objects that a retype makes."""

    type: int
    size_bits: int
    bits: int  # log2 of the bytes of one object
    count: int
    base: int
    slots: list[Slot]


PAGE_BITS = 12
NAMES = {
    API["TYPE_TCB"]: "tcb",
    API["TYPE_ENDPOINT"]: "endpoint",
    API["TYPE_NOTIFICATION"]: "notification",
    API["TYPE_PAGE_TABLE"]: "page_table",
    API["TYPE_PAGE_DIRECTORY"]: "page_directory",
    API["TYPE_CONTEXT"]: "context",
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
    elif kind in NAMES and NAMES[kind] in SIZES:
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


def wanted(call: Invocation) -> tuple[int, int, int, list[Slot]]:
    """Kind of object, size as the user gives it, log2 of its bytes; where the capabilities go."""
    call.require(6)
    node = find_node(call)
    slots = find_slots(call, node)
    kind, size_bits = call.word(0), call.word(1)
    bits = object_bits(kind, size_bits)
    if kind == API["TYPE_PAGE_DIRECTORY"] and len(slots) != 1:
        raise Refused("RANGE")
    return kind, size_bits, bits, slots


def retype_device(call: Invocation) -> None:
    """Frames, or smaller regions; nothing is cleared, and no memory is behind it."""
    kernel = call.kernel
    kind, size_bits, bits, slots = wanted(call)
    if bits < PAGE_BITS or (kind != API["TYPE_UNTYPED"] and kind not in FRAMES):
        raise Refused("INVALID_ARGUMENT")
    used = call.cap["free"] if kernel.has_child(call.slot) else 0
    pages = 1 << bits - PAGE_BITS
    start = -(-used // pages) * pages
    end = start + len(slots) * pages
    if end > 1 << call.cap["size_bits"] - PAGE_BITS:
        raise Refused("NO_MEMORY")
    call.cap.fields["free"] = end
    above = call.slot
    for page, slot in zip(range(start, end, pages), slots, strict=True):
        base = call.cap["base"] + page
        if kind == API["TYPE_UNTYPED"]:
            cap = Cap("device", {"base": base, "size_bits": size_bits, "free": 0})
        else:
            cap = new_frame(base, kind)
            cap.fields["device"] = 1
        kernel.insert(slot, cap, above, True)
        slot.parent = call.slot
        above = slot


def retype(call: Invocation) -> None:
    kind, size_bits, bits, slots = wanted(call)
    count = len(slots)
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
    if kind == API["TYPE_CONTEXT"]:
        kernel.add(Context(at))
        return Cap("context", {"object": at})
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
        name = "page_directory" if is_directory else "page_table"
        return Cap(name, dict.fromkeys(cap_fields(name), 0) | {"object": at})
    frame = Memory(at, 1 << plan.bits)
    kernel.add(frame)
    kernel.new_frames.append(frame)
    return new_frame(at - WINDOW + RAM >> PAGE_BITS, kind)


def new_frame(page: int, kind: int) -> Cap:
    fields = dict.fromkeys(cap_fields("frame"), 0)
    return Cap(
        "frame", fields | {"base": page, "size": kind - API["TYPE_FRAME_4K"], "can_write": 1}
    )
