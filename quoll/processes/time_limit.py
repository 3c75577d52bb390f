"""A limit on the wall-clock time of calls in this process.

The alarm of the process ends them by an exception, as a signal does (``children.stoppable``). No
child inherits the alarm; children end with the calls that wait for them.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["TimeIsUp", "time_limit"]

AGAIN = 5.0  # seconds between alarms: a library may lose the exception of the first one


class TimeIsUp(BaseException):
    """The time limit of the calls has passed. Handlers of errors on the way do not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimeIsUp`` inside, in the main thread, after ``seconds``."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
