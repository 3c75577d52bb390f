# SPDX-License-Identifier: BSD-2-Clause
"""Threads wait by priority, where time is a capability; equal ones in order of arrival.

Each sequence ends at once where they wait in order of arrival alone. The specification has each
queue, so that every operation compares all links.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernels.bilby.verification.fuzz.script import NODE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, message
from kernels.bilby.verification.spec.state import State

MIXED = (10, 200, 31, 10, 32, 254, 200, 63, 64, 10, 1, 200, 33)
WORD = message(1, 0, 0, 0)
ABORTED = API["SYSCALL_FAILED"] | E["ABORTED"]


def _arrive(
    script: Script, name: str, item: int, priorities: Sequence[int], badges: Sequence[int] = ()
) -> list[int]:
    """Threads that wait for an object, in order of arrival; the first thread is less urgent."""
    script.invoke(TCB, "TCB_SET_PRIORITY", [0])
    threads = []
    for i, priority in enumerate(priorities):
        through = script.mint(item, badges[i]) if badges else item
        threads.append(script.thread(priority))
        assert script.runs(threads[-1])
        script.syscall(name, through, WORD, [i])
        assert script.runs(TCB)
    return threads


def _by_priority(threads: Sequence[int], priorities: Sequence[int]) -> list[int]:
    """Equal ones in order of arrival."""
    return [threads[i] for i in sorted(range(len(threads)), key=lambda i: -priorities[i])]


def _order(script: Script, threads: Sequence[int]) -> list[int]:
    """The waiting ones of ``threads``, in the order of their queue."""
    slots = {script.thread_of(thread).address: thread for thread in threads}
    waiting = [script.thread_of(thread).waits_on for thread in threads]
    (item,) = {id(item): item for item in waiting if item is not None}.values()
    return [slots[thread.address] for thread in item.queue]


def _take_all(script: Script, name: str, item: int, expected: Sequence[int]) -> None:
    """One message or signal for each; who is served is more urgent, runs, and waits elsewhere."""
    park = script.make("ENDPOINT")
    for thread in expected:
        script.syscall(name, item, WORD, [7])
        assert script.runs(thread)
        script.syscall("RECEIVE", park)
        assert script.runs(TCB)


def _waiters_are_served(script: Script, kind: str, wait: str, serve: str) -> None:
    """Threads of mixed priorities wait by one system call; another serves them by priority."""
    item = script.make(kind)
    threads = _arrive(script, wait, item, MIXED)
    _take_all(script, serve, item, _by_priority(threads, MIXED))


def senders_are_received_by_priority(script: Script) -> None:
    if not script.is_timed:
        return
    _waiters_are_served(script, "ENDPOINT", "SEND", "RECEIVE")


def receivers_get_messages_by_priority(script: Script) -> None:
    if not script.is_timed:
        return
    _waiters_are_served(script, "ENDPOINT", "RECEIVE", "SEND")


def signals_go_to_waiters_by_priority(script: Script) -> None:
    if not script.is_timed:
        return
    _waiters_are_served(script, "NOTIFICATION", "RECEIVE", "SEND")


def a_caller_is_served_by_the_most_urgent_server(script: Script) -> None:
    """Also on the fastpath, whose server leaves others behind, and comes back before them."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    servers = _arrive(script, "RECEIVE", endpoint, (5, 9, 7, 9))
    script.invoke(servers[1], "TCB_SET_PRIORITY", [8])
    for _ in range(2):
        script.syscall("CALL", endpoint, WORD, [1])
        assert script.runs(servers[3])
        script.syscall("REPLY_RECEIVE", endpoint, WORD, [2])
        assert script.runs(TCB)
    assert _order(script, servers) == [servers[3], servers[1], servers[2], servers[0]]


def who_leaves_a_queue_leaves_its_order(script: Script) -> None:
    """The first, the last, one between, the last of a priority, the only one of it."""
    if not script.is_timed:
        return
    for kind in ("ENDPOINT", "NOTIFICATION"):
        for leaving in range(len(MIXED)):
            script.begin_again()
            item = script.make(kind)
            threads = _arrive(script, "RECEIVE", item, MIXED)
            script.invoke(threads[leaving], "TCB_SUSPEND")
            priorities = list(MIXED)
            late = _arrive(script, "RECEIVE", item, (MIXED[leaving], 32, 100))
            del threads[leaving], priorities[leaving]
            threads += late
            priorities += [MIXED[leaving], 32, 100]
            assert _order(script, threads) == _by_priority(threads, priorities)


