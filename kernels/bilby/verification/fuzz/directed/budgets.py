# SPDX-License-Identifier: BSD-2-Clause
"""Budgets that are used up and return, and operations on contexts; amounts are ticks.

Each sequence ends at once where time is no capability.
"""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import LINE, NODE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import (
    API,
    BUDGET_LEAST,
    BUDGET_MIN,
    LIMITS,
    SLICE,
    TICK,
    message,
)

CONTROL, OWN = API["ROOT_SCHED_CONTROL"], API["ROOT_CONTEXT"]
LONGEST = API["PERIOD_TICKS_MAX"]
TURN = 1 << 32


def _amounts(script: Script, context: int) -> tuple[int, int, int]:
    found = script.context_of(context)
    return found.left, found.used, found.due


def _ask(script: Script, context: int, label: str, consumed: int) -> None:
    """As CONTEXT_CONSUMED; fails if the answer is another."""
    caller = script.run.kernel.current
    assert caller is not None
    script.syscall("CALL", context, message(0, 0, 0, API[f"LABEL_{label}"]))
    assert caller.regs[:4] == [0, message(2, 0, 0, 0), consumed, 0]


def a_budget_is_used_up_and_returns(script: Script) -> None:
    """A period after its thread became runnable."""
    if not script.is_timed:
        return
    script.pass_time(10)
    thread, context = script.paid(300, 2000)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.pass_time(299)
    assert script.runs(thread)
    script.pass_time(31, alarms=False)
    script.interrupt(TICK)
    assert script.runs(TCB)
    assert script.waits_for_time(context)
    assert _amounts(script, context) == (-30, 30, 300)
    script.pass_time(2000 - 330 - 1)
    assert script.waits_for_time(context)
    script.pass_time(1)
    assert not script.waits_for_time(context)
    script.yield_until(thread)


def a_thread_that_lacks_time_is_not_chosen(script: Script) -> None:
    """It has less than the minimum, but not nothing: it is seen when it would be chosen."""
    if not script.is_timed:
        return
    thread, context = script.paid(300, 2000)
    notification = script.make("NOTIFICATION")
    script.syscall("YIELD")
    script.pass_time(300 - BUDGET_MIN + 1)
    script.syscall("NB_SEND", notification)
    assert script.runs(thread)
    script.syscall("RECEIVE", notification)
    script.syscall("RECEIVE", notification)
    assert script.runs(TCB)
    script.syscall("SEND", notification)
    script.syscall("YIELD")
    assert script.runs(TCB)
    assert script.waits_for_time(context)


def who_was_kept_from_running_has_one_budget(script: Script) -> None:
    """It is runnable all the time: the used amount returns after a period, and a new one begins."""
    if not script.is_timed:
        return
    urgent, notification = script.urgent()
    thread, context = script.paid(300, 2000, priority=200)
    assert script.runs(thread)
    script.pass_time(150)
    script.interrupt(LINE)
    assert script.runs(urgent)
    script.pass_time(2500)
    script.syscall("RECEIVE", notification)
    assert script.runs(thread)
    assert _amounts(script, context) == (300, 0, 0)
    script.pass_time(200)
    script.syscall("RECEIVE", notification)
    script.pass_time(100)
    script.syscall("SEND", notification)
    assert _amounts(script, context) == (100, 200, 0)


def time_that_is_not_used_returns_later(script: Script) -> None:
    """Each time that the thread becomes runnable begins an amount; two at most are known."""
    if not script.is_timed:
        return
    notification = script.make("NOTIFICATION")
    _, context = script.paid(900, 5000)
    script.syscall("YIELD")
    for _ in range(3):
        script.pass_time(200)
        script.syscall("RECEIVE", notification)
        assert script.runs(TCB)
        script.pass_time(100)
        script.syscall("SEND", notification)
        script.syscall("YIELD")
    assert _amounts(script, context) == (300, 400, 200)
    script.syscall("RECEIVE", notification)
    script.pass_time(6000)
    script.syscall("SEND", notification)
    script.syscall("YIELD")
    assert _amounts(script, context) == (900, 0, 0)


