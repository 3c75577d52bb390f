# SPDX-License-Identifier: BSD-2-Clause
"""Time in the specification of `bilby` by itself, and the invariants that the host build checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.bilby.verification.fuzz.host import CheckFailure, Host, program, running
from kernels.bilby.verification.fuzz.run import symbols
from kernels.bilby.verification.spec import layout, release
from kernels.bilby.verification.spec.budgets import Begins, Time
from kernels.bilby.verification.spec.layout import API, BUDGET_LEAST, BUDGET_MIN, offset
from kernels.bilby.verification.spec.levels import Levels
from kernels.bilby.verification.spec.state import Context, Kernel, State, Thread

STEPS = ["run", "sleep", "yield"]
YIELD = API["SYS_YIELD"]


@pytest.fixture(autouse=True)
def _names() -> Iterator[None]:
    """Use the names of the preset in which time is a capability."""
    layout.use("mcs")
    yield
    layout.use("after")


# ---- the release queue


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=120))
def test_the_first_of_the_release_queue_is_due_first(steps: list[tuple[bool, int]]) -> None:
    """After any insertions and removals the heap has all entries, none due after its children."""
    heap: list[Context] = []
    inside: list[Context] = []
    for takes_out, number in steps:
        if takes_out and inside:
            release.remove(heap, inside.pop(number % len(inside)))
        else:
            inside.append(Context(16 * len(inside), due_at=number))
            release.insert(heap, inside[-1])
        assert sorted(map(id, heap)) == sorted(map(id, inside))
        for index in range(1, len(heap)):
            assert heap[(index - 1) // release.CHILDREN].due_at <= heap[index].due_at


# ---- budgets


class Machine:
    """One thread with a context; it runs, sleeps, or competes with one that is more urgent."""

    def __init__(self, budget: int, period: int) -> None:
        self.time = Time()
        self.kernel = Kernel(lambda address: 0, None, Levels, self.time)
        self.thread = self.kernel.add_thread(0x1000)
        self.context = Context(
            0x2000, budget=budget, period=period, left=budget, begins=Begins.WOKEN
        )
        self.kernel.add(self.context)
        self.context.home = self.context.thread = self.thread
        self.thread.home = self.thread.context = self.context
        self.time.bound = 1
        self.used: list[tuple[int, int]] = []  # ticks: from, to
        self.wake()

    def choose(self) -> None:
        self.kernel.scheduler.run()
        self.kernel.scheduler.settle()
        self.time.check_conserved([self.context])

    def wake(self) -> None:
        if self.thread.state is State.WAIT or self.thread.state is State.INACTIVE:
            self.kernel.wake(self.thread)
            self.choose()

    def sleep(self) -> None:
        if self.kernel.current is self.thread:
            self.thread.state = State.WAIT
            self.choose()

    def pass_time(self, ticks: int, late: int = 0) -> None:
        """Alarms come so many ticks late."""
        until = self.time.now + ticks
        while self.time.alarm_at + late <= until:
            self._go_on(self.time.alarm_at + late)
            self.kernel.scheduler.expire()
            self.choose()
        self._go_on(until)

    def _go_on(self, now: int) -> None:
        if self.kernel.current is self.thread and now > self.time.now:
            self.used.append((self.time.now, now))
        self.time.now = now

    def used_between(self, begin: int, end: int) -> int:
        return sum(max(0, min(end, to) - max(begin, at)) for at, to in self.used)


@given(
    st.integers(BUDGET_LEAST, 1000),
    st.integers(0, 3000),
    st.lists(
        st.tuples(st.sampled_from(["run", "sleep", "yield"]), st.integers(1, 1500)), max_size=30
    ),
)
def test_in_no_period_more_than_a_budget_is_used(
    budget: int, more: int, steps: list[tuple[str, int]]
) -> None:
    """By a thread that runs whenever it can."""
    period = budget + 1 + more
    machine = Machine(budget, period)
    for step, ticks in steps:
        machine.wake()
        if step == "sleep":
            machine.sleep()
        elif step == "yield" and machine.kernel.current is machine.thread:
            machine.kernel.scheduler.yields()
            machine.choose()
        machine.pass_time(ticks)
    ends = {at for interval in machine.used for at in interval}
    for end in ends:
        assert machine.used_between(end - period, end) <= budget
        assert machine.used_between(end, end + period) <= budget


@given(st.integers(BUDGET_LEAST, 1000), st.integers(1, 3000), st.integers(1, 8))
def test_a_thread_that_always_runs_has_its_budget_in_each_period(
    budget: int, more: int, periods: int
) -> None:
    period = budget + more
    machine = Machine(budget, period)
    machine.pass_time(periods * period)
    assert machine.used_between(0, periods * period) == periods * budget


@given(
    st.integers(BUDGET_LEAST, 1000),
    st.integers(300, 3000),
    st.integers(1, 8),
    st.integers(0, BUDGET_MIN - 1),
)
def test_what_is_used_beyond_a_budget_is_used_of_the_next(
    budget: int, more: int, periods: int, late: int
) -> None:
    """Alarms that come late give nobody more time than once."""
    period = budget + more
    machine = Machine(budget, period)
    machine.pass_time(periods * period, late)
    assert machine.used_between(0, periods * period) <= periods * budget + late


@given(
    st.integers(BUDGET_LEAST, 1000),
    st.integers(BUDGET_MIN, 3000),
    st.integers(1, 8),
    st.integers(0, BUDGET_LEAST - BUDGET_MIN),
)
def test_who_overruns_by_the_path_of_an_alarm_loses_no_period(
    budget: int, more: int, periods: int, late: int
) -> None:
    """The least budget is the minimum, and that path."""
    machine = Machine(budget, budget + more)
    machine.pass_time(periods * (budget + more), late)
    assert machine.used_between(0, periods * (budget + more)) == periods * budget + late


def test_what_is_not_accounted_for_is_found() -> None:
    machine = Machine(300, 1000)
    machine.pass_time(250)
    for name in ("left", "used", "consumed"):
        setattr(machine.context, name, getattr(machine.context, name) + 1)
        with pytest.raises(AssertionError):
            machine.time.check_conserved([machine.context])
        setattr(machine.context, name, getattr(machine.context, name) - 1)
    machine.time.check_conserved([machine.context])


# ---- who runs


def two_threads() -> tuple[Kernel, Levels, list[Thread]]:
    kernel = Kernel(lambda address: 0, None, Levels, Time())
    threads = []
    for place in (1, 2):
        thread = kernel.add_thread(place << 12)
        context = Context(place << 8, thread, thread, 1000, 1000, 1000)
        thread.home = thread.context = context
        kernel.add(context)
        threads.append(thread)
    assert isinstance(kernel.scheduler, Levels)
    return kernel, kernel.scheduler, threads


@pytest.mark.parametrize(
    ("level", "first", "second", "wins"),
    [
        (0, (0, 10), (0, 11), 1),
        (0, (3, 10), (0, 11), 1),
        (1, (1, 10), (0, 11), 0),
        (3, (1, 10), (0, 11), 1),
        (0, (0, 10), (1, 10), 1),
        (2, (2, 0), (1, 255), 0),
    ],
)
def test_priority_counts_among_those_that_are_critical_enough(
    level: int, first: tuple[int, int], second: tuple[int, int], wins: int
) -> None:
    """Each as criticality and priority."""
    kernel, levels, threads = two_threads()
    assert kernel.time is not None
    kernel.time.level = level
    for thread, (criticality, priority) in zip(threads, (first, second), strict=True):
        thread.criticality, thread.priority = criticality, priority
        thread.state = State.RUNNING
        levels.append(thread)
    levels.run()
    assert kernel.current is threads[wins]


# ---- invariants of the host build can fail


@pytest.fixture(scope="module")
def shared() -> Iterator[Host]:
    with running(program("mcs")) as host:
        yield host


@pytest.fixture
def host(shared: Host) -> Host:
    shared.reset()
    return shared


CONTEXT, THREAD = "context", "thread"
CORRUPTIONS = [
    ("T1", CONTEXT, "thread", 0),
    ("T1", CONTEXT, "home", 0),
    ("T1", THREAD, "home", 0),
    ("T3", CONTEXT, "left", 1001),
    ("T3", CONTEXT, "used", 1),
    ("T4", CONTEXT, "place", 1),
    ("T4", "release_count", "", 257),
    ("T6", CONTEXT, "left", 99),
    ("T6", "running", "", 0),
    ("T7", "contexts_bound", "", 2),
    ("T8", THREAD, "donated", 1),
    ("T9", THREAD, "timeout", 11),
    ("T10", "system_level", "", 4),
    ("T10", THREAD, "limited", 2),
    ("T10", CONTEXT, "excused", 1),
    ("T10", CONTEXT, "budget", 100),
    ("M9", "since", "", 1),
    ("S4", "ready_words", "", 1),
]


@pytest.mark.parametrize(("invariant", "place", "name", "value"), CORRUPTIONS)
def test_each_invariant_can_fail(
    host: Host, invariant: str, place: str, name: str, value: int
) -> None:
    """A masked line is raised, of which the kernel takes no notice."""
    thread = host.syscall(YIELD, [0] * 6).current
    context = host.word(thread + offset("tcb", "context"))
    base = {THREAD: thread, CONTEXT: context}.get(place) or symbols(program("mcs"))[place]
    kind = {THREAD: "tcb"}.get(place, place)
    at = base + (offset(kind, name) if name else 0)
    shift = 8 * (at % 4)
    host.write(at & ~3, host.word(at & ~3) & ~(0xFF << shift) | value << shift if shift else value)
    with pytest.raises(CheckFailure, match=invariant):
        host.interrupt(1)


def test_a_wrap_of_the_clock_is_seen(host: Host) -> None:
    """The time is told in 64 bits."""
    thread = host.syscall(YIELD, [0] * 6).current
    for ticks in (5, 0x7000_0000, 0xE000_0000, 0x1_5000_0000, 0x1_C000_0000, 0x2_3000_0000):
        host.now = ticks
        host.syscall(API["SYS_CLOCK"], [0] * 6)
        assert host.word(thread + 8) | host.word(thread + 12) << 32 == ticks
    host.now = 0
