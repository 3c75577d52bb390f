# SPDX-License-Identifier: BSD-2-Clause
"""Deleting, revoking and recycling: the final state, and the order in which threads wake.

An operation that the kernel preempts is one step here. Containers are emptied from their last slot
down, the innermost first, because that is the order in which threads are woken.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.bilby.verification.spec import donations, layout
from kernels.bilby.verification.spec.contexts import delete_context
from kernels.bilby.verification.spec.invocation import Refused
from kernels.bilby.verification.spec.ipc import abort, suspend, unbind
from kernels.bilby.verification.spec.numbers import delete_pool
from kernels.bilby.verification.spec.state import (
    Cap,
    Endpoint,
    Kernel,
    Notification,
    Slot,
    State,
    Table,
    Thread,
)

SLOT = 16


@dataclass(slots=True, eq=False)
class Grave:
    """A container that is being emptied."""

    address: int
    size: int
    slots: list[Slot]
    left: int


def delete(kernel: Kernel, slot: Slot) -> None:
    """Empty a slot, and delete everything that only it led to."""
    if slot.cap is None:
        return
    if kernel.time is not None:
        kernel.time.alarm_is_old = True
    graves: list[Grave] = []
    leave_thread(kernel, slot)
    kernel.move(kernel.limbo, slot)
    while kernel.limbo.cap is not None or graves:
        step(kernel, graves)


def delete_derived(kernel: Kernel, slot: Slot) -> None:
    """All of it; but a call ends when its own thread is no more."""
    caller = kernel.current
    assert caller is not None
    while slot.cap is not None and kernel.has_child(slot) and caller.address in kernel.objects:
        assert slot.next is not None
        delete(kernel, slot.next)


def step(kernel: Kernel, graves: list[Grave]) -> None:
    victim = kernel.limbo
    if victim.cap is None:
        grave = graves[-1]
        victim = grave.slots[grave.left - 1]
        if grave.left == 1 or victim.cap is None:
            dig(kernel, graves)
            return
    assert victim.cap is not None
    last = kernel.is_last(victim)
    if last and victim.cap.kind in ("cnode", "tcb"):
        bury(kernel, victim, graves)
        return
    if last and victim.cap.kind == "irq_handler":
        delete_signal(kernel, victim.cap["irq"], graves)
    leave_thread(kernel, victim)
    cap = victim.cap
    finalise(kernel, victim, last)
    if victim.cap is cap:
        kernel.empty(victim)


def delete_signal(kernel: Kernel, line: int, graves: list[Grave]) -> None:
    """The notification of a line goes with the line's last handler."""
    slot = kernel.irq_slots[line]
    if slot.cap is None:
        return
    finalise(kernel, slot, kernel.is_last(slot))
    kernel.empty(slot)


def bury(kernel: Kernel, slot: Slot, graves: list[Grave]) -> None:
    """Move the last capability to the container's first slot; its previous content is next.

    A thread that deletes itself is emptied last.
    """
    assert slot.cap is not None
    item = kernel.objects[slot.cap["object"]]
    if isinstance(item, Thread):
        suspend(kernel, item)
        unbind(kernel, item, item.bound)
        donations.leave_thread(kernel, item)
        slots, size = list(item.slots.values()), layout.SIZES["tcb"]
        slots.sort(key=lambda s: s.address)
    else:
        row = kernel.cnode(item.address).slots
        size = SLOT * len(row)
        slots = row.known() or [row[0]]
        if slots[0] is not row[0]:
            slots = [row[0], *slots]
    kernel.count[slot.cap.identity] -= 1
    first = slots[0]
    if first is not slot:
        if first.cap is not None:
            kernel.move(kernel.transit, first)
        kernel.move(first, slot)
        if kernel.transit.cap is not None:
            kernel.move(kernel.limbo, kernel.transit)
    first.cap = Cap("remains", {"object": item.address})
    kernel.count[first.cap.identity] += 1
    grave = Grave(item.address, size, slots, len(slots))
    graves.insert(0 if item is kernel.current else len(graves), grave)