def _sleep(script: Script, notification: int, ticks: int) -> None:
    """The current thread, until the first one wakes it so much later, and has its turn."""
    script.syscall("RECEIVE", notification)
    assert script.runs(TCB)
    script.pass_time(ticks)
    script.syscall("SEND", notification)
    script.syscall("YIELD")
    assert not script.runs(TCB)


def what_is_due_returns_at_its_tick(script: Script) -> None:
    """And no tick before, nor because its period is shorter now."""
    if not script.is_timed:
        return
    for early in (0, 1):
        script.begin_again()
        script.allot(OWN, LONGEST, LONGEST)
        notification = script.make("NOTIFICATION")
        _, context = script.paid(900, 2000)
        script.syscall("YIELD")
        script.pass_time(200)
        _sleep(script, notification, 100)
        assert _amounts(script, context) == (700, 0, 200)
        _sleep(script, notification, 1700 - early)
        assert _amounts(script, context) == ((700, 0, 200) if early else (900, 0, 0))
    script.begin_again()
    script.allot(OWN, LONGEST, LONGEST)
    notification = script.make("NOTIFICATION")
    thread, context = script.paid(900, 50_000, frame=script.make("FRAME_4K"))
    script.syscall("YIELD")
    script.pass_time(200)
    _sleep(script, notification, 100)
    script.pass_time(150)
    assert script.runs(thread)
    script.allot(context, 900, 2000)
    _sleep(script, notification, 10_000)
    assert _amounts(script, context) == (550, 150, 200)


def full_contexts_take_turns(script: Script) -> None:
    """They need not wait; nothing of them is used or due."""
    if not script.is_timed:
        return
    first, second = script.paid(400, 400), script.paid(700, 700)
    script.syscall("YIELD")
    for thread, context, ticks in ((*first, 400), (*second, 700), (TCB, OWN, SLICE)) * 2:
        assert script.runs(thread)
        assert _amounts(script, context) == (ticks, 0, 0)
        script.pass_time(ticks)


def who_yields_waits_for_its_next_budget(script: Script) -> None:
    """A thread that yields gives up the rest of its budget."""
    if not script.is_timed:
        return
    thread, context = script.paid(300, 2000)
    script.syscall("YIELD")
    script.pass_time(50)
    script.syscall("YIELD")
    assert script.runs(TCB)
    assert _amounts(script, context) == (0, 0, 300)
    script.pass_time(1949)
    assert script.waits_for_time(context)
    script.pass_time(1)
    assert not script.waits_for_time(context)
    script.yield_until(thread)


def the_last_of_all_waits_for_time(script: Script) -> None:
    """Nobody runs until it has some."""
    if not script.is_timed:
        return
    script.allot(OWN, 300, 2000)
    script.pass_time(40)
    script.syscall("YIELD")
    assert script.run.kernel.current is None
    script.pass_time(2000)
    assert script.runs(TCB)


def one_context_is_released_by_an_alarm(script: Script) -> None:
    """Of several that are due, each by one of its own, the next of which comes at once."""
    if not script.is_timed:
        return
    threads = [script.paid(200, 2000 + 7 * i) for i in (0, 1, 1, 2, 2, 5, 6, 4)]
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    for _ in threads:
        script.syscall("YIELD")
    assert script.runs(TCB)
    assert all(script.waits_for_time(context) for _, context in threads)
    script.pass_time(3000, alarms=False)
    for left in reversed(range(len(threads))):
        script.interrupt(TICK)
        assert sum(script.waits_for_time(context) for _, context in threads) == left
        script.run.host.now += 1
    assert script.runs(threads[0][0])


