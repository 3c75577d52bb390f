# SPDX-License-Identifier: BSD-2-Clause
"""Messages: how threads meet at endpoints and notifications, answer, and fault."""

from __future__ import annotations

from kernels.bilby.verification.spec import donations
from kernels.bilby.verification.spec.flags import IT, THUMB
from kernels.bilby.verification.spec.invocation import E, Refused, find_empty, lookup
from kernels.bilby.verification.spec.layout import API, message
from kernels.bilby.verification.spec.state import (
    USER_FIXED,
    WORD,
    Cap,
    Endpoint,
    Kernel,
    Notification,
    Slot,
    State,
    Thread,
)

FAILED = API["SYSCALL_FAILED"]
USER_FLAGS = 0xF80F0220 | IT


NOT_COPIED = (
    "untyped", "device", "irq_control", "reply", "page_table", "remains", "sched_control"
)  # fmt: skip
NOT_OF_COPIES = ("entry", "address", "asid_high", "asid_low", "buffer")


def derive(kernel: Kernel, cap: Cap | None) -> Cap:
    """The copy of a capability; raises Refused if it may not be copied."""
    if cap is None:
        raise Refused("INVALID_CAPABILITY")
    if cap.kind in NOT_COPIED:
        raise Refused("ILLEGAL_OPERATION")
    if kernel.spaces is not None and not kernel.spaces.has_copy(cap):
        raise Refused("ILLEGAL_OPERATION")
    if cap.kind == "frame":
        return cap.copy(**{name: 0 for name in NOT_OF_COPIES if name in cap.fields})
    return cap.copy()


def copy_to(kernel: Kernel, to: Slot, cap: Cap, source: Slot) -> None:
    """Into an empty slot; a new badge begins a family that can be revoked by itself."""
    assert source.cap is not None
    family = "badge" in cap.fields and cap["badge"] != source.cap["badge"]
    kernel.insert(to, cap, source, family)


def receive_slot(kernel: Kernel, to: Thread) -> Slot | None:
    root = lookup(kernel, to, kernel.buffer_word(to, API["BUFFER_RECEIVE_ROOT"]))
    if root is None:
        return None
    index = kernel.buffer_word(to, API["BUFFER_RECEIVE_INDEX"])
    depth = kernel.buffer_word(to, API["BUFFER_RECEIVE_DEPTH"])
    try:
        return find_empty(kernel, root.cap, index, depth)
    except Refused:
        return None


def sent_slots(kernel: Kernel, source: Thread, count: int) -> list[Slot]:
    """The slots at the sent addresses, looked up before any transfer, up to the first failure."""
    slots: list[Slot] = []
    for i in range(count):
        slot = lookup(kernel, source, kernel.buffer_word(source, API["BUFFER_CAPS"] + i))
        if slot is None:
            break
        slots.append(slot)
    return slots


def transfer_caps(
    kernel: Kernel, source: Thread, to: Thread, through: Endpoint | None, count: int
) -> int:
    target = receive_slot(kernel, to)
    slots = sent_slots(kernel, source, count)
    unwrapped = 0
    for i, slot in enumerate(slots):
        place = API["BUFFER_CAPS"] + i
        cap = slot.cap
        if (
            through is not None
            and cap is not None
            and cap.kind == "endpoint"
            and cap["object"] == through.address
        ):
            kernel.write_buffer(to, place, cap["badge"])
            unwrapped |= 1 << i
            continue
        try:
            derived = derive(kernel, cap)
        except Refused:
            return message(0, i, unwrapped, 0)
        if target is None:
            return message(0, i, unwrapped, 0)
        copy_to(kernel, target, derived, slot)
        target = None
    return message(0, len(slots), unwrapped, 0)


def transfer(
    kernel: Kernel, source: Thread, to: Thread, through: Endpoint | None, may_grant: bool
) -> None:
    """The message in one thread's registers and buffer, all but the badge."""
    sent = source.regs[1]
    length = sent & 0x7F
    to.regs[2:6] = source.regs[2:6]
    first = API["MESSAGE_REGISTERS"]
    if length > first:
        if source.buffer and to.buffer:
            length = min(length, API["MESSAGE_WORDS_MAX"])
            for i in range(first, length):
                place = API["BUFFER_WORDS"] + i
                kernel.write_buffer(to, place, kernel.buffer_word(source, place))
        else:
            length = first
    caps = 0
    extra = sent >> 7 & 3
    if may_grant and extra and source.buffer and to.buffer:
        caps = transfer_caps(kernel, source, to, through, extra)
    to.regs[1] = message(length, 0, 0, sent >> 12) | caps
    kernel.touch(to)


def write_fault(kernel: Kernel, thread: Thread, handler: Thread) -> None:
    handler.regs[2:6] = [thread.regs[15], thread.regs[13], thread.regs[16], thread.fault_info[0]]
    length = API["MESSAGE_REGISTERS"]
    if handler.buffer:
        kernel.write_buffer(handler, API["BUFFER_WORDS"] + length, thread.fault_info[1])
        length = API["FAULT_WORDS"]
    handler.regs[1] = message(length, 0, 0, thread.fault)
    kernel.touch(handler)


