# SPDX-License-Identifier: BSD-2-Clause
"""Deletions that are preempted: the threads that wait for them, and the one that ends them."""

from __future__ import annotations

from collections.abc import Iterator

from kernels.bilby.verification.fuzz.host import PC
from kernels.bilby.verification.fuzz.script import LINE, NODE, TCB, Script
from kernels.bilby.verification.spec.layout import API, SIZES, TICK, message, offset

SHORT = 6  # tests of a system call that deletes one capability
NESTED = 12  # CNodes in the one that takes long to delete


def _nest(script: Script, region: int = 1) -> int:
    """A CNode with the last capabilities of others; takes many steps to delete."""
    outer = script.make("CNODE", 4)
    words = [1, 1, 0, 0, 2, NESTED]
    script.invoke(16 + region, "UNTYPED_RETYPE", words, [outer])
    return outer


def _into(script: Script, node: int, index: int, slot: int) -> None:
    script.invoke(node, "CNODE_MOVE", [index, 4, slot, 32], [NODE])


def _waiter(script: Script, endpoint: int) -> int:
    """A thread of the highest priority that waits to receive."""
    thread = script.thread()
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    return thread


def _all_sleep(script: Script, notification: int) -> None:
    """Nobody runs for a while, and nothing was left; then the first thread does."""
    answers = script.make("ENDPOINT")
    script.syscall("CALL", answers)
    script.interrupt(LINE)
    script.invoke(notification + 1, "IRQ_ACKNOWLEDGE")
    script.syscall("RECEIVE", answers)
    script.syscall("REPLY_RECEIVE", notification)


def _interrupted(script: Script, test: int, node: int) -> bool:
    """The first thread deletes a CNode until the urgent one runs; false if it was done before."""
    preempted = script.begin("CNODE_DELETE", node, test)
    script.run.host.interrupt(LINE)
    return preempted


def a_deletion_does_not_wait_for_another(script: Script) -> None:
    endpoint, outer = script.make("ENDPOINT"), _nest(script)
    copy = script.copy(endpoint)
    urgent, notification = script.urgent()
    assert _interrupted(script, 9, outer)
    assert script.now_runs(urgent)
    assert script.meanwhile_invoke(NODE, "CNODE_DELETE", [copy, 32]).tests <= SHORT
    script.meanwhile("RECEIVE", notification)
    assert script.now_runs(TCB)
    assert script.meanwhile_invoke(NODE, "CNODE_DELETE", [outer, 32]).tests > SHORT


def what_a_suspended_thread_left_is_finished_when_nobody_runs(script: Script) -> None:
    """It has taken the last capability to an endpoint away, and nobody else deletes."""
    for test in _tests(script, 3, 20, 4):
        endpoint, outer = script.make("ENDPOINT"), _nest(script)
        waiter = _waiter(script, endpoint)
        _into(script, outer, 1, endpoint)
        _, notification = script.urgent()
        _all_sleep(script, notification)
        assert _interrupted(script, test, outer)
        script.meanwhile_invoke(TCB, "TCB_SUSPEND")
        script.meanwhile("RECEIVE", notification)
        assert script.now_runs(waiter)


def _tick(script: Script) -> None:
    script.use_up_slice()
    script.run.host.interrupt(TICK)


def _leave(script: Script, outer: int, test: int, owner: int, notification: int) -> None:
    """Whoever runs deletes a CNode, and is suspended in that by the urgent thread."""
    assert _interrupted(script, test, outer)
    script.meanwhile_invoke(owner, "TCB_SUSPEND")
    script.meanwhile_invoke(notification + 1, "IRQ_ACKNOWLEDGE")
    script.meanwhile("RECEIVE", notification)


def _ticks_until(script: Script, waiter: int, spinner: int) -> int:
    """How often the slice of a thread that only runs ends until another one is woken."""
    for ticks in range(200):
        if script.now_runs(waiter):
            return ticks
        assert script.now_runs(spinner)
        _tick(script)
    raise AssertionError("the waiting thread is not woken")


