"""A time limit ends Python code, waits for children, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from quoll.processes import processor_time
from quoll.processes.futures import submit
from quoll.processes.parallel_map import parallel_map
from quoll.processes.time_limit import TimeIsUp, processor_time_limit, time_limit


def children() -> set[int]:
    """The child processes, of other tests, too."""
    own = str(os.getpid())
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            if stat.read_text().rpartition(")")[2].split()[1] == own:
                found.add(int(stat.parent.name))
    return found


def spin(_: int) -> int:
    while True:
        try:
            time.sleep(0.01)
        except Exception:  # the widest handler of errors, which must not catch the limit
            continue


@pytest.mark.usefixtures("all_processors")
def test_it_ends_calls_and_other_processes() -> None:
    before, start = children(), time.monotonic()
    with pytest.raises(TimeIsUp), time_limit(0.2):
        parallel_map(spin, [1, 1], 0)
    assert time.monotonic() - start < 5
    assert children() <= before


@pytest.mark.usefixtures("all_processors")
def test_it_ends_a_process_whose_result_is_waited_for() -> None:
    """The process went on, as long as this one."""
    before = children()
    with pytest.raises(TimeIsUp), time_limit(0.2), submit(lambda: spin(0)) as future:
        future.result()
    assert children() <= before


def test_calls_within_the_limit_see_no_alarm() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60):
        assert parallel_map(lambda n: n + 1, [1, 1], 0) == [1, 2]
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def computed(seconds: float) -> None:
    """Use processor time in two processes."""

    def work(_: int) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    parallel_map(work, [1, 1], 0)


def test_processor_time_of_other_processes_counts() -> None:
    """Of running ones, too: this process may only wait."""
    before = processor_time.of_tree(os.getpid())
    assert before is not None
    with pytest.raises(TimeIsUp), processor_time_limit(0.5):
        computed(60)
    used = processor_time.of_tree(os.getpid())
    assert used is not None
    assert 0.4 < used - before < 3


def test_time_without_the_processor_is_free() -> None:
    """A busy machine finds as much as an idle one; a call that waits for ever ends all the same."""
    before = signal.getsignal(signal.SIGALRM)
    with processor_time_limit(0.3):
        time.sleep(1)
    assert signal.getsignal(signal.SIGALRM) is before
    start = time.monotonic()
    with pytest.raises(TimeIsUp), processor_time_limit(0.1):
        time.sleep(60)
    assert time.monotonic() - start < 10


def test_no_alarm_comes_before_the_limit() -> None:
    """A solver ends its check at any signal."""
    alarms: list[int] = []
    with processor_time_limit(0.3):
        signal.signal(signal.SIGALRM, lambda number, frame: alarms.append(number))
        computed(0.05)
        assert not alarms
        time.sleep(0.01)
        computed(0.3)
        end = time.monotonic() + 20
        while not alarms and time.monotonic() < end:
            time.sleep(0.01)
    assert alarms