def set_pc(thread: Thread, pc: int, flags: int) -> None:
    flags &= USER_FLAGS if flags & THUMB else USER_FLAGS & ~IT
    thread.regs[16] = flags | USER_FIXED
    thread.regs[15] = pc & ~(1 if thread.regs[16] & THUMB else 3) & WORD


def read_answer(kernel: Kernel, thread: Thread, handler: Thread) -> bool:
    """Apply a fault handler's answer; False if the thread is to stay stopped."""
    sent = handler.regs[1]
    length = sent & 0x7F
    thread.fault = 0
    if sent >> 12:
        thread.state = State.INACTIVE
        donations.stop(kernel, thread)
        return False
    if length >= 2:
        thread.regs[13] = handler.regs[3]
    if length >= 1:
        moved = handler.regs[2] != thread.regs[15]
        flags = thread.regs[16] & (~IT if moved else WORD)
        set_pc(thread, handler.regs[2], handler.regs[4] if length >= 3 else flags)
    return True


def enqueue(kernel: Kernel, queue: list[Thread], thread: Thread) -> None:
    """Behind the others; where time is a capability, behind the last that is as urgent."""
    at = len(queue)
    if kernel.time is not None:
        at = sum(other.priority >= thread.priority for other in queue)
    kernel.touch(*queue[max(at - 1, 0) : at + 1], thread)
    queue.insert(at, thread)


def requeue(kernel: Kernel, thread: Thread) -> None:
    """A thread of another priority takes its place among those who wait, if they have an order."""
    item = thread.waits_on
    if kernel.time is None or item is None:
        return
    unlink(kernel, thread)
    thread.waits_on = item
    enqueue(kernel, item.queue, thread)


def dequeue(kernel: Kernel, queue: list[Thread]) -> Thread:
    thread = queue.pop(0)
    thread.waits_on = None
    kernel.touch(thread, *queue[:1])
    return thread


def expect_reply(kernel: Kernel, caller: Thread, server: Thread, may_grant: bool) -> None:
    cap = Cap("reply", {"object": caller.address, "master": 0, "can_grant": int(may_grant)})
    kernel.insert(server.slots["caller"], cap, caller.slots["reply"], False)
    caller.state = State.REPLY
    kernel.touch(caller)


def deliver(
    kernel: Kernel, source: Thread, to: Thread, endpoint: Endpoint, badge: int, may_grant: bool
) -> None:
    if source.fault:
        write_fault(kernel, source, to)
    else:
        transfer(kernel, source, to, endpoint, may_grant)
    to.regs[0] = badge


def settle(kernel: Kernel, sender: Thread, receiver: Thread, call: bool) -> None:
    kernel.touch(sender)
    if call:
        expect_reply(kernel, sender, receiver, receiver.may_grant)
    else:
        sender.regs[0] = 0
        if sender.state is not State.RUNNING:
            kernel.wake(sender)


def send(
    kernel: Kernel,
    sender: Thread,
    endpoint: Endpoint,
    badge: int,
    *,
    blocking: bool,
    call: bool,
    may_grant: bool,
) -> None:
    meets = bool(endpoint.queue) and not endpoint.sending
    if meets and donations.is_refused(
        kernel, sender, endpoint.queue[0], blocking=blocking, call=call
    ):  # fmt: skip
        fail(sender, "NO_CONTEXT")
    elif meets:
        kernel.touch(endpoint)
        receiver = dequeue(kernel, endpoint.queue)
        deliver(kernel, sender, receiver, endpoint, badge, may_grant)
        donations.make(kernel, sender, receiver, call=call)
        kernel.wake(receiver)
        settle(kernel, sender, receiver, call)
    elif blocking and donations.may_not_wait(kernel, sender, call=call):
        fail(sender, "NO_CONTEXT")
    elif blocking:
        kernel.touch(endpoint, sender)
        sender.state = State.SEND
        sender.waits_on = endpoint
        sender.send_badge, sender.send_call, sender.may_grant = badge, call, may_grant
        endpoint.sending = True
        enqueue(kernel, endpoint.queue, sender)
    else:
        kernel.touch(sender)
        sender.regs[0] = 0