def dig(kernel: Kernel, graves: list[Grave]) -> None:
    grave = graves[-1]
    grave.left -= 1
    if grave.left == 0:
        graves.pop()
        kernel.empty(grave.slots[0])
        kernel.remove_object(grave.address, grave.size, grave.slots)


def leave_thread(kernel: Kernel, slot: Slot) -> None:
    """A thread whose buffer's frame goes has no buffer any more."""
    thread = slot.buffer_of
    if thread is None or slot.cap is None:
        return
    thread.buffer = 0
    slot.cap.fields["buffer"] = 0
    kernel.touch(thread)


def finalise(kernel: Kernel, slot: Slot, last: bool) -> None:
    """Remove the effects of a capability."""
    cap = slot.cap
    assert cap is not None
    assert kernel.spaces is not None
    if cap.kind == "frame":
        kernel.spaces.unmap_frame(kernel, slot)
    elif cap.kind == "reply" and cap["master"]:
        answer = slot.next
        if answer is not None and answer.cap is not None and answer.cap.kind == "reply":
            kernel.empty(answer)
    if not last:
        return
    if cap.kind in ("endpoint", "notification"):
        item = kernel.objects[cap["object"]]
        assert not isinstance(item, Table)
        if isinstance(item, Notification):
            unbind(kernel, item.bound, item)
            donations.leave_notification(kernel, item)
        for thread in list(getattr(item, "queue", [])):
            abort(kernel, thread)
        kernel.remove_object(item.address, layout.SIZES[cap.kind], [])
    elif cap.kind == "context":
        delete_context(kernel, kernel.context(cap["object"]))
    elif cap.kind == "page_table":
        kernel.spaces.delete_table(kernel, slot)
        kernel.remove_object(cap["object"], layout.SIZES["page_table"], [])
    elif cap.kind == "page_directory":
        kernel.spaces.delete_directory(kernel, slot)
        kernel.remove_object(cap["object"], layout.SIZES["page_directory"], [])
    elif cap.kind == "asid_pool":
        delete_pool(kernel, cap)
    elif cap.kind == "irq_handler":
        kernel.masked.add(cap["irq"])
        kernel.issued.discard(cap["irq"])
    elif cap.kind == "frame" and not cap["device"]:
        base = (cap["base"] << 12) - layout.RAM + layout.WINDOW
        kernel.remove_object(base, 1 << 12 + 4 * cap["size"], [])


EVERY_RIGHT = {
    "endpoint": ("can_send", "can_receive", "can_grant"),
    "notification": ("can_send", "can_receive"),
    "tcb": (),
}


def check_recycle(cap: Cap | None) -> None:
    if cap is None or cap.kind not in EVERY_RIGHT:
        raise Refused("ILLEGAL_OPERATION")
    if not all(cap[name] for name in EVERY_RIGHT[cap.kind]):
        raise Refused("NO_RIGHT")


def recycle(kernel: Kernel, slot: Slot) -> None:
    """Delete derived capabilities, then reset the object, or end the sending with one badge."""
    delete_derived(kernel, slot)
    cap = slot.cap
    if cap is None:
        return
    if cap.kind == "tcb":
        suspend(kernel, kernel.thread(cap["object"]))
        return
    item = kernel.objects[cap["object"]]
    kernel.touch(item)
    if isinstance(item, Endpoint):
        badge = cap["badge"]
        for thread in list(item.queue):
            if not badge or (thread.state is State.SEND and thread.send_badge == badge):
                abort(kernel, thread)
        return
    notification = kernel.notification(item.address)
    unbind(kernel, notification.bound, notification)
    donations.leave_notification(kernel, notification)
    for thread in list(notification.queue):
        abort(kernel, thread)
    notification.pending, notification.signalled = 0, False
