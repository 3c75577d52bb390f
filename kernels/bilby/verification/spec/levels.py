# SPDX-License-Identifier: BSD-2-Clause
"""Benno scheduling of threads that need time to run (``sched_contexts.c``, ``ready_levels.c``).

A thread that lacks time stays in its ready queue until it would be chosen. Then the idle thread
runs instead, and stops it: it waits for time, or its timeout handler is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels.bilby.verification.spec import timeouts
from kernels.bilby.verification.spec.layout import API

if TYPE_CHECKING:
    from kernels.bilby.verification.spec.budgets import Time
    from kernels.bilby.verification.spec.state import Context, Kernel, Thread

Key = tuple[int, int]  # criticality and priority
ABOVE = API["PRIORITIES"]  # how much more urgent those are that are critical enough


class Levels:
    """Ready queues for each criticality and priority; in none is the current thread."""

    ordered = True

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._ready: dict[Key, list[Thread]] = {}
        self._woken: Thread | None = None

    @property
    def _time(self) -> Time:
        assert self._kernel.time is not None
        return self._kernel.time

    def urgency(self, thread: Thread) -> int:
        return thread.priority + (ABOVE if thread.criticality >= self._time.level else 0)

    def _row(self, thread: Thread) -> list[Thread]:
        return self._ready.setdefault((thread.criticality, thread.priority), [])

    def _waits(self, thread: Thread) -> bool:
        """For time."""
        return thread.context is not None and thread.context in self._time.waiting

    def append(self, thread: Thread) -> None:
        self._row(thread).append(thread)
        self._kernel.touch(*self._row(thread))

    def _prepend(self, thread: Thread) -> None:
        self._row(thread).insert(0, thread)
        self._kernel.touch(*self._row(thread))

    def queue(self, thread: Thread) -> list[Thread]:
        return self._ready.get((thread.criticality, thread.priority), [])

    def is_queued(self, thread: Thread) -> bool:
        return thread in self.queue(thread)

    def others(self) -> bool:
        return any(self._ready.values()) or bool(self._time.waiting)

    def leave(self, thread: Thread) -> None:
        if self._woken is thread:
            self._woken = None
        if self.is_queued(thread):
            self._kernel.touch(*self._row(thread))
            self._row(thread).remove(thread)
        if thread.context is not None and self._waits(thread):
            self._time.take_out(self._kernel, thread.context)

    def set_priority(self, thread: Thread, priority: int) -> None:
        self._move(thread, (thread.criticality, priority))

    def set_criticality(self, thread: Thread, criticality: int) -> None:
        self._move(thread, (criticality, thread.priority))

    def _move(self, thread: Thread, key: Key) -> None:
        """Who waits for time goes on waiting."""
        is_ready = thread is self._kernel.current or self.is_queued(thread)
        if not self._waits(thread):
            self.leave(thread)
        thread.criticality, thread.priority = key
        if is_ready:
            self.wake(thread)

    def put_first(self, thread: Thread) -> None:
        """It is the next of its equals."""
        if self.is_queued(thread):
            self.leave(thread)
            self._prepend(thread)

    def wake(self, thread: Thread) -> None:
        """The most urgent one woken may run at once."""
        current, other = self._kernel.current, self._woken
        if current is not None and self.urgency(thread) < self.urgency(current):
            self._place(thread)
        elif other is None:
            self._woken = thread
        elif self.urgency(thread) > self.urgency(other):
            self._woken = thread
            self._place(other)
        else:
            self._place(thread)

    def _place(self, thread: Thread) -> None:
        """It takes its turn; if it waited in a slice, that is over, and a whole one follows."""
        context = thread.context
        assert context is not None
        if context.is_full and context is not self._time.running and context.left > 0:
            context.left = context.budget
            self._kernel.touch(context)
        self.append(thread)

    def yields(self) -> None:
        """The current thread gives up the rest of its context's budget."""
        time, current = self._time, self._kernel.current
        assert current is not None
        assert current.context is not None
        time.charge(self._kernel)
        context = current.context
        if context.left > 0:
            if not context.is_full:
                context.used += context.left
            context.left = 0
        self._exhaust(current, context)
        time.alarm_is_old = True

    def _exhaust(self, thread: Thread, context: Context) -> None:
        """A runnable thread has no time left: it waits for more, or for its turn."""
        self._kernel.touch(thread, context)
        if context.is_full:
            context.left = context.budget
            self.append(thread)
        else:
            self._time.wait(self._kernel, context)

    def expire(self) -> None:
        """The alarm: one context is released, if its time has come."""
        time = self._time
        time.alarm_is_old = True
        if not time.waiting or time.waiting[0].due_at > time.now:
            return
        context = time.waiting[0]
        time.take_out(self._kernel, context)
        time.release(context)
        assert context.thread is not None
        self.append(context.thread)

    def _take(self, least: int) -> Thread | None:
        """The first of the most urgent, of at least this urgency; of equals the most critical."""
        rows = [row for row in self._ready.values() if row and self.urgency(row[0]) >= least]
        if not rows:
            return None
        row = max(rows, key=lambda row: (self.urgency(row[0]), row[0].criticality))
        self._kernel.touch(*row)
        return row.pop(0)

    def _choose(self) -> Thread | None:
        """Of the current thread, the woken one and the first of the queues, the most urgent."""
        best, other = self._kernel.current, self._woken
        if best is not None and not self._goes_on(best):
            best = None
        if other is not None:
            self._woken = None
            if best is None or self.urgency(other) > self.urgency(best):
                if best is not None:
                    self._prepend(best)
                best = other
            else:
                self._place(other)
        first = self._take(0 if best is None else self.urgency(best) + 1)
        if first is not None:
            if best is not None:
                self._prepend(best)
            best = first
        return best

    def _goes_on(self, current: Thread) -> bool:
        if not current.is_running or current is self._woken:
            return False
        return not self.is_queued(current) and not self._waits(current)

    def _may_run(self, thread: Thread, context: Context) -> bool:
        """Whether its due budget gives it time now, and no timeout is to be reported."""
        self._time.begin(self._kernel, context)
        if context.is_lacking:
            return False
        context.told = False
        return not timeouts.is_due(self._kernel, thread, context)

    def run(self) -> None:
        """Choose, and charge where the context changes; whoever may not run is dealt with later."""
        time, kernel = self._time, self._kernel
        best = self._choose()
        context = None if best is None else best.context
        if context is not time.running or time.alarm_is_old:
            time.charge(kernel)
            if best is not None and context is not None and not self._may_run(best, context):
                self._prepend(best)
                best = context = None
            time.running = context
            time.set_alarm()
        kernel.touch(kernel.current, best)
        kernel.current = best

    def settle(self) -> None:
        """The idle thread runs as long as it is chosen before somebody whom it is to stop."""
        while self._kernel.current is None:
            thread = self._take(0)
            if thread is None:
                return
            context = thread.context
            assert context is not None
            self._deal(thread, context)
            self.run()

    def _deal(self, thread: Thread, context: Context) -> None:
        if self._may_run(thread, context):
            self._prepend(thread)
        elif timeouts.is_due(self._kernel, thread, context):
            timeouts.tell(self._kernel, thread, context)
        else:
            self._exhaust(thread, context)

    def resolve(self, address: int | None) -> None:
        pass