def what_was_left_does_not_wait_until_nobody_runs(script: Script) -> None:
    """At each tick it has a turn, which ends: others run before it is done."""
    endpoint, outer = script.make("ENDPOINT"), _nest(script)
    waiter = _waiter(script, endpoint)
    _into(script, outer, 1, endpoint)
    spinner = script.thread(50)
    _, notification = script.urgent()
    _leave(script, outer, 9, TCB, notification)
    assert _ticks_until(script, waiter, spinner) > NESTED


def what_a_deleted_thread_left_does_not_wait_either(script: Script) -> None:
    """The idle thread's own work has its turn."""
    endpoint, outer = script.make("ENDPOINT"), _nest(script)
    waiter = _waiter(script, endpoint)
    _into(script, outer, 1, endpoint)
    spinner = script.thread(50)
    _, notification = script.urgent()
    assert _interrupted(script, 9, outer)
    script.meanwhile_invoke(NODE, "CNODE_DELETE", [TCB, 32])
    script.meanwhile("RECEIVE", notification)
    assert _ticks_until(script, waiter, spinner) > NESTED


def what_was_left_comes_before_the_most_urgent(script: Script) -> None:
    """A thread of the highest priority that only runs makes way at the end of its slice."""
    endpoint, outer = script.make("ENDPOINT"), _nest(script)
    waiter = _waiter(script, endpoint)
    _into(script, outer, 1, endpoint)
    urgent, _ = script.urgent()
    assert _interrupted(script, 9, outer)
    for _ in range(200):
        if script.now_runs(waiter):
            break
        assert script.now_runs(urgent)
        _tick(script)
    assert script.now_runs(waiter)


def those_who_left_something_take_turns(script: Script) -> None:
    """The one who has less left is done first, though it came last; a dead thread's work, too."""
    for dies in (False, True):
        script.begin_again()
        endpoints = [script.make("ENDPOINT") for _ in range(2)]
        nests = [_nest(script) for _ in range(2)]
        waiters = [_waiter(script, endpoint) for endpoint in endpoints]
        for nest, endpoint in zip(nests, endpoints, strict=True):
            _into(script, nest, 1, endpoint)
        spinner, second = script.thread(50), script.thread(60)
        _, notification = script.urgent()
        _leave(script, nests[0], 9, TCB, notification)
        assert script.now_runs(second)
        _leave(script, nests[1], 24, second, notification)
        if dies:
            script.run.host.interrupt(LINE)
            script.meanwhile_invoke(NODE, "CNODE_DELETE", [second, 32])
            script.meanwhile("RECEIVE", notification)
        assert _ticks_until(script, waiters[1], spinner) > 0
        script.meanwhile_invoke(waiters[1], "TCB_SUSPEND")
        assert _ticks_until(script, waiters[0], spinner) > 0


def who_has_the_next_turn_ends_by_itself(script: Script) -> None:
    """Then those of the others go on."""
    endpoint, nests = script.make("ENDPOINT"), [_nest(script) for _ in range(2)]
    waiter = _waiter(script, endpoint)
    _into(script, nests[0], 1, endpoint)
    second = script.thread(60)
    _, notification = script.urgent()
    _leave(script, nests[0], 9, TCB, notification)
    assert script.now_runs(second)
    assert script.begin("CNODE_DELETE", nests[1], 24)
    _tick(script)
    script.meanwhile_invoke(NODE, "CNODE_DELETE", [nests[1], 32])
    assert _ticks_until(script, waiter, second) > 0


def a_tick_at_the_end_of_a_call_gives_the_turn(script: Script) -> None:
    """Also if the call has woken another thread, which would run at once."""
    called, endpoint, outer = script.make("ENDPOINT"), script.make("ENDPOINT"), _nest(script)
    waiter = _waiter(script, endpoint)
    _into(script, outer, 1, endpoint)
    server, caller = script.thread(50), script.thread(50)
    _, notification = script.urgent()
    _leave(script, outer, 9, TCB, notification)
    assert script.now_runs(server)
    script.meanwhile("RECEIVE", called)
    assert script.now_runs(caller)
    script.use_up_slice()
    script.interrupt_at_the_end("CALL", called, TICK, sent=message(0, 1, 0, 0))
    assert _ticks_until(script, waiter, server) > 0


