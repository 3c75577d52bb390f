# SPDX-License-Identifier: BSD-2-Clause
"""Who runs next.

Benno scheduling is deterministic down to the links of its queues. Of lazy scheduling the order
among threads of one priority is not specified: it depends on where threads that cannot run still
stand. Its choice is read back, and must be allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kernels.bilby.verification.spec.state import Kernel, Thread


class Scheduler(Protocol):
    ordered: bool  # the links of the ready queues are specified

    def wake(self, thread: Thread) -> None:
        """It has become runnable, and may run at once."""

    def append(self, thread: Thread) -> None:
        """It has become runnable: it takes its turn."""

    def yields(self) -> None:
        """So does the current thread."""

    def leave(self, thread: Thread) -> None:
        """It runs no more."""

    def set_priority(self, thread: Thread, priority: int) -> None: ...

    def is_queued(self, thread: Thread) -> bool: ...

    def queue(self, thread: Thread) -> list[Thread]:
        """The ready queue of its priority."""

    def expire(self) -> None:
        """The slice of time of the current thread is over."""

    def others(self) -> bool:
        """Threads besides the current one can run."""

    def run(self) -> None:
        """Choose the current thread."""

    def settle(self) -> None:
        """Do the work that remains before the next thread runs."""

    def resolve(self, address: int | None) -> None:
        """The kernel chose the thread at this address, or the idle thread."""


class Benno:
    """Ready queues hold runnable threads, but not the current one (``sched_benno.c``)."""

    ordered = True

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._ready: dict[int, list[Thread]] = {}
        self._woken: Thread | None = None

    def _touch(self, priority: int) -> None:
        self._kernel.touch(*self._ready.get(priority, []))

    def append(self, thread: Thread) -> None:
        self._ready.setdefault(thread.priority, []).append(thread)
        self._touch(thread.priority)

    def _prepend(self, thread: Thread) -> None:
        self._ready.setdefault(thread.priority, []).insert(0, thread)
        self._touch(thread.priority)

    def yields(self) -> None:
        assert self._kernel.current is not None
        self.append(self._kernel.current)

    def queue(self, thread: Thread) -> list[Thread]:
        return self._ready.get(thread.priority, [])

    def is_queued(self, thread: Thread) -> bool:
        return thread in self.queue(thread)

    def expire(self) -> None:
        """Only the case in which no call has just ended: then it runs, and nobody was woken."""
        current = self._kernel.current
        if current is not None:
            self.append(current)

    def others(self) -> bool:
        return any(self._ready.values())

    def leave(self, thread: Thread) -> None:
        if self.is_queued(thread):
            self._touch(thread.priority)
            self._ready[thread.priority].remove(thread)
        if self._woken is thread:
            self._woken = None

    def set_priority(self, thread: Thread, priority: int) -> None:
        is_ready = self.is_queued(thread) or thread is self._kernel.current
        self.leave(thread)
        thread.priority = priority
        if is_ready:
            self.wake(thread)

    def wake(self, thread: Thread) -> None:
        """The most urgent one woken may run at once, the others take their turn."""
        current = self._kernel.current
        if current is not None and thread.priority < current.priority:
            self.append(thread)
        elif self._woken is None:
            self._woken = thread
        elif thread.priority > self._woken.priority:
            self.append(self._woken)
            self._woken = thread
        else:
            self.append(thread)

    def run(self) -> None:
        """The current thread, the woken one, or the first of the queues: the most urgent."""
        best = self._kernel.current
        if best is not None and (not best.is_running or self.is_queued(best)):
            best = None
        if best is self._woken:
            best = None
        if self._woken is not None:
            if best is None or self._woken.priority > best.priority:
                if best is not None:
                    self._prepend(best)
                best = self._woken
            else:
                self.append(self._woken)
            self._woken = None
        waiting = [priority for priority, queue in self._ready.items() if queue]
        if waiting and (best is None or max(waiting) > best.priority):
            first = self._ready[max(waiting)][0]
            if best is not None:
                self._prepend(best)
            self.leave(first)
            best = first
        self._kernel.touch(self._kernel.current, best)
        self._kernel.current = best

    def settle(self) -> None:
        pass

    def resolve(self, address: int | None) -> None:
        pass


class Lazy:
    """Any of the most urgent; the current one goes on if it can (``sched_lazy.c``)."""

    ordered = False

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._yields = False
        self._allowed: list[Thread | None] = []

    def wake(self, thread: Thread) -> None:
        pass

    def append(self, thread: Thread) -> None:
        self._yields |= thread is self._kernel.current

    def yields(self) -> None:
        self._yields = True

    def leave(self, thread: Thread) -> None:
        pass

    def set_priority(self, thread: Thread, priority: int) -> None:
        thread.priority = priority

    def is_queued(self, thread: Thread) -> bool:
        return thread.is_running and thread is not self._kernel.current

    def queue(self, thread: Thread) -> list[Thread]:
        return [other for other in self._kernel.runnable() if other.priority == thread.priority]

    def expire(self) -> None:
        self._yields = True

    def others(self) -> bool:
        return any(other is not self._kernel.current for other in self._kernel.runnable())

    def run(self) -> None:
        """May be called several times in an operation: the first choice is not known yet."""
        runnable = self._kernel.runnable()
        top = max((thread.priority for thread in runnable), default=0)
        best = [thread for thread in runnable if thread.priority == top]
        current = [thread for thread in self._allowed or [self._kernel.current] if thread in best]
        if self._yields and len(best) > 1:
            current = [thread for thread in best if thread is not self._kernel.current]
        self._yields = False
        self._allowed = [*(current or best)] or [None]

    def settle(self) -> None:
        pass

    def resolve(self, address: int | None) -> None:
        chosen = {thread.address if thread else None: thread for thread in self._allowed}
        if self._allowed:
            self._kernel.current = chosen.get(address, self._allowed[0])
        self._allowed = []