def an_alarm_that_nobody_needs(script: Script) -> None:
    if not script.is_timed:
        return
    script.interrupt(TICK)
    script.pass_time(10)
    script.interrupt(TICK)
    assert script.runs(TCB)
    assert _amounts(script, OWN) == (SLICE - 10, 0, 0)


def a_release_that_comes_late(script: Script) -> None:
    """By less than a period, by one, and by more: it has one budget, and then the next."""
    if not script.is_timed:
        return
    for late in (0, 1999, 2000, 2001):
        script.begin_again()
        thread, context = script.paid(300, 2000)
        script.allot(OWN, LONGEST, LONGEST)
        script.syscall("YIELD")
        assert script.runs(thread)
        script.syscall("YIELD")
        script.pass_time(2000 + late, alarms=False)
        script.interrupt(TICK)
        script.yield_until(thread)
        assert script.context_of(context).left == 300
        script.pass_time(250)
        script.syscall("YIELD")
        assert script.runs(TCB)
        script.pass_time(5000)


def who_waits_for_time_leaves(script: Script) -> None:
    """It is suspended, its priority or criticality changes, its context goes, or it does."""
    if not script.is_timed:
        return
    for label in ("SUSPEND", "PRIORITY", "CRITICALITY", "UNBIND", "CONTEXT", "THREAD", "MORE"):
        script.begin_again()
        threads = [script.paid(200 + i, 2000) for i in range(7)]
        thread, context = threads[1]
        script.invoke(TCB, "TCB_SET_PRIORITY", [100])
        for _ in threads:
            script.syscall("YIELD")
        assert script.waits_for_time(context)
        if label == "UNBIND":
            script.invoke(context, "CONTEXT_UNBIND")
        elif label in ("CONTEXT", "THREAD"):
            script.delete(context if label == "CONTEXT" else thread)
        elif label == "MORE":
            script.allot(context, 201 + BUDGET_MIN, 2000)
            assert script.runs(thread)
        elif label == "SUSPEND":
            script.invoke(thread, "TCB_SUSPEND")
        else:
            script.invoke(thread, f"TCB_SET_{label}", [1])
        assert script.runs(TCB) or label == "MORE"
        script.pass_time(2500)


def budgets_change(script: Script) -> None:
    """More, less than is used already, full and not full; the running one's, too."""
    if not script.is_timed:
        return
    thread, context = script.paid(300, 2000, frame=script.make("FRAME_4K"))
    script.syscall("YIELD")
    assert script.runs(thread)
    script.pass_time(150)
    script.allot(context, 600, 3000)
    assert _amounts(script, context) == (450, 150, 0)
    script.allot(context, 600, 600)
    assert _amounts(script, context) == (600, 0, 0)
    script.pass_time(100)
    script.allot(context, 500, 4000)
    assert _amounts(script, context) == (500, 0, 0)  # a first budget begins when it is set
    script.pass_time(400)
    script.allot(context, 200, 4000)
    assert script.runs(TCB)
    assert _amounts(script, context) == (-200, 200, 200)
    script.allot(context, 250, 4000)
    assert script.waits_for_time(context)
    script.allot(context, 600, 4000)
    assert not script.waits_for_time(context)


def a_less_urgent_thread_gets_more_time(script: Script) -> None:
    """It is released, and takes its turn."""
    if not script.is_timed:
        return
    thread, context = script.paid(200, 2000)
    script.syscall("YIELD")
    script.syscall("YIELD")
    script.invoke(thread, "TCB_SET_PRIORITY", [9])
    script.allot(context, 400, 2000)
    assert script.runs(TCB)
    script.syscall("RECEIVE", script.make("ENDPOINT"))
    assert script.runs(thread)


