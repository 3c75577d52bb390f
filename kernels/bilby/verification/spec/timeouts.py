# SPDX-License-Identifier: BSD-2-Clause
"""Timeouts: a thread whose time is used up tells its handler, as by a fault (``timeout.c``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels.bilby.verification.spec.ipc import send_fault
from kernels.bilby.verification.spec.layout import API

if TYPE_CHECKING:
    from kernels.bilby.verification.spec.state import Context, Kernel, Thread


def is_low_donee(kernel: Kernel, thread: Thread, context: Context) -> bool:
    """On time of a thread that does not count now, and it was not told so."""
    home = context.home
    assert kernel.time is not None
    if home is None or home is thread or context.excused:
        return False
    return home.criticality < kernel.time.level


def is_used_up(context: Context) -> bool:
    """And it was not told so. Of a full one only its turn is over."""
    return context.is_lacking and not context.told and not context.is_full


def is_due(kernel: Kernel, thread: Thread, context: Context) -> bool:
    """Before it runs it is to be told."""
    if thread.slots["timeout"].cap is None:
        return False
    return is_used_up(context) or is_low_donee(kernel, thread, context)


def tell(kernel: Kernel, thread: Thread, context: Context) -> None:
    """A call to the handler; the thread is in no queue."""
    cap = thread.slots["timeout"].cap
    assert cap is not None
    kernel.touch(thread, context)
    by_budget = is_used_up(context)
    reason = API["TIMEOUT_BUDGET"] if by_budget else API["TIMEOUT_CRITICALITY"]
    thread.fault, thread.fault_info = API["FAULT_TIMEOUT"], (reason, 0)
    if by_budget:
        context.told = True
    else:
        context.excused = True
    send_fault(kernel, thread, cap)
