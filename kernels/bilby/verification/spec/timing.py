# SPDX-License-Identifier: BSD-2-Clause
"""Additional state of threads and CNodes, where time is a capability (``time_threads.c``)."""

from __future__ import annotations

from kernels.bilby.verification.spec import donations
from kernels.bilby.verification.spec.contexts import levels_of, time_of
from kernels.bilby.verification.spec.deletion import delete
from kernels.bilby.verification.spec.invocation import Invocation, Refused, find, find_empty, lookup
from kernels.bilby.verification.spec.ipc import copy_to, deliver, dequeue, derive, fail, signal
from kernels.bilby.verification.spec.state import Cap, Kernel, Thread


def set_criticality(call: Invocation) -> None:
    kernel, thread = call.kernel, call.kernel.thread(call.cap["object"])
    call.require(1)
    criticality = call.word(0)
    if criticality > call.caller.control_criticality:
        raise Refused("RANGE")
    kernel.touch(thread)
    levels_of(kernel).set_criticality(thread, criticality)


def set_limits(call: Invocation) -> None:
    thread, caller = call.kernel.thread(call.cap["object"]), call.caller
    call.require(2)
    priority, criticality = call.word(0), call.word(1)
    if priority > caller.control_priority or criticality > caller.control_criticality:
        raise Refused("RANGE")
    call.kernel.touch(thread)
    thread.limits = (priority, criticality)


def set_timeout(call: Invocation) -> None:
    kernel, thread = call.kernel, call.kernel.thread(call.cap["object"])
    slot = thread.slots["timeout"]
    if not call.extra:
        delete(kernel, slot)
        return
    source = call.extra[0]
    if source.cap is None or source.cap.kind != "endpoint":
        raise Refused("INVALID_CAPABILITY")
    if not source.cap["can_send"]:
        raise Refused("NO_RIGHT")
    if slot.cap is not None:
        raise Refused("SLOT_OCCUPIED")
    copy_to(kernel, slot, derive(kernel, source.cap), source)


def save_caller(call: Invocation) -> None:
    kernel, thread = call.kernel, call.kernel.thread(call.cap["object"])
    call.require(2, 1)
    if thread.slots["caller"].cap is None:
        raise Refused("INVALID_CAPABILITY")
    to = find_empty(kernel, call.extra[0].cap, call.word(0), call.word(1))
    kernel.move(to, thread.slots["caller"])


def swap_caller(call: Invocation) -> None:
    kernel, own = call.kernel, call.caller.slots["caller"]
    call.require(2)
    slot = find(kernel, call.cap, call.word(0), call.word(1))
    if slot.cap is not None and (slot.cap.kind != "reply" or slot.cap["master"]):
        raise Refused("INVALID_CAPABILITY")
    if slot.cap is not None and own.cap is not None:
        kernel.move(kernel.transit, slot)
        kernel.move(slot, own)
        kernel.move(own, kernel.transit)
    elif slot.cap is not None:
        kernel.move(own, slot)
    elif own.cap is not None:
        kernel.move(slot, own)


# ---- system calls


def tell_time(kernel: Kernel, thread: Thread) -> None:
    now = time_of(kernel).now
    thread.regs[0:4] = [0, 0, now & 0xFFFFFFFF, now >> 32]


def second(kernel: Kernel, thread: Thread, kind: str) -> Cap | None:
    """The capability that r6 leads to, to send through; else the call fails."""
    slot = lookup(kernel, thread, thread.regs[6])
    if slot is None:
        fail(thread, "LOOKUP_FAILED")
    elif slot.cap is None or slot.cap.kind != kind:
        fail(thread, "INVALID_CAPABILITY")
    elif not slot.cap["can_send"]:
        fail(thread, "NO_RIGHT")
    else:
        return slot.cap
    return None


def signal_first(kernel: Kernel, thread: Thread) -> bool:
    """Whether it could be signalled."""
    cap = second(kernel, thread, "notification")
    if cap is None:
        return False
    signal(kernel, kernel.notification(cap["object"]), cap["badge"])
    return True


def send_first(kernel: Kernel, thread: Thread) -> bool:
    """Send to a waiting receiver, if any; a receiver without a context gets the sender's."""
    cap = second(kernel, thread, "endpoint")
    if cap is None:
        return False
    endpoint = kernel.endpoint(cap["object"])
    if endpoint.queue and not endpoint.sending:
        kernel.touch(endpoint)
        receiver = dequeue(kernel, endpoint.queue)
        deliver(kernel, thread, receiver, endpoint, cap["badge"], may_grant=False)
        donations.make(kernel, thread, receiver, call=False)
        kernel.wake(receiver)
    return True
