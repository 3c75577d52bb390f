# SPDX-License-Identifier: BSD-2-Clause
"""Threads: configuration, registers, running and stopping, priority."""

from __future__ import annotations

from kernels.bilby.verification.spec import donations
from kernels.bilby.verification.spec.deletion import delete
from kernels.bilby.verification.spec.invocation import Invocation, Refused
from kernels.bilby.verification.spec.ipc import copy_to, derive, requeue, set_pc, suspend
from kernels.bilby.verification.spec.ipc import unbind as unbind_both
from kernels.bilby.verification.spec.layout import API, RAM, WINDOW
from kernels.bilby.verification.spec.state import Cap, State

FRAME_BITS = (12, 16, 20, 24)


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
    space = call.extra[1].cap
    assert space is not None
    assert kernel.spaces is not None
    if kernel.spaces.directory(kernel, space) is None:
        raise Refused("INVALID_CAPABILITY")
    if len(call.extra) == 3:
        check_buffer(call.extra[2].cap, call.word(1))
    kernel.touch(thread)
    kernel.init_thread(thread)
    for name, source in zip(("cspace", "vspace", "buffer_frame"), call.extra, strict=False):
        copy_to(kernel, thread.slots[name], derive(kernel, source.cap), source)
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


def read_registers(call: Invocation) -> None:
    kernel, thread, caller = call.kernel, call.kernel.thread(call.cap["object"]), call.caller
    if thread.state is not State.INACTIVE:
        raise Refused("ILLEGAL_OPERATION")
    if not caller.buffer:
        raise Refused("TRUNCATED")
    words = [thread.regs[15], thread.regs[13], thread.regs[16], *thread.regs[0:13], thread.regs[14]]
    first = API["MESSAGE_REGISTERS"]
    caller.regs[2 : 2 + first] = words[:first]
    for i, word in enumerate(words[first:], API["BUFFER_WORDS"] + first):
        kernel.write_buffer(caller, i, word)
    call.answer = len(words)


def unconfigure(call: Invocation) -> None:
    kernel, thread = call.kernel, call.kernel.thread(call.cap["object"])
    if thread.state is not State.INACTIVE:
        raise Refused("ILLEGAL_OPERATION")
    for name in ("cspace", "vspace", "buffer_frame"):
        if call.caller.address in kernel.objects:
            delete(kernel, thread.slots[name])


def bind(call: Invocation) -> None:
    kernel, thread = call.kernel, call.kernel.thread(call.cap["object"])
    call.require(0, 1)
    cap = call.extra[0].cap
    if cap is None or cap.kind != "notification":
        raise Refused("INVALID_CAPABILITY")
    if not cap["can_receive"]:
        raise Refused("NO_RIGHT")
    notification = kernel.notification(cap["object"])
    if thread.bound or notification.bound or thread.state is State.RECEIVE:
        raise Refused("ILLEGAL_OPERATION")
    kernel.touch(thread, notification)
    thread.bound, notification.bound = notification, thread
    donations.offer(kernel, notification)


def unbind(call: Invocation) -> None:
    thread = call.kernel.thread(call.cap["object"])
    if thread.bound is None:
        raise Refused("ILLEGAL_OPERATION")
    unbind_both(call.kernel, thread, thread.bound)


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
    if priority > call.caller.control_priority:
        raise Refused("RANGE")
    kernel.touch(thread)
    kernel.scheduler.set_priority(thread, priority)
    requeue(kernel, thread)
