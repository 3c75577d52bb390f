# SPDX-License-Identifier: BSD-2-Clause
"""Contexts and schedule control: configuration, binding, consumed time (``time_objects.c``)."""

from __future__ import annotations

from kernels.bilby.verification.spec import donations, layout
from kernels.bilby.verification.spec.budgets import Begins, Time
from kernels.bilby.verification.spec.invocation import Invocation, Refused
from kernels.bilby.verification.spec.ipc import signal
from kernels.bilby.verification.spec.layout import API, BUDGET_LEAST, LIMITS
from kernels.bilby.verification.spec.levels import Levels
from kernels.bilby.verification.spec.state import Context, Kernel, Notification, Thread


def time_of(kernel: Kernel) -> Time:
    assert kernel.time is not None
    return kernel.time


def levels_of(kernel: Kernel) -> Levels:
    assert isinstance(kernel.scheduler, Levels)
    return kernel.scheduler


def context_of(call: Invocation) -> Context:
    return call.kernel.context(call.cap["object"])


def configure(call: Invocation) -> None:
    call.require(2, 1)
    cap = call.extra[0].cap
    if cap is None or cap.kind != "context":
        raise Refused("INVALID_CAPABILITY")
    budget, period = call.word(0), call.word(1)
    if not BUDGET_LEAST <= budget <= period <= API["PERIOD_TICKS_MAX"]:
        raise Refused("RANGE")
    set_budget(call.kernel, call.kernel.context(cap["object"]), budget, period)


def set_budget(kernel: Kernel, context: Context, budget: int, period: int) -> None:
    time, was_full = time_of(kernel), context.is_full
    kernel.touch(context)
    if context is time.running:
        time.charge(kernel)
    context.left += budget - context.budget
    context.budget, context.period = budget, period
    if was_full or context.is_full:
        context.left, context.used, context.due = budget, 0, 0
        context.anchor = time.since
        if context is not time.running:
            context.begins = Begins.WOKEN
    context.told = False
    time.alarm_is_old = True
    if context in time.waiting and not context.is_lacking:
        assert context.thread is not None
        time.take_out(kernel, context)
        kernel.scheduler.wake(context.thread)


def set_level(call: Invocation) -> None:
    call.require(1)
    level = call.word(0)
    if level >= API["CRITICALITIES"]:
        raise Refused("RANGE")
    time = time_of(call.kernel)
    time.level, time.alarm_is_old = level, True


def bind(call: Invocation) -> None:
    """To a thread, or to a notification."""
    kernel, context = call.kernel, context_of(call)
    call.require(0, 1)
    cap = call.extra[0].cap
    if cap is None or cap.kind not in ("tcb", "notification"):
        raise Refused("INVALID_CAPABILITY")
    if not context.budget or context.is_bound or context.thread:
        raise Refused("ILLEGAL_OPERATION")
    if cap.kind == "tcb":
        bind_to_thread(kernel, context, kernel.thread(cap["object"]))
    elif not cap["can_receive"]:
        raise Refused("NO_RIGHT")
    else:
        bind_to_notification(kernel, context, kernel.notification(cap["object"]))


def signal_again(kernel: Kernel, notification: Notification | None) -> None:
    """Deliver pending signals, because the bound thread may have time now."""
    if notification is None or not notification.signalled:
        return
    badges = notification.pending
    notification.pending, notification.signalled = 0, False
    signal(kernel, notification, badges)


def count_bound(kernel: Kernel) -> None:
    """One more, if there is a place for it."""
    time = time_of(kernel)
    if time.bound == LIMITS["RELEASE_PLACES"]:
        raise Refused("NO_PLACE")
    time.bound += 1


def bind_to_thread(kernel: Kernel, context: Context, thread: Thread) -> None:
    if thread.home:
        raise Refused("ILLEGAL_OPERATION")
    count_bound(kernel)
    kernel.touch(context, thread)
    context.home, thread.home = thread, context
    donations.take_own(kernel, thread)
    signal_again(kernel, thread.bound)


def bind_to_notification(kernel: Kernel, context: Context, notification: Notification) -> None:
    if notification.context:
        raise Refused("ILLEGAL_OPERATION")
    count_bound(kernel)
    kernel.touch(context, notification)
    context.notification, notification.context = notification, context
    donations.offer(kernel, notification)
    signal_again(kernel, notification)


def unbind(call: Invocation) -> None:
    kernel, context = call.kernel, context_of(call)
    home = context.home
    if context.notification is not None:
        donations.leave_notification(kernel, context.notification)
        return
    if home is None:
        raise Refused("ILLEGAL_OPERATION")
    if context.thread is home:
        kernel.scheduler.leave(home)
    donations.leave_thread(kernel, home)


def tell_consumed(call: Invocation) -> None:
    kernel, context, time = call.kernel, context_of(call), time_of(call.kernel)
    if context is time.running:
        time.charge(kernel)
        time.alarm_is_old = True
    kernel.touch(context)
    call.caller.regs[2:4] = [context.consumed & 0xFFFFFFFF, context.consumed >> 32]
    time.forgotten += context.consumed
    context.consumed = 0
    call.answer = 2


def yield_to(call: Invocation) -> None:
    thread = context_of(call).thread
    if thread is None:
        raise Refused("ILLEGAL_OPERATION")
    if thread.priority > call.caller.control_priority:
        raise Refused("RANGE")
    levels_of(call.kernel).put_first(thread)
    tell_consumed(call)


def delete_context(kernel: Kernel, context: Context) -> None:
    """Whoever is on it has no time from now on."""
    time, thread, home = time_of(kernel), context.thread, context.home
    notification = context.notification
    if thread is not None:
        kernel.scheduler.leave(thread)
    if thread is not None or context.is_bound:
        time.bound -= 1
    context.thread = context.home = context.notification = None
    kernel.touch(thread, home, notification)
    if home is not None:
        home.home = None
    if notification is not None:
        notification.context = None
    if thread is not None:
        donations.lose(kernel, thread)
    if context is time.running:
        time.charge(kernel)
        time.running, time.alarm_is_old = None, True
    time.forgotten += context.consumed
    kernel.remove_object(context.address, layout.SIZES["context"], [])
