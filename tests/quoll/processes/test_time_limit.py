"""A time limit ends Python code, waits for children, and leaves nothing behind."""

from __future__ import annotations

import signal
import time

import pytest

from quoll.processes.parallel_map import parallel_map
from quoll.processes.time_limit import TimeIsUp, time_limit


def spin(_: int) -> int:
    while True:
        try:
            time.sleep(0.01)
        except Exception:  # the widest handler of errors, which must not catch the limit
            continue


def test_it_ends_calls_and_other_processes() -> None:
    start = time.monotonic()
    with pytest.raises(TimeIsUp), time_limit(0.2):
        parallel_map(spin, [1, 1], 0)
    assert time.monotonic() - start < 5


def test_calls_within_the_limit_see_no_alarm() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60):
        assert parallel_map(lambda n: n + 1, [1, 1], 0) == [1, 2]
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before
