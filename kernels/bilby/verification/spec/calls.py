# SPDX-License-Identifier: BSD-2-Clause
"""The effect of system calls, faults and interrupts on the abstract state."""

from __future__ import annotations

from kernels.bilby.verification.spec import donations
from kernels.bilby.verification.spec.invocation import E, Invocation, Refused, lookup
from kernels.bilby.verification.spec.invocations import perform
from kernels.bilby.verification.spec.ipc import (
    fail,
    raise_fault,
    receive_endpoint,
    reply,
    send,
    signal,
    wait,
)
from kernels.bilby.verification.spec.layout import API, TICK, message
from kernels.bilby.verification.spec.state import Cap, Context, Kernel, Slot, Thread
from kernels.bilby.verification.spec.timing import send_first, signal_first, tell_time


def invoke_object(kernel: Kernel, thread: Thread, slot: Slot) -> None:
    sent = thread.regs[1]
    code, answer = E["NONE"], 0
    try:
        call = read_invocation(kernel, thread, slot, sent)
        perform(call)
        answer = call.answer
    except Refused as refused:
        code = refused.code
    thread.regs[0] = 0
    thread.regs[1] = message(answer, 0, 0, code)


def read_invocation(kernel: Kernel, thread: Thread, slot: Slot, sent: int) -> Invocation:
    length, count = sent & 0x7F, sent >> 7 & 3
    if length > API["MESSAGE_WORDS_MAX"]:
        raise Refused("RANGE")
    if (length > API["MESSAGE_REGISTERS"] or count) and not thread.buffer:
        raise Refused("TRUNCATED")
    call = Invocation(kernel, thread, slot, sent >> 12, length)
    for i in range(count):
        found = lookup(kernel, thread, kernel.buffer_word(thread, API["BUFFER_CAPS"] + i))
        if found is None:
            raise Refused("LOOKUP_FAILED")
        call.extra.append(found)
    return call


def invoke(kernel: Kernel, thread: Thread, *, blocking: bool, call: bool) -> None:
    slot = lookup(kernel, thread, thread.regs[0])
    if slot is None:
        fail(thread, "LOOKUP_FAILED")
        return
    cap = slot.cap
    if cap is None:
        fail(thread, "INVALID_CAPABILITY")
    elif cap.kind in ("endpoint", "notification") and not cap["can_send"]:
        fail(thread, "NO_RIGHT")
    elif cap.kind == "endpoint":
        send(
            kernel,
            thread,
            kernel.endpoint(cap["object"]),
            cap["badge"],
            blocking=blocking,
            call=call,
            may_grant=bool(cap["can_grant"]),
        )
    elif cap.kind == "notification":
        thread.regs[0] = thread.regs[1] = 0
        signal(kernel, kernel.notification(cap["object"]), cap["badge"])
    elif not call:
        fail(thread, "ILLEGAL_OPERATION")
    else:
        invoke_object(kernel, thread, slot)


def is_nothing_there(kernel: Kernel, thread: Thread, cap: Cap) -> bool:
    if cap.kind == "notification":
        return not kernel.notification(cap["object"]).signalled
    endpoint = kernel.endpoint(cap["object"])
    if thread.bound is not None and thread.bound.signalled:
        return False
    return not endpoint.queue or not endpoint.sending


def receive(kernel: Kernel, thread: Thread, address: int, *, waits: bool = True) -> None:
    slot = lookup(kernel, thread, address)
    if slot is None:
        fail(thread, "LOOKUP_FAILED")
        return
    cap = slot.cap
    if cap is None or cap.kind not in ("endpoint", "notification"):
        fail(thread, "INVALID_CAPABILITY")
    elif not cap["can_receive"]:
        fail(thread, "NO_RIGHT")
    elif not waits and is_nothing_there(kernel, thread, cap):
        fail(thread, "NOTHING")
    elif cap.kind == "endpoint":
        if thread.slots["caller"].cap is not None:
            kernel.empty(thread.slots["caller"])
        receive_endpoint(kernel, thread, kernel.endpoint(cap["object"]), bool(cap["can_grant"]))
    else:
        wait(kernel, thread, kernel.notification(cap["object"]))


