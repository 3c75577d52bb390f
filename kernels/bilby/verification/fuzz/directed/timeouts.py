# SPDX-License-Identifier: BSD-2-Clause
"""Timeouts and criticality: who is told that its time is used up, or counts no more.

Each sequence ends at once where time is no capability.
"""

from __future__ import annotations

from itertools import product

from kernels.bilby.verification.fuzz.script import NODE, TCB, Script
from kernels.bilby.verification.spec.layout import API, TICK, message, read_field
from kernels.bilby.verification.spec.state import State

CONTROL, OWN = API["ROOT_SCHED_CONTROL"], API["ROOT_CONTEXT"]
SHORT = message(2, 0, 0, 9)
GO_ON, STAY = message(0, 0, 0, 0), message(0, 0, 0, 1)
BUDGET, CRITICALITY = API["TIMEOUT_BUDGET"], API["TIMEOUT_CRITICALITY"]


def _reason(script: Script, handler: int) -> tuple[int, int]:
    """Label and reason of the message that it has received."""
    regs = script.thread_of(handler).regs
    return regs[1] >> 12, regs[5]


def _told(script: Script, handler: int, reason: int) -> bool:
    return _reason(script, handler) == (API["FAULT_TIMEOUT"], reason)


def _level(script: Script, level: int) -> None:
    script.invoke(CONTROL, "SYSTEM_CRITICALITY", [level])


def _with_handler(script: Script) -> tuple[int, int, int]:
    """A thread of 300 ticks in 3000, its context, and the endpoint of its timeouts."""
    endpoint = script.make("ENDPOINT")
    thread, context = script.paid(300, 3000)
    script.invoke(thread, "TCB_SET_TIMEOUT", [], [endpoint])
    return thread, context, endpoint


def a_timeout_is_answered(script: Script) -> None:
    """With more time the thread goes on; without it waits for its time, and is not told again."""
    if not script.is_timed:
        return
    for more in (0, 900):
        script.begin_again()
        thread, context, endpoint = _with_handler(script)
        script.syscall("RECEIVE", endpoint)
        assert script.runs(thread)
        script.pass_time(300)
        assert script.runs(TCB)
        assert _told(script, TCB, BUDGET)
        if more:
            script.allot(context, more, 3000)
        script.syscall("REPLY", 0, GO_ON)
        script.syscall("YIELD")
        assert script.waits_for_time(context) == (not more)
        assert script.runs(thread) == bool(more)
        script.pass_time(6000)


def a_timeout_ends_a_thread(script: Script) -> None:
    """Or it waits for its handler, until that takes the message."""
    if not script.is_timed:
        return
    thread, _, endpoint = _with_handler(script)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.pass_time(250)
    script.syscall("NB_SEND", endpoint)
    script.pass_time(60)
    assert script.runs(TCB)
    assert script.thread_of(thread).state is State.SEND
    script.syscall("RECEIVE", endpoint)
    assert _told(script, TCB, BUDGET)
    script.syscall("REPLY", 0, STAY)
    assert script.thread_of(thread).state is State.INACTIVE


def a_handler_goes_away(script: Script) -> None:
    """While the thread waits for it; and before that: then it waits for time."""
    if not script.is_timed:
        return
    for early in (False, True):
        script.begin_again()
        thread, context, endpoint = _with_handler(script)
        if not early:
            script.syscall("YIELD")
            script.pass_time(310)
            assert script.thread_of(thread).state is State.SEND
            script.revoke(endpoint)
            script.invoke(thread, "TCB_SET_TIMEOUT")
            script.delete(endpoint)
            assert script.thread_of(thread).state is State.INACTIVE
            continue
        script.syscall("YIELD")
        script.pass_time(205)
        script.syscall("NB_SEND", endpoint)
        assert script.runs(thread)
        script.syscall("RECEIVE", endpoint)
        assert script.runs(TCB)
        script.syscall("SEND", endpoint, SHORT)
        script.invoke(thread, "TCB_SET_TIMEOUT")
        script.syscall("YIELD")
        assert script.runs(TCB)
        assert script.waits_for_time(context)


