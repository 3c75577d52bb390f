# SPDX-License-Identifier: BSD-2-Clause
"""Who is on which context (``donation.c``): a call donates it to a server that has none.

Where time is no capability, nobody donates anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels.bilby.verification.spec import state
from kernels.bilby.verification.spec.budgets import Begins
from kernels.bilby.verification.spec.flags import THUMB, before_svc

if TYPE_CHECKING:
    from kernels.bilby.verification.spec.budgets import Time
    from kernels.bilby.verification.spec.state import Context, Kernel, Notification, Thread


def is_donee(thread: Thread) -> bool:
    """It is on a context that was donated to it."""
    return thread.context is not thread.home


def is_refused(
    kernel: Kernel, sender: Thread, receiver: Thread, *, blocking: bool, call: bool
) -> bool:
    """The receiver has no time, and the sender donates none."""
    if kernel.time is None or call or receiver.context is not None:
        return False
    return not blocking or is_donee(sender)


def may_not_wait(kernel: Kernel, sender: Thread, *, call: bool) -> bool:
    """Whether the sender's message might be received through such a call."""
    return kernel.time is not None and not call and is_donee(sender)


def has_time_for(kernel: Kernel, notification: Notification, thread: Thread) -> bool:
    """Whether a signalled thread will run: on its own context, or on a bound or returning one."""
    bound = thread.context, thread.home, notification.context
    return kernel.time is None or any(context is not None for context in bound)


def for_signal(kernel: Kernel, notification: Notification, thread: Thread) -> None:
    """A signal donates the notification's context, if that is free and needed."""
    context = notification.context
    if context is not None and thread.context is None and context.thread is None:
        _put_on(kernel, context, thread)


def offer(kernel: Kernel, notification: Notification) -> None:
    """The bound thread gets the notification's context, if it waits for one and that is free."""
    context, thread = notification.context, notification.bound
    if context is None or thread is None or context.thread is not None:
        return
    if thread.state is state.State.WITHOUT_CONTEXT and thread.context is None:
        _put_on(kernel, context, thread)


def _take_pending(kernel: Kernel, thread: Thread) -> None:
    if thread.bound is not None and thread.bound.signalled:
        for_signal(kernel, thread.bound, thread)


def wait(kernel: Kernel, thread: Thread) -> None:
    """A thread that would run waits for a context, unless a pending signal donates it one."""
    thread.state = state.State.WITHOUT_CONTEXT
    _take_pending(kernel, thread)


def settle(kernel: Kernel) -> None:
    """The call of the current thread ends; the thread goes on, if it has a context or gets one."""
    current = kernel.current
    if kernel.time is None or current is None or not current.is_running or current.context:
        return
    _take_pending(kernel, current)
    if current.context is None:
        current.state = state.State.WITHOUT_CONTEXT


def wakes(kernel: Kernel, thread: Thread) -> None:
    """A thread has become runnable."""
    context = thread.context
    if kernel.time is not None and context is not None and context is not kernel.time.running:
        kernel.touch(context)
        context.begins = Begins.WOKEN


def _put_on(kernel: Kernel, context: Context, thread: Thread) -> None:
    kernel.touch(context, thread)
    context.thread, thread.context = thread, context
    context.excused = context.told = False
    wakes(kernel, thread)
    waits = thread.state is state.State.WITHOUT_CONTEXT
    if waits and kernel.make_runnable(thread):
        kernel.scheduler.append(thread)


def _take_off(kernel: Kernel, thread: Thread) -> None:
    """It is on no context, so not runnable; of the current thread the end of its call decides."""
    kernel.touch(thread)
    thread.context = None
    if thread.is_running and thread is not kernel.current:
        thread.state = state.State.WITHOUT_CONTEXT


def take_own(kernel: Kernel, thread: Thread) -> None:
    """A thread without a context gets its own, if that is on nobody."""
    own = thread.home
    if own is not None and thread.context is None and own.thread is None:
        _put_on(kernel, own, thread)


def _go_home(kernel: Kernel, time: Time, context: Context) -> None:
    """Its home has it, or who is bound to its notification, if that waits for a context."""
    kernel.touch(context)
    context.thread = None
    time.bound -= not context.is_bound
    if context.notification is not None:
        offer(kernel, context.notification)
    elif context.home is not None and context.home.context is None:
        _put_on(kernel, context, context.home)


def make(kernel: Kernel, source: Thread, to: Thread, *, call: bool) -> None:
    """From a thread that waits from now on, to one that has no context."""
    context = source.context
    if kernel.time is None or to.context is not None or context is None:
        return
    _take_off(kernel, source)
    source.donated = call
    _put_on(kernel, context, to)
    take_own(kernel, source)


def give_back(kernel: Kernel, server: Thread, caller: Thread) -> None:
    """The answer: to who donated it."""
    if kernel.time is None:
        return
    context = server.context
    returns = caller.donated and caller.context is None and is_donee(server)
    kernel.touch(caller)
    caller.donated = False
    if not returns or context is None:
        return
    _take_off(kernel, server)
    _put_on(kernel, context, caller)
    take_own(kernel, server)


def end(kernel: Kernel, thread: Thread) -> None:
    """The thread returns its donated context."""
    context = thread.context
    if kernel.time is None or context is None or context is thread.home:
        return
    _take_off(kernel, thread)
    _go_home(kernel, kernel.time, context)
    take_own(kernel, thread)


def stop(kernel: Kernel, thread: Thread) -> None:
    """The thread is inactive from now on."""
    kernel.touch(thread)
    thread.donated = False
    end(kernel, thread)


def lose(kernel: Kernel, thread: Thread) -> None:
    """Take the thread's context away.

    It stops waiting to send, and repeats its call or fault when it has a context again.
    """
    _take_off(kernel, thread)
    queue = thread.waits_on
    if thread.state is state.State.SEND and queue is not None:
        kernel.touch(queue, *queue.queue)
        queue.queue.remove(thread)
        thread.waits_on = None
        if not thread.fault:
            thread.regs[15] -= 2 if thread.regs[16] & THUMB else 4
            thread.regs[16] = before_svc(thread.regs[16])
        thread.fault = 0
        thread.state = state.State.WITHOUT_CONTEXT
    take_own(kernel, thread)
    if thread.state is state.State.WITHOUT_CONTEXT:
        wait(kernel, thread)


def leave_thread(kernel: Kernel, thread: Thread) -> None:
    """Unbind the contexts bound to the thread; a donee keeps its context."""
    own = thread.home
    if kernel.time is None or own is None:
        return
    kernel.touch(thread, own)
    thread.home = own.home = None
    if own.thread is thread:
        own.thread = None
        lose(kernel, thread)
    if own.thread is None:
        kernel.time.bound -= 1


def leave_notification(kernel: Kernel, notification: Notification) -> None:
    """Unbind the context bound to the notification; a donee keeps its context."""
    context = notification.context
    if kernel.time is None or context is None:
        return
    kernel.touch(notification, context)
    notification.context = context.notification = None
    if context.thread is None:
        kernel.time.bound -= 1