def who_deletes_its_own_thread_wakes_others(script: Script) -> None:
    """With the node that holds its last capability; it never comes back to the rest."""
    for test in _tests(script, 3, 24, 2):
        endpoint, outer = script.make("ENDPOINT"), _nest(script)
        waiter = _waiter(script, endpoint)
        _into(script, outer, 1, endpoint)
        deleter = script.thread()
        script.invoke(outer, "CNODE_MOVE", [15, 4, deleter, 32], [NODE])
        script.syscall("RECEIVE", script.make("ENDPOINT"))
        script.begin("CNODE_DELETE", outer, test)
        assert script.now_runs(waiter)


def what_a_deleted_thread_left_is_not_its_deleters(script: Script) -> None:
    endpoint, outer = script.make("ENDPOINT"), _nest(script)
    waiter = _waiter(script, endpoint)
    _into(script, outer, 1, endpoint)
    _, notification = script.urgent()
    assert _interrupted(script, 9, outer)
    assert script.meanwhile_invoke(NODE, "CNODE_DELETE", [TCB, 32]).tests <= SHORT + 12
    script.meanwhile("RECEIVE", notification)
    assert script.now_runs(waiter)


def a_revocation_ends_with_its_thread(script: Script) -> None:
    """Objects made before the thread stay; others have to delete them."""
    region = script.make("UNTYPED", 12)
    endpoint, deleter = script.make("ENDPOINT", region=region), script.make("TCB", region=region)
    script.configure(deleter, script.make("FRAME_4K"))
    script.start(deleter, 255)
    script.syscall("YIELD")
    script.revoke(region)
    assert script.runs(TCB)
    script.syscall("NB_SEND", endpoint)
    script.revoke(region)
    script.syscall("NB_SEND", endpoint)


def a_revocation_takes_over_what_it_depends_on(script: Script) -> None:
    """A container of its region, wherever another deletion has got to; nothing else."""
    for test in _tests(script, 2, 50, 6):
        region = script.make("UNTYPED", 10)
        inner, outer = script.make("CNODE", 3, region=region), _nest(script)
        script.invoke(inner, "CNODE_COPY", [5, 3, TCB, 32, 7], [NODE])
        _into(script, outer, 1, inner)
        _, notification = script.urgent()
        if not _interrupted(script, test, outer):
            return
        tests = script.meanwhile_invoke(NODE, "CNODE_REVOKE", [region, 32]).tests
        assert tests <= SHORT + 2 * 9
        script.meanwhile_invoke(region, "UNTYPED_RETYPE", [1, 6, 0, 0, script.slots(), 1], [NODE])
        script.meanwhile("RECEIVE", notification)
        script.meanwhile_invoke(NODE, "CNODE_DELETE", [outer, 32])


def all_that_was_left_is_taken_over(script: Script) -> None:
    """Whose deletion had nothing left then deletes something else, and is stopped in that."""
    for test in _tests(script, 2, 14, 1):
        region = script.make("UNTYPED", 10)
        inner, outer = script.make("CNODE", 3, region=region), _nest(script)
        script.invoke(inner, "CNODE_COPY", [5, 3, TCB, 32, 7], [NODE])
        _, notification = script.urgent()
        if not _interrupted(script, test, inner):
            return
        script.meanwhile_invoke(NODE, "CNODE_REVOKE", [region, 32])
        script.meanwhile("RECEIVE", notification)
        assert script.now_runs(TCB)
        script.begin("CNODE_DELETE", outer, 4)
        script.meanwhile_invoke(NODE, "CNODE_DELETE", [outer, 32])


def who_has_nothing_left_to_delete_is_stopped(script: Script) -> None:
    """The idle thread finds nothing to do for it."""
    for test in _tests(script, 2, 14, 1):
        region = script.make("UNTYPED", 10)
        inner = script.make("CNODE", 3, region=region)
        script.invoke(inner, "CNODE_COPY", [5, 3, TCB, 32, 7], [NODE])
        _, notification = script.urgent()
        if not _interrupted(script, test, inner):
            return
        script.meanwhile_invoke(NODE, "CNODE_REVOKE", [region, 32])
        script.meanwhile_invoke(TCB, "TCB_SUSPEND")
        script.meanwhile("RECEIVE", notification)
        assert script.run.host.current == script.run.table["idle_thread"]


