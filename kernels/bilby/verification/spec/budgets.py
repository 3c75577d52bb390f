# SPDX-License-Identifier: BSD-2-Clause
"""The time that contexts have, and the time they are charged (``context.c``).

Times are ticks since boot, as Python's integers: the specification hides that the kernel's clock
wraps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from kernels.bilby.verification.spec import release
from kernels.bilby.verification.spec.layout import BUDGET_MIN

if TYPE_CHECKING:
    from kernels.bilby.verification.spec.state import Context, Kernel

HALF_TURN = 0x7FFFFFFF  # of the clock, in ticks


class Begins(IntEnum):
    """Why a new amount of a context begins when its thread is chosen next."""

    NOT = 0
    WOKEN = 1
    RELEASED = 2


@dataclass(slots=True)
class Time:
    """The clock, and the ticks charged to each context."""

    now: int = 0  # time of the current operation
    since: int = 0  # the end of the charged time
    running: Context | None = None  # context of the current thread
    level: int = 0  # the criticality that counts
    waiting: list[Context] = field(default_factory=list)  # the heap of contexts to be released
    bound: int = 0  # contexts that are bound or have a thread
    alarm_is_old: bool = False  # the input of the alarm has changed
    alarm_at: int = HALF_TURN
    idle: int = 0  # ticks in which no thread ran,
    charged: int = 0  # ticks charged to a context,
    forgotten: int = 0  # and of these, ticks reported to a thread, or of a deleted context

    def charge(self, kernel: Kernel) -> None:
        """The time since the last charge, to whoever has run."""
        elapsed, self.since = self.now - self.since, self.now
        context = self.running
        if context is None:
            self.idle += elapsed
            return
        kernel.touch(context)
        self.charged += elapsed
        context.consumed += elapsed
        amount = min(elapsed, max(context.left + context.budget, 0))
        context.left -= amount
        if not context.is_full:
            context.used += amount

    def begin(self, kernel: Kernel, context: Context) -> None:
        """Its thread is about to run, perhaps for the first time since it became runnable."""
        kernel.touch(context)
        begins, context.begins = context.begins, Begins.NOT
        anchor = self.now
        if begins is Begins.RELEASED and self.now - context.due_at < context.period:
            anchor = context.due_at
        if context.is_full:
            return
        if context.due and context.due_at <= self.now:
            context.left, context.due = context.left + context.due, 0
        if not context.due and context.used and context.anchor + context.period <= self.now:
            context.left, context.used = context.left + context.used, 0
            context.anchor = self.now
        if begins is Begins.NOT:
            return
        if context.used and not context.due:
            context.due, context.used = context.used, 0
            context.due_at = context.anchor + context.period
        context.anchor = anchor

    def set_alarm(self) -> None:
        """Set the alarm to the end of the running context's budget, or to the first release."""
        left = HALF_TURN if self.running is None else self.running.left
        self.alarm_at = self.now + max(left, 1)
        if self.waiting:
            self.alarm_at = min(self.alarm_at, max(self.waiting[0].due_at, self.now + 1))
        self.alarm_is_old = False

    def wait(self, kernel: Kernel, context: Context) -> None:
        """Queue a context until its due amount returns; if nothing is due, its used amount is.

        An overrun of the budget is taken from the next one, which follows it.
        """
        kernel.touch(context)
        over = min(max(-context.left, 0), context.used)
        if over or not context.due:
            context.due, context.used = context.due + context.used - over, over
            context.due_at = context.anchor + context.period
            context.anchor = context.due_at
        release.insert(self.waiting, context)
        kernel.touch(*self.waiting)
        self.alarm_is_old = True

    def take_out(self, kernel: Kernel, context: Context) -> None:
        """It waits no more."""
        kernel.touch(*self.waiting)
        release.remove(self.waiting, context)
        self.alarm_is_old = True

    def release(self, context: Context) -> None:
        """Return the due amount; a new amount begins with its thread, as from now."""
        context.left, context.due = context.left + context.due, 0
        context.begins, context.told = Begins.RELEASED, False

    def check_conserved(self, contexts: list[Context]) -> None:
        """Every tick was charged once, and no budget has become more or less."""
        assert self.since == self.idle + self.charged
        assert self.charged == self.forgotten + sum(c.consumed for c in contexts)
        assert self.bound == sum(c.is_bound or c.thread is not None for c in contexts)
        for context in contexts:
            amounts = context.left + context.used + context.due
            assert amounts == context.budget or (
                context.is_full and not context.used and not context.due
            )
        assert all(c.left < BUDGET_MIN and not c.is_full for c in self.waiting)
