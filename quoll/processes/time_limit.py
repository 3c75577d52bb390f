"""Limits on the time of calls in this process, by the clock or by processor time.

The alarm of the process ends them by an exception, as a signal does (``children.stoppable``). No
child inherits the alarm; children end with the calls that wait for them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from quoll.processes.futures import ForkedCall, processors
from quoll.processes.processor_time import of_tree

__all__ = ["PATIENCE", "TimeIsUp", "processor_time_limit", "time_limit"]

AGAIN = 5.0  # seconds between alarms: a library may lose the exception of the first one
PATIENCE = 10  # seconds by the clock for each second of processor time: the machine is shared
SOONEST = 0.01  # seconds between two readings of processor time


class TimeIsUp(BaseException):
    """The time limit of the calls has passed. Handlers of errors on the way do not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimeIsUp`` inside, in the main thread, after ``seconds`` by the clock."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def processor_time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimeIsUp`` inside, in the main thread, after ``seconds`` of processor time.

    The time of child processes counts, so that neither the load of the machine nor its number of
    processors decides how much is done. After ``PATIENCE`` times as many seconds by the clock it
    ends in any case; after ``seconds`` by the clock where the system tells no processor time.

    Another process reads the times: an alarm that does not end the calls would end the check of a
    solver, which returns when a signal arrives (``loopbounds/smt/solver.py``).
    """
    here = os.getpid()
    start = of_tree(here)
    if start is None:
        with time_limit(seconds):
            yield
        return
    with time_limit(PATIENCE * seconds):
        watch = ForkedCall(lambda: _watch(here, start + seconds))
        try:
            yield
        finally:
            watch.cancel()


def _watch(process: int, end: float) -> None:
    """Send alarms to a process from the time on at which its tree has used ``end`` seconds."""
    while True:
        left = end - (of_tree(process, left_out=os.getpid()) or 0.0)
        if left <= 0:
            os.kill(process, signal.SIGALRM)
        time.sleep(AGAIN if left <= 0 else max(SOONEST, left / processors()))