def a_passive_handler_is_donated_what_is_left(script: Script) -> None:
    """That is not enough: it waits for time, too, and then it is told."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    handler = script.passive(endpoint)
    thread, context = script.paid(300, 3000)
    script.invoke(thread, "TCB_SET_TIMEOUT", [], [endpoint])
    script.syscall("YIELD")
    assert script.runs(thread)
    script.pass_time(310)
    assert script.runs(TCB)
    assert script.thread_of(handler).context is script.context_of(context)
    script.pass_time(2690)
    script.yield_until(handler)
    assert _told(script, handler, BUDGET)
    script.syscall("REPLY_RECEIVE", endpoint, GO_ON)
    assert script.runs(thread)


def a_server_is_told_that_the_donated_time_is_used_up(script: Script) -> None:
    """It is given more, and ends the call."""
    if not script.is_timed:
        return
    endpoint, timeouts = script.make("ENDPOINT"), script.make("ENDPOINT")
    server = script.passive(endpoint)
    script.invoke(server, "TCB_SET_TIMEOUT", [], [timeouts])
    client, context = script.paid(300, 3000)
    script.syscall("RECEIVE", timeouts)
    assert script.runs(client)
    script.syscall("CALL", endpoint, SHORT)
    assert script.runs(server)
    script.pass_time(300)
    assert script.runs(TCB)
    assert _told(script, TCB, BUDGET)
    script.allot(context, 600, 3000)
    script.syscall("REPLY", 0, GO_ON)
    script.yield_until(server)
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    assert script.runs(client)


def a_full_context_is_never_used_up(script: Script) -> None:
    """Its thread has had its turn, and nobody is told."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    thread, _ = script.paid(300, 300)
    script.invoke(thread, "TCB_SET_TIMEOUT", [], [endpoint])
    script.syscall("YIELD")
    assert script.runs(thread)
    script.pass_time(300)
    assert script.runs(TCB)
    assert not script.thread_of(thread).fault


def who_yields_is_not_told(script: Script) -> None:
    if not script.is_timed:
        return
    thread, context, _ = _with_handler(script)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.syscall("YIELD")
    assert script.runs(TCB)
    script.pass_time(3000)
    script.yield_until(thread)
    assert script.context_of(context).left == 300


def handlers_that_may_not_be(script: Script) -> None:
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    mute = script.copy(endpoint, API["RIGHT_RECEIVE"])
    script.invoke(TCB, "TCB_SET_TIMEOUT", [], [mute], "NO_RIGHT")
    script.invoke(TCB, "TCB_SET_TIMEOUT", [], [NODE], "INVALID_CAPABILITY")
    script.invoke(TCB, "TCB_SET_TIMEOUT")
    script.invoke(TCB, "TCB_SET_TIMEOUT", [], [script.mint(endpoint, 5)])
    script.invoke(TCB, "TCB_SET_TIMEOUT", [], [endpoint], "SLOT_OCCUPIED")
    script.invoke(TCB, "TCB_SET_TIMEOUT")
    script.invoke(TCB, "TCB_SET_TIMEOUT", [], [endpoint])
    script.delete(endpoint)
    script.delete(mute)
    script.invoke(TCB, "TCB_SET_TIMEOUT")


def critical_threads_come_first(script: Script) -> None:
    """Those below the level are less urgent than all others, and among themselves as before."""
    if not script.is_timed:
        return
    low, high = script.thread(priority=200), script.thread(priority=20)
    middle = script.thread(priority=100)
    script.invoke(high, "TCB_SET_CRITICALITY", [2])
    script.invoke(middle, "TCB_SET_CRITICALITY", [1])
    script.invoke(TCB, "TCB_SET_CRITICALITY", [3])
    for thread in (high, middle, low):
        script.invoke(thread, "TCB_SET_LIMITS", [255, 3])
    _level(script, 2)
    script.invoke(TCB, "TCB_SET_PRIORITY", [10])
    assert script.runs(high)
    script.invoke(CONTROL, "SYSTEM_CRITICALITY", [3])
    assert script.runs(TCB)
    _level(script, 1)
    assert script.runs(middle)
    script.syscall("CALL", CONTROL, message(1, 0, 0, API["LABEL_SYSTEM_CRITICALITY"]), [0])
    assert script.runs(low)
    script.fault("UNDEFINED")
    assert script.runs(middle)


def of_equals_the_more_critical_comes_first(script: Script) -> None:
    """Then the first come; the current one goes on."""
    if not script.is_timed:
        return
    first, second, third = (script.thread(priority=100) for _ in range(3))
    script.invoke(third, "TCB_SET_CRITICALITY", [1])
    script.invoke(second, "TCB_SET_CRITICALITY", [1])
    script.invoke(TCB, "TCB_SET_PRIORITY", [50])
    assert script.runs(third)
    script.syscall("YIELD")
    assert script.runs(second)
    script.syscall("YIELD")
    assert script.runs(third)
    script.fault("UNDEFINED")
    script.fault("UNDEFINED")
    assert script.runs(first)


def _critical_server(script: Script) -> tuple[int, int, int, int]:
    """A server in use by an uncritical thread; both, its endpoint and its timeout endpoint."""
    endpoint, timeouts = script.make("ENDPOINT"), script.make("ENDPOINT")
    server, notification = script.passive(endpoint), script.make("NOTIFICATION")
    script.invoke(server, "TCB_SET_TIMEOUT", [], [timeouts])
    client = script.thread()
    for thread in (server, TCB):
        script.invoke(thread, "TCB_SET_CRITICALITY", [3])
    script.syscall("RECEIVE", notification)
    assert script.runs(client)
    script.syscall("CALL", endpoint, SHORT)
    script.syscall("SEND", notification)
    script.yield_until(TCB)
    return server, client, endpoint, timeouts