def begin(kernel: Kernel, now: int | None) -> None:
    """At this time, in ticks; None: no time has passed."""
    kernel.begin()
    if kernel.time is not None and now is not None:
        assert now >= kernel.time.now
        kernel.time.now = now


def end(kernel: Kernel) -> None:
    kernel.scheduler.settle()
    if kernel.time is not None:
        items = kernel.objects.values()
        kernel.time.check_conserved([item for item in items if isinstance(item, Context)])


def timed_call(kernel: Kernel, thread: Thread, number: int, second: int) -> bool:
    """A system call that only exists where time is a capability; false if it is none of them."""
    if number == API["SYS_CLOCK"]:
        tell_time(kernel, thread)
        return True
    first = {
        API["SYS_SIGNAL_RECEIVE"]: signal_first, API["SYS_NB_SEND_RECEIVE"]: send_first
    }.get(number)  # fmt: skip
    if first is None:
        return False
    thread.regs[6] = second
    if first(kernel, thread):
        receive(kernel, thread, thread.regs[0])
    return True


def syscall(
    kernel: Kernel,
    number: int,
    registers: list[int],
    pc: int,
    line: int | None = None,
    *,
    second: int = 0,
    now: int | None = None,
) -> None:
    """The current thread makes a system call; ``registers`` are r0 to r5.

    ``line`` interrupts when it is done. Interrupts are taken before the next thread is chosen.
    ``second``: r6 of a call that sends and receives. ``now``: ticks, None if none has passed.
    """
    thread = kernel.current
    assert thread is not None
    begin(kernel, now)
    kernel.touch(thread)
    thread.regs[0:6] = registers
    thread.regs[7] = number
    thread.regs[15] = pc
    if number == API["SYS_CALL"]:
        invoke(kernel, thread, blocking=True, call=True)
    elif number == API["SYS_SEND"]:
        invoke(kernel, thread, blocking=True, call=False)
    elif number == API["SYS_NB_SEND"]:
        invoke(kernel, thread, blocking=False, call=False)
    elif number == API["SYS_RECEIVE"]:
        receive(kernel, thread, thread.regs[0])
    elif number == API["SYS_REPLY"]:
        error = reply(kernel, thread)
        thread.regs[0] = 0
        if error != "NONE":
            fail(thread, error)
    elif number == API["SYS_REPLY_RECEIVE"]:
        address = thread.regs[0]
        reply(kernel, thread)
        receive(kernel, thread, address)
    elif number == API["SYS_POLL"]:
        receive(kernel, thread, thread.regs[0], waits=False)
    elif number == API["SYS_YIELD"]:
        kernel.scheduler.yields()
    elif kernel.time is None or not timed_call(kernel, thread, number, second):
        fail(thread, "INVALID_SYSCALL")
    donations.settle(kernel)
    if line is not None:
        kernel.raised.add(line)
    pending = sorted(kernel.raised - kernel.masked)
    if not pending:
        kernel.scheduler.run()
    for taken in pending:
        take(kernel, taken)
    end(kernel)


def fault(kernel: Kernel, kind: int, address: int, status: int, now: int | None = None) -> None:
    """The current thread faults; for an undefined instruction the address is its own pc."""
    assert kernel.current is not None
    begin(kernel, now)
    raise_fault(kernel, kernel.current, kind, address, status)
    kernel.scheduler.run()
    end(kernel)


def take(kernel: Kernel, line: int) -> None:
    """The line signals its notification, and is masked until acknowledged.

    The line of the kernel's timer is never masked: the current thread uses its turn.
    """
    kernel.raised.discard(line)
    if line == TICK:
        kernel.scheduler.expire()
        kernel.scheduler.run()
        return
    kernel.masked.add(line)
    cap = kernel.irq_slots[line].cap
    if cap is not None and cap.kind == "notification":
        signal(kernel, kernel.notification(cap["object"]), cap["badge"])
    kernel.scheduler.run()


def interrupt(kernel: Kernel, line: int, now: int | None = None) -> None:
    """A line is raised; if it is masked, nothing happens before it is acknowledged."""
    begin(kernel, now)
    kernel.raised.add(line)
    if line not in kernel.masked:
        take(kernel, line)
        end(kernel)