def one_alone_waits_again_and_again(script: Script) -> None:
    """The index counts only while two wait: older entries belong to others."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    for priorities in ((9, 200), (40, 9), (200, 90), (90, 90), (3, 255)):
        threads = _arrive(script, "SEND", endpoint, priorities)
        _take_all(script, "RECEIVE", endpoint, _by_priority(threads, priorities))


def a_priority_changes_in_a_queue(script: Script) -> None:
    """Up, down, and to the same: then it goes behind its equals."""
    if not script.is_timed:
        return
    for name, kind in (("SEND", "ENDPOINT"), ("RECEIVE", "ENDPOINT"), ("RECEIVE", "NOTIFICATION")):
        script.begin_again()
        item = script.make(kind)
        first, second, third, fourth = _arrive(script, name, item, (20, 40, 40, 60))
        for thread, priority, order in (
            (first, 50, (fourth, first, second, third)),
            (fourth, 10, (first, second, third, fourth)),
            (second, 40, (first, third, second, fourth)),
            (fourth, 255, (fourth, first, third, second)),
            (third, 0, (fourth, first, second, third)),
        ):
            script.invoke(thread, "TCB_SET_PRIORITY", [priority])
            assert _order(script, (first, second, third, fourth)) == list(order)


def one_alone_changes_its_priority(script: Script) -> None:
    if not script.is_timed:
        return
    for name, kind in (("SEND", "ENDPOINT"), ("RECEIVE", "ENDPOINT"), ("RECEIVE", "NOTIFICATION")):
        script.begin_again()
        item = script.make(kind)
        (alone,) = _arrive(script, name, item, (20,))
        script.invoke(alone, "TCB_SET_PRIORITY", [30])
        (other,) = _arrive(script, name, item, (25,))
        assert _order(script, (alone, other)) == [alone, other]


def who_is_bound_leaves_the_order_at_a_signal(script: Script) -> None:
    if not script.is_timed:
        return
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    server = script.make("TCB")
    script.configure(server)
    script.invoke(server, "TCB_BIND", [], [notification])
    script.invoke(TCB, "TCB_SET_PRIORITY", [0])
    script.start(server, 70)
    script.syscall("RECEIVE", endpoint)
    others = _arrive(script, "RECEIVE", endpoint, (70, 70, 90))
    assert _order(script, [server, *others]) == [others[2], server, others[0], others[1]]
    script.syscall("SEND", notification)
    assert script.runs(server)
    script.syscall("RECEIVE", endpoint)
    assert _order(script, [server, *others]) == [others[2], others[0], others[1], server]


def _begin_abort(script: Script) -> tuple[int, list[int]]:
    """Of badge 5; the first of its senders was woken. Others have badge 6."""
    endpoint = script.make("ENDPOINT")
    badged = script.mint(endpoint, 5)
    threads = _arrive(script, "SEND", endpoint, (90, 80, 70, 60, 50), (5, 6, 5, 6, 5))
    script.invoke(TCB, "TCB_SET_PRIORITY", [255])
    assert script.begin("CNODE_RECYCLE", badged, 1)
    assert script.now_runs(TCB)
    return badged, threads


def _result(script: Script, thread: int) -> int:
    return script.run.host.word(script.object_of(thread))


def who_moves_past_an_abort_is_aborted(script: Script) -> None:
    """The abort has not come to it yet, and would not find it in its new place."""
    if not script.is_timed:
        return
    for priority in (250, 75, 1):
        script.begin_again()
        badged, threads = _begin_abort(script)
        script.meanwhile_invoke(threads[4], "TCB_SET_PRIORITY", [priority])
        assert _result(script, threads[4]) == ABORTED
        script.meanwhile_invoke(threads[1], "TCB_SET_PRIORITY", [2])
        script.meanwhile_invoke(threads[3], "TCB_SET_PRIORITY", [251])
        script.meanwhile_invoke(NODE, "CNODE_RECYCLE", [badged, 32])
        results = [_result(script, thread) == ABORTED for thread in threads]
        assert results == [True, False, True, False, True]


def who_comes_during_an_abort_takes_its_place(script: Script) -> None:
    """The abort ends with the threads that stand before its end then."""
    if not script.is_timed:
        return
    badged, threads = _begin_abort(script)
    script.meanwhile_invoke(threads[1], "TCB_SET_PRIORITY", [55])
    script.meanwhile_invoke(NODE, "CNODE_RECYCLE", [badged, 32])
    results = [_result(script, thread) == ABORTED for thread in threads]
    assert results == [True, False, True, False, True]


def who_waits_at_a_closed_endpoint_changes_its_priority(script: Script) -> None:
    if not script.is_timed:
        return
    for kind, name in (("ENDPOINT", "SEND"), ("NOTIFICATION", "RECEIVE")):
        script.begin_again()
        item = script.make(kind)
        threads = _arrive(script, name, item, (50, 40, 30, 20))
        script.invoke(TCB, "TCB_SET_PRIORITY", [255])
        assert script.begin("CNODE_RECYCLE", item, 1)
        script.meanwhile_invoke(threads[3], "TCB_SET_PRIORITY", [60])
        script.meanwhile_invoke(threads[1], "TCB_SET_PRIORITY", [25])
        script.meanwhile_invoke(NODE, "CNODE_RECYCLE", [item, 32])
        assert all(_result(script, thread) == ABORTED for thread in threads)


def a_fault_waits_in_its_place(script: Script) -> None:
    """The message of a fault, and a timeout's, as any other."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    callers = _arrive(script, "CALL", endpoint, (20, 60))
    faulty = script.thread(40, handler=endpoint)
    assert script.runs(faulty)
    script.fault("DATA_ABORT")
    assert script.thread_of(faulty).state is State.SEND
    assert _order(script, [*callers, faulty]) == [callers[1], faulty, callers[0]]