def receive_endpoint(kernel: Kernel, receiver: Thread, endpoint: Endpoint, grant: bool) -> None:
    kernel.touch(receiver, endpoint)
    bound = receiver.bound
    if bound is not None and bound.signalled and donations.has_time_for(kernel, bound, receiver):
        donations.for_signal(kernel, bound, receiver)
        wait(kernel, receiver, bound)
        receiver.regs[0] |= API["BOUND_SIGNAL"]
        return
    receiver.may_grant = grant
    if endpoint.queue and endpoint.sending:
        sender = dequeue(kernel, endpoint.queue)
        deliver(kernel, sender, receiver, endpoint, sender.send_badge, sender.may_grant)
        donations.end(kernel, receiver)
        donations.make(kernel, sender, receiver, call=sender.send_call)
        settle(kernel, sender, receiver, sender.send_call)
    else:
        receiver.state = State.RECEIVE
        receiver.waits_on = endpoint
        endpoint.sending = False
        enqueue(kernel, endpoint.queue, receiver)
        donations.end(kernel, receiver)


def signal(kernel: Kernel, notification: Notification, badge: int) -> None:
    kernel.touch(notification)
    bound = notification.bound
    if notification.queue:
        waiter = dequeue(kernel, notification.queue)
    elif (
        bound is not None
        and bound.state is State.RECEIVE
        and donations.has_time_for(kernel, notification, bound)
    ):
        waiter = bound
        unlink(kernel, waiter)
        badge |= API["BOUND_SIGNAL"]
    else:
        notification.pending |= badge
        notification.signalled = True
        donations.offer(kernel, notification)
        return
    waiter.regs[0], waiter.regs[1] = badge, 0
    donations.for_signal(kernel, notification, waiter)
    kernel.wake(waiter)


def wait(kernel: Kernel, waiter: Thread, notification: Notification) -> None:
    kernel.touch(waiter, notification)
    if notification.signalled:
        waiter.regs[0], waiter.regs[1] = notification.pending, 0
        notification.pending, notification.signalled = 0, False
        return
    waiter.state = State.WAIT
    waiter.waits_on = notification
    enqueue(kernel, notification.queue, waiter)
    donations.end(kernel, waiter)


def reply(kernel: Kernel, server: Thread) -> str:
    """Answer the call that a thread serves, and use the capability up; an error's name."""
    slot = server.slots["caller"]
    kernel.touch(server)
    if slot.cap is None:
        return "INVALID_CAPABILITY"
    caller = kernel.thread(slot.cap["object"])
    may_grant = bool(slot.cap["can_grant"])
    kernel.empty(slot)
    kernel.touch(caller)
    if caller.fault:
        donations.give_back(kernel, server, caller)
        if read_answer(kernel, caller, server):
            kernel.wake(caller)
        return "NONE"
    transfer(kernel, server, caller, None, may_grant)
    caller.regs[0] = 0
    donations.give_back(kernel, server, caller)
    kernel.wake(caller)
    return "NONE"


def unlink(kernel: Kernel, thread: Thread) -> None:
    """Out of the queue that a thread waits in."""
    item = thread.waits_on
    assert item is not None
    kernel.touch(item, *item.queue)
    item.queue.remove(thread)
    thread.waits_on = None


def unbind(kernel: Kernel, thread: Thread | None, notification: Notification | None) -> None:
    """Unbind the thread and the notification from each other, if both exist."""
    if thread is None or notification is None:
        return
    kernel.touch(thread, notification)
    thread.bound = notification.bound = None


def abort(kernel: Kernel, thread: Thread) -> None:
    """End a thread's wait on a vanished object: with an error, or stopped at its fault."""
    unlink(kernel, thread)
    if thread.fault:
        thread.state = State.INACTIVE
        donations.stop(kernel, thread)
        return
    fail(thread, "ABORTED")
    if kernel.make_runnable(thread):
        kernel.scheduler.append(thread)


def suspend(kernel: Kernel, thread: Thread) -> None:
    """A thread runs no more and waits for nothing."""
    kernel.touch(thread)
    if thread.waits_on is not None:
        unlink(kernel, thread)
    elif thread.state is State.REPLY:
        answer = thread.slots["reply"].next
        if answer is not None:
            kernel.empty(answer)
    kernel.scheduler.leave(thread)
    thread.fault = 0
    thread.state = State.INACTIVE
    donations.stop(kernel, thread)


def raise_fault(kernel: Kernel, thread: Thread, kind: int, address: int, status: int) -> None:
    """The current thread cannot go on: a call to its fault handler, or the end."""
    kernel.touch(thread)
    handler = lookup(kernel, thread, thread.fault_handler)
    thread.fault, thread.fault_info = kind, (address, status)
    cap = None if handler is None else handler.cap
    if cap is None or cap.kind != "endpoint" or not cap["can_send"]:
        thread.state = State.INACTIVE
        donations.stop(kernel, thread)
        return
    send_fault(kernel, thread, cap)


def send_fault(kernel: Kernel, thread: Thread, cap: Cap) -> None:
    """To its handler, as a call."""
    endpoint = kernel.endpoint(cap["object"])
    send(
        kernel, thread, endpoint, cap["badge"], blocking=True, call=True, may_grant=False
    )  # fmt: skip


def fail(thread: Thread, error: str) -> None:
    thread.regs[0] = FAILED | E[error]
    thread.regs[1] = message(0, 0, 0, E[error])