def a_notification_is_deleted_and_its_memory_used(script: Script) -> None:
    """Before the call that deleted it is over."""
    for test in _tests(script, 2, 30, 2):
        bits = SIZES["notification"].bit_length() - 1
        region, outer = script.make("UNTYPED", bits), _nest(script)
        _into(script, outer, 15, script.make("NOTIFICATION", region=region))
        _, notification = script.urgent()
        preempted = _interrupted(script, test, outer)
        script.meanwhile_invoke(NODE, "CNODE_REVOKE", [region, 32])
        new = script.slots()
        words = [API["TYPE_NOTIFICATION"], 0, 0, 0, new, 1]
        script.meanwhile_invoke(region, "UNTYPED_RETYPE", words, [NODE])
        script.meanwhile("NB_SEND", new)
        script.meanwhile("RECEIVE", notification)
        script.meanwhile_invoke(NODE, "CNODE_DELETE", [outer, 32])
        signalled = script.object_of(region) + offset("notification", "signalled")
        assert script.run.host.word(signalled) == 1
        if not preempted:
            return


def a_large_cnode_is_emptied_from_its_last_slot(script: Script) -> None:
    """The number of a slot has more bits than one field of the remains."""
    node, endpoint = script.make("CNODE", 11), script.make("ENDPOINT")
    thread = _waiter(script, endpoint)
    script.invoke(node, "CNODE_MOVE", [2047, 11, endpoint, 32], [NODE])
    script.invoke(NODE, "CNODE_DELETE", [node, 32])
    assert not script.thread_of(thread).waits_on


def a_thread_that_deletes_itself_is_taken_over(script: Script) -> None:
    """The memory of its control block is used again while it is being emptied."""
    for test in _tests(script, 2, 60, 4):
        region, outer = script.make("UNTYPED", 10), _nest(script)
        deleter = script.make("TCB", region=region)
        script.configure(deleter, script.make("FRAME_4K"))
        urgent, notification = script.urgent()
        script.start(deleter, 100)
        script.invoke(outer, "CNODE_MOVE", [14, 4, deleter, 32], [NODE])
        script.syscall("YIELD")
        preempted = script.begin("CNODE_DELETE", outer, test)
        script.run.host.interrupt(LINE)
        assert script.now_runs(urgent)
        script.meanwhile_invoke(NODE, "CNODE_REVOKE", [region, 32])
        script.meanwhile_invoke(region, "UNTYPED_RETYPE", [1, 6, 0, 0, script.slots(), 1], [NODE])
        script.meanwhile("RECEIVE", notification)
        if not preempted:
            return


def _tests(script: Script, first: int, last: int, step: int) -> Iterator[int]:
    """Tests at which a deletion is preempted, each from the state after boot."""
    for test in range(first, last, step):
        script.begin_again()
        yield test


def threads_of_one_priority_share_while_they_delete(script: Script) -> None:
    """The slice of each ends at every test of each attempt: they take turns until all are done.

    If lookups are cached, the other threads' become invalid at each step: an interrupt at every
    test is more often than the guide allows.
    test is more often than the guide allows.
    """
    if not script.run.kernel.scheduler.ordered or script.keeps_lookups:
        return
    nests = [_nest(script) for _ in range(3)]
    threads = [TCB, script.thread(), script.thread()]
    turns: list[int] = []
    left = dict(zip((script.object_of(thread) for thread in threads), nests, strict=True))
    sent = message(2, 0, 0, API["LABEL_CNODE_DELETE"])
    script.in_step = False
    host = script.run.host
    while left:
        thread = host.current
        if thread not in left:
            host.syscall(API["SYS_YIELD"], [0] * 6)
            continue
        script.use_up_slice()
        host.attempt(API["SYS_CALL"], [NODE, sent, left[thread], 32, 0, 0], 1, TICK)
        turns.append(thread)
        assert host.current != thread
        if host.word(thread + 4 * 15) == PC:
            del left[thread]
        assert len(turns) < 3 * 100
    first = turns[: 3 * (NESTED // 2)]
    assert [first[i] for i in range(3)] * (NESTED // 2) == first