def a_first_budget_begins_when_it_is_set(script: Script) -> None:
    """Of a thread that shared its time by turns before: that it ran before then does not count."""
    if not script.is_timed:
        return
    thread, context = script.paid(SLICE, SLICE)
    script.syscall("YIELD")
    script.pass_time(SLICE)
    assert script.runs(TCB)
    script.pass_time(5 * SLICE // 2)
    script.yield_until(TCB)
    script.pass_time(350)
    script.allot(OWN, 300, 4000)
    script.allot(context, 300, 4000)
    script.pass_time(299)
    assert script.runs(TCB)
    script.pass_time(1)
    assert script.waits_for_time(OWN)
    assert script.runs(thread)
    script.pass_time(300)
    assert script.waits_for_time(context)
    script.pass_time(4000 - 600 - 1)
    assert script.waits_for_time(OWN)
    script.pass_time(300)
    assert script.waits_for_time(context)
    script.pass_time(1)
    assert not script.waits_for_time(context)


def amounts_that_may_not_be(script: Script) -> None:
    if not script.is_timed:
        return
    context, least = script.make("CONTEXT"), BUDGET_LEAST
    for budget, period in ((least - 1, 1000), (least, least - 1), (0, 0), (least, LONGEST + 1),
                           (LONGEST + 1, LONGEST + 1)):  # fmt: skip
        script.allot(context, budget, period, "RANGE")
    script.invoke(CONTROL, "CONTEXT_CONFIGURE", [least], [context], "TRUNCATED")
    script.invoke(CONTROL, "CONTEXT_CONFIGURE", [least, least], [], "TRUNCATED")
    script.allot(TCB, least, least, "INVALID_CAPABILITY")
    script.allot(context, LONGEST, LONGEST)
    script.allot(context, least, LONGEST)
    script.allot(context, least, least)
    script.invoke(CONTROL, "CONTEXT_BIND", [], [TCB], "ILLEGAL_OPERATION")
    script.copy(CONTROL, error="ILLEGAL_OPERATION")
    script.bind(script.copy(context), script.make("TCB"))


def contexts_that_may_not_be_bound(script: Script) -> None:
    if not script.is_timed:
        return
    thread, other = script.make("TCB", count=2), script.slots(0) - 1
    fresh, context = script.make("CONTEXT"), script.context()
    script.bind(fresh, thread, "ILLEGAL_OPERATION")
    script.bind(context, TCB, "ILLEGAL_OPERATION")
    script.bind(context, fresh, "INVALID_CAPABILITY")
    script.invoke(context, "CONTEXT_BIND", error="TRUNCATED")
    script.invoke(context, "CONTEXT_UNBIND", error="ILLEGAL_OPERATION")
    script.bind(context, thread)
    script.bind(context, other, "ILLEGAL_OPERATION")
    script.invoke(context, "CONTEXT_UNBIND")
    script.bind(context, other)


def who_has_no_context_does_not_run(script: Script) -> None:
    """It does from when it has one; the current thread only so long."""
    if not script.is_timed:
        return
    thread, context = script.make("TCB"), script.context()
    script.configure(thread)
    script.invoke(thread, "TCB_RESUME")
    script.syscall("YIELD")
    assert script.runs(TCB)
    script.bind(context, thread)
    script.invoke(thread, "TCB_SET_PRIORITY", [100])
    script.invoke(OWN, "CONTEXT_UNBIND")
    assert script.runs(thread)


def as_many_contexts_as_there_are_places(script: Script) -> None:
    """All of them wait for time at once, too."""
    if not script.is_timed:
        return
    script.run.host.now = 5
    places, row = LIMITS["RELEASE_PLACES"], LIMITS["RETYPE_OBJECTS_MAX"]
    threads: list[int] = []
    contexts: list[int] = []
    for _ in range(places // row):
        first = script.make("TCB", count=row)
        threads += range(first, first + row)
        first = script.make("CONTEXT", count=row, region=2)
        contexts += range(first, first + row)
    for i, (thread, context) in enumerate(zip(threads[1:], contexts[1:], strict=True)):
        script.allot(context, 300, 100_000 + 7919 * i % 5000)
        script.bind(context, thread)
    script.allot(contexts[0], 300, 3000)
    script.bind(contexts[0], threads[0], "NO_PLACE")
    script.bind(contexts[0], script.make("NOTIFICATION", region=2), "NO_PLACE")
    script.invoke(contexts[1], "CONTEXT_UNBIND")
    script.bind(contexts[0], threads[0])
    script.delete(threads[2])
    script.bind(contexts[1], threads[1])
    script.delete(contexts[3])
    script.bind(contexts[2], threads[3])
    script.bind(script.context(), threads[1], "ILLEGAL_OPERATION")


def many_contexts_wait_for_time(script: Script) -> None:
    """More than three levels of the heap; they come back in the order in which they are due."""
    if not script.is_timed:
        return
    threads = [script.paid(200, 40_000 + 7919 * i % 4000) for i in range(90)]
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    for _ in threads:
        script.syscall("YIELD")
    assert script.runs(TCB)
    for _, context in threads[::9]:
        script.invoke(context, "CONTEXT_UNBIND")
    script.pass_time(39_000)
    assert script.runs(TCB)
    script.pass_time(6000)
    assert not script.runs(TCB)


def what_was_consumed(script: Script) -> None:
    """Consumed time includes the running context's, and overruns of a budget."""
    if not script.is_timed:
        return
    thread, context = script.paid(300, 2000)
    _ask(script, OWN, "CONTEXT_CONSUMED", 0)
    script.pass_time(40)
    for consumed in (40, 0):
        _ask(script, OWN, "CONTEXT_CONSUMED", consumed)
    _ask(script, context, "CONTEXT_CONSUMED", 0)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.pass_time(350, alarms=False)
    script.interrupt(TICK)
    assert script.runs(TCB)
    _ask(script, context, "CONTEXT_CONSUMED", 350)


def yielding_to_a_thread(script: Script) -> None:
    """The thread is the next of its priority; the caller queries its consumed time."""
    if not script.is_timed:
        return
    first, second, third = (script.paid(SLICE, SLICE) for _ in range(3))
    less = script.paid(SLICE, SLICE, priority=100)
    script.invoke(script.make("CONTEXT"), "CONTEXT_YIELD_TO", error="ILLEGAL_OPERATION")
    _ask(script, third[1], "CONTEXT_YIELD_TO", 0)
    script.pass_time(8)
    _ask(script, OWN, "CONTEXT_YIELD_TO", 8)
    _ask(script, less[1], "CONTEXT_YIELD_TO", 0)
    script.invoke(second[0], "TCB_SUSPEND")
    _ask(script, second[1], "CONTEXT_YIELD_TO", 0)
    script.syscall("YIELD")
    assert script.runs(third[0])
    script.syscall("YIELD")
    assert script.runs(first[0])
    script.yield_until(TCB)
    script.invoke(TCB, "TCB_SET_LIMITS", [100, 0])
    script.invoke(first[1], "CONTEXT_YIELD_TO", error="RANGE")


def the_clock_wraps(script: Script) -> None:
    """Each time and each amount goes on."""
    if not script.is_timed:
        return
    script.allot(OWN, LONGEST, LONGEST)
    for ticks in (0, 5, TURN - 20, 30, TURN, 3 * TURN):
        script.pass_time(ticks)
        now = script.run.host.now
        script.syscall("CLOCK")
        assert script.thread_of(TCB).regs[:4] == [0, 0, now % TURN, now // TURN]
    script.pass_time(TURN - script.run.host.now % TURN - 1500)
    thread, context = script.paid(300, 2000)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.syscall("YIELD")
    assert script.runs(TCB)
    script.pass_time(1999)
    assert script.waits_for_time(context)
    script.pass_time(1)
    assert not script.waits_for_time(context)


def a_deletion_outlasts_a_budget(script: Script) -> None:
    """Its thread waits for time, and nobody else runs: the idle thread goes on with it."""
    if not script.is_timed:
        return
    node, inner = script.make("CNODE", 4), script.make("ENDPOINT")
    for index in range(8):
        words = [index, 4, inner, 32, 7]
        script.invoke(node, "CNODE_COPY", words, [NODE])
    script.allot(OWN, 300, 5000)
    script.pass_time(250)
    script.in_step = False
    sent = message(2, 0, 0, API["LABEL_CNODE_DELETE"])
    script.run.host.attempt(API["SYS_CALL"], [NODE, sent, node, 32, 0, 0], 2, TICK)
    assert script.run.host.current == script.run.table["idle_thread"]


def who_was_woken_in_the_middle_of_a_slice_takes_a_turn(script: Script) -> None:
    """Behind its equal, and a whole one."""
    if not script.is_timed:
        return
    endpoint, server = script.make("ENDPOINT"), script.thread()
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    equal = script.thread(100)
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.yield_until(equal)
    script.yield_until(TCB)
    for ticks in (0, SLICE // 2, SLICE - 1):
        script.pass_time(ticks)
        _call(script, endpoint, server)
        assert script.runs(equal)
        script.pass_time(SLICE)
        assert script.runs(TCB)
        assert script.context_of(OWN).left == SLICE


def _call(script: Script, endpoint: int, server: int) -> None:
    """A server, more urgent and with time of its own, answers at once."""
    script.syscall("CALL", endpoint)
    assert script.runs(server)
    script.syscall("REPLY_RECEIVE", endpoint)


def errors_of_levels_and_limits(script: Script) -> None:
    if not script.is_timed:
        return
    script.invoke(CONTROL, "SYSTEM_CRITICALITY", [4], error="RANGE")
    script.invoke(CONTROL, "SYSTEM_CRITICALITY", error="TRUNCATED")
    script.invoke(TCB, "TCB_SET_CRITICALITY", [4], error="RANGE")
    script.invoke(TCB, "TCB_SET_CRITICALITY", error="TRUNCATED")
    script.invoke(TCB, "TCB_SET_LIMITS", [256, 0], error="RANGE")
    script.invoke(TCB, "TCB_SET_LIMITS", [0, 4], error="RANGE")
    script.invoke(TCB, "TCB_SET_LIMITS", [0], error="TRUNCATED")
    script.invoke(TCB, "TCB_SET_LIMITS", [200, 1])
    script.invoke(TCB, "TCB_SET_PRIORITY", [201], error="RANGE")
    script.invoke(TCB, "TCB_SET_CRITICALITY", [2], error="RANGE")
    script.invoke(TCB, "TCB_SET_LIMITS", [201, 1], error="RANGE")
    script.invoke(TCB, "TCB_SET_LIMITS", [200, 2], error="RANGE")
    script.invoke(TCB, "TCB_SET_CRITICALITY", [1])
    thread = script.thread(priority=200)
    script.invoke(TCB, "TCB_SET_PRIORITY", [10])
    assert script.runs(thread)
    script.invoke(TCB, "TCB_SET_CRITICALITY", [1], error="RANGE")
    script.invoke(TCB, "TCB_SET_LIMITS", [200, 1], error="RANGE")
    script.invoke(TCB, "TCB_SET_PRIORITY", [200])


def calls_that_do_not_exist(script: Script) -> None:
    """Where time is no capability."""
    if script.is_timed:
        return
    for name in ("CLOCK", "SIGNAL_RECEIVE", "NB_SEND_RECEIVE"):
        script.syscall(name, NODE)
        assert script.thread_of(TCB).regs[0] == API["SYSCALL_FAILED"] | E["INVALID_SYSCALL"]
    for label in ("TCB_SET_CRITICALITY", "TCB_SET_LIMITS", "TCB_SET_TIMEOUT", "TCB_SAVE_CALLER"):
        script.invoke(TCB, label, [0, 0], error="ILLEGAL_OPERATION")
    script.invoke(NODE, "CNODE_SWAP_CALLER", [256, 32], error="ILLEGAL_OPERATION")