def a_server_works_for_who_counts_no_more(script: Script) -> None:
    """Once of each donation, when it would be chosen and contexts change or an alarm comes."""
    if not script.is_timed:
        return
    server, client, endpoint, timeouts = _critical_server(script)
    _level(script, 2)
    _level(script, 0)
    script.yield_until(server)
    script.yield_until(TCB)
    _level(script, 2)
    assert script.thread_of(server).is_running
    script.syscall("RECEIVE", timeouts)
    assert script.runs(TCB)
    assert _told(script, TCB, CRITICALITY)
    script.syscall("REPLY", 0, GO_ON)
    script.yield_until(server)
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    script.yield_until(TCB)
    assert not script.thread_of(server).fault
    script.syscall("RECEIVE", timeouts)
    assert script.runs(client)
    script.syscall("CALL", endpoint, SHORT)
    assert script.runs(server)
    script.syscall("YIELD")
    assert script.runs(TCB)
    assert _told(script, TCB, CRITICALITY)
    script.syscall("REPLY", 0, GO_ON)
    script.syscall("RECEIVE", timeouts)
    assert script.runs(server)


def an_answer_on_the_short_way_ends_the_excuse(script: Script) -> None:
    """The context is at home again: its server was told, and its thread was not."""
    if not script.is_timed:
        return
    server, client, endpoint, timeouts = _critical_server(script)
    _level(script, 2)
    script.syscall("RECEIVE", timeouts)
    assert _told(script, TCB, CRITICALITY)
    script.syscall("REPLY", 0, GO_ON)
    _level(script, 0)
    script.yield_until(server)
    context = script.thread_of(server).context
    assert context is not None
    assert context.excused
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    assert script.runs(client)
    assert not context.excused


def the_home_of_a_donation_dies_or_becomes_critical(script: Script) -> None:
    """Then nobody is told."""
    if not script.is_timed:
        return
    for dies in (False, True):
        script.begin_again()
        server, client, _, timeouts = _critical_server(script)
        _level(script, 2)
        if dies:
            script.delete(client)
        else:
            script.invoke(client, "TCB_SET_CRITICALITY", [2])
        script.syscall("RECEIVE", timeouts)
        assert script.runs(server)


def a_timeout_comes_while_its_endpoint_is_recycled(script: Script) -> None:
    """Nobody handles it, so the thread stops, and returns its donated context."""
    if not script.is_timed:
        return
    endpoint, timeouts = script.make("ENDPOINT"), script.make("ENDPOINT")
    notification, other = script.make("NOTIFICATION"), script.copy(timeouts)
    server = script.passive(endpoint)
    script.invoke(server, "TCB_SET_TIMEOUT", [], [timeouts])
    waiting = [script.thread() for _ in range(3)]
    for thread in waiting:
        script.yield_until(thread)
        script.syscall("SEND", timeouts, SHORT)
    client, context = script.paid(300, 9000, priority=100)
    for thread in (*waiting, server):
        script.invoke(thread, "TCB_SET_PRIORITY", [100 if thread == server else 50])
    script.syscall("RECEIVE", notification)
    assert script.runs(client)
    script.syscall("CALL", endpoint, SHORT)
    assert script.runs(server)
    script.pass_time(250)
    script.syscall("SEND", notification)
    assert script.runs(TCB)
    script.allot(OWN, 300, 9000)
    script.pass_time(250, alarms=False)
    script.in_step = False
    host, sent = script.run.host, message(2, 0, 0, API["LABEL_CNODE_RECYCLE"])
    host.attempt(API["SYS_CALL"], [NODE, sent, other, 32, 0, 0], 1, TICK)
    stopped = script.thread_of(server).address
    assert read_field(host.word, "tcb", stopped, "state") == State.INACTIVE
    assert read_field(host.word, "tcb", stopped, "context") == 0
    assert read_field(host.word, "context", script.object_of(context), "thread") != 0


def a_server_that_counts_no_more_is_called(script: Script) -> None:
    """At any priority it is less urgent than all critical threads; or the answered one is."""
    if not script.is_timed:
        return
    for answers, level in product((False, True), (1, 2)):
        script.begin_again()
        endpoint = script.make("ENDPOINT")
        server, third = script.passive(endpoint), script.thread(priority=10)
        for thread, criticality in ((third, level), (TCB, 0 if answers else level)):
            script.invoke(thread, "TCB_SET_CRITICALITY", [criticality])
        script.invoke(server, "TCB_SET_CRITICALITY", [level if answers else 0])
        _level(script, 0 if answers else level)
        script.syscall("CALL", endpoint, SHORT)
        if not answers:
            assert script.runs(third)
            continue
        _level(script, level)
        script.syscall("REPLY_RECEIVE", endpoint, SHORT)
        assert script.runs(third)
