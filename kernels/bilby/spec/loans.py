# SPDX-License-Identifier: BSD-2-Clause
"""Loans: who calls a thread without a context lends it its own (``loan.c``).

Where time is no capability, nobody lends anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels.bilby.spec.budgets import Begins

if TYPE_CHECKING:
    from kernels.bilby.spec.budgets import Time
    from kernels.bilby.spec.state import Context, Kernel, Thread


def is_on_loan(thread: Thread) -> bool:
    """It is on time that another thread lent."""
    return thread.context is not thread.home


def is_refused(
    kernel: Kernel, sender: Thread, receiver: Thread, *, blocking: bool, call: bool
) -> bool:
    """The receiver has no time, and the sender lends none."""
    if kernel.time is None or call or receiver.context is not None:
        return False
    return not blocking or is_on_loan(sender)


def may_not_wait(kernel: Kernel, sender: Thread, *, call: bool) -> bool:
    """What it sends might be received so."""
    return kernel.time is not None and not call and is_on_loan(sender)


def will_run(kernel: Kernel, thread: Thread) -> bool:
    """If it becomes runnable: it has time, or will have what it lent, where that is needed."""
    return kernel.time is None or thread.context is not None or thread.home is not None


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


def _take_own(kernel: Kernel, thread: Thread) -> bool:
    own = thread.home
    if own is None or thread.context is not None or own.thread is not None:
        return False
    _put_on(kernel, own, thread)
    return True


def take_own(kernel: Kernel, thread: Thread) -> None:
    """A thread without a context gets its own, if that is on nobody."""
    if _take_own(kernel, thread) and thread.is_running and thread is not kernel.current:
        kernel.scheduler.append(thread)


def _go_home(kernel: Kernel, time: Time, context: Context) -> None:
    kernel.touch(context)
    context.thread = None
    if context.home is None:
        time.bound -= 1
    elif context.home.context is None:
        take_own(kernel, context.home)


def make(kernel: Kernel, source: Thread, to: Thread, *, call: bool) -> None:
    """From a thread that waits from now on, to one that has no context."""
    context = source.context
    if kernel.time is None or to.context is not None or context is None:
        return
    kernel.touch(source)
    source.context, source.lent = None, call
    _put_on(kernel, context, to)
    _take_own(kernel, source)


def give_back(kernel: Kernel, server: Thread, caller: Thread) -> None:
    """The answer: to who lent it."""
    if kernel.time is None:
        return
    context = server.context
    returns = caller.lent and caller.context is None and is_on_loan(server)
    kernel.touch(caller)
    caller.lent = False
    if not returns or context is None:
        return
    kernel.touch(server)
    server.context = None
    _put_on(kernel, context, caller)
    _take_own(kernel, server)


def end(kernel: Kernel, thread: Thread) -> None:
    """The thread gives up what it has borrowed."""
    context = thread.context
    if kernel.time is None or context is None or context is thread.home:
        return
    kernel.touch(thread)
    thread.context = None
    _go_home(kernel, kernel.time, context)
    _take_own(kernel, thread)


def stop(kernel: Kernel, thread: Thread) -> None:
    """The thread is inactive from now on."""
    kernel.touch(thread)
    thread.lent = False
    end(kernel, thread)


def leave_thread(kernel: Kernel, thread: Thread) -> None:
    """What is bound to it is not any more; whoever has borrowed that keeps it."""
    own = thread.home
    if kernel.time is None or own is None:
        return
    kernel.touch(thread, own)
    thread.home = own.home = None
    if own.thread is thread:
        own.thread = thread.context = None
    if own.thread is None:
        kernel.time.bound -= 1
