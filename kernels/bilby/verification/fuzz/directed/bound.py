# SPDX-License-Identifier: BSD-2-Clause
"""Notifications that are bound to a thread: who gets a signal, and when binding ends."""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import NODE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, WINDOW, has_field, message, offset
from kernels.bilby.verification.spec.state import State

SIGNAL = API["BOUND_SIGNAL"]
SHORT = message(2, 0, 0, 9)


def _bind(script: Script, thread: int, notification: int, error: str = "NONE") -> None:
    script.invoke(thread, "TCB_BIND", [], [notification], error)


def a_pending_signal_is_received_before_a_message(script: Script) -> None:
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    sender = script.thread()
    _bind(script, TCB, notification)
    script.syscall("YIELD")
    assert script.runs(sender)
    script.syscall("SEND", endpoint, SHORT, (1, 2))
    for call in ("RECEIVE", "POLL", "REPLY_RECEIVE"):
        script.syscall("SEND", script.mint(notification, 6))
        script.syscall("SEND", script.mint(notification, 9))
        script.syscall(call, endpoint)
        assert script.thread_of(TCB).regs[:2] == [SIGNAL | 15, 0]
    script.syscall("RECEIVE", endpoint)
    assert script.thread_of(TCB).regs[:2] == [0, SHORT]
    script.syscall("POLL", endpoint)
    assert script.thread_of(TCB).regs[0] == API["SYSCALL_FAILED"] | E["NOTHING"]


def a_signal_is_received_where_nobody_sends(script: Script) -> None:
    """Also by the thread itself from the notification, without the mark."""
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    script.thread()
    _bind(script, TCB, notification)
    for call in ("RECEIVE", "POLL"):
        script.syscall("SEND", script.mint(notification, 5))
        script.syscall(call, endpoint)
        assert script.thread_of(TCB).regs[:2] == [SIGNAL | 5, 0]
    script.syscall("SEND", script.mint(notification, 5))
    script.syscall("RECEIVE", notification)
    assert script.thread_of(TCB).regs[:2] == [5, 0]
    script.syscall("POLL", notification)
    assert script.runs(TCB)


def a_waiting_receiver_is_woken(script: Script) -> None:
    """The first of a queue, one between, the last, and the only one; the others stay in order."""
    for count, place in ((3, 0), (3, 1), (3, 2), (1, 0)):
        script.begin_again()
        endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
        signal = script.mint(notification, 3)
        threads = [script.thread() for _ in range(count)]
        _bind(script, threads[place], notification)
        script.syscall("YIELD")
        for _ in threads:
            script.syscall("RECEIVE", endpoint)
        assert script.runs(TCB)
        script.syscall("NB_SEND", signal)
        assert script.thread_of(threads[place]).regs[:2] == [SIGNAL | 3, 0]
        for _ in range(count):
            script.syscall("NB_SEND", endpoint, SHORT, (1, 2))
        assert script.thread_of(threads[place]).regs[0] == SIGNAL | 3


def the_only_receiver_is_woken_and_a_sender_comes(script: Script) -> None:
    """The endpoint is idle then: who sends waits."""
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    server = script.thread()
    _bind(script, server, notification)
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    script.syscall("NB_SEND", notification)
    script.syscall("CALL", endpoint, SHORT, (1, 2))
    assert script.runs(server)
    script.syscall("RECEIVE", endpoint)
    script.syscall("REPLY_RECEIVE", endpoint, SHORT, (3, 4))
    assert script.runs(TCB)


def a_signal_where_nothing_is_bound(script: Script) -> None:
    """The kernel window's first byte, where no thread is, may hold anything."""
    notification = script.make("NOTIFICATION")
    script.run.host.write(WINDOW + offset("tcb", "state"), State.RECEIVE)
    script.syscall("SEND", notification)
    script.syscall("RECEIVE", notification)
    assert script.runs(TCB)


def who_waits_for_the_signal_goes_first(script: Script) -> None:
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    signals = [script.mint(notification, badge) for badge in (1, 2, 4)]
    server, waiter = script.thread(), script.thread()
    _bind(script, server, notification)
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    script.syscall("RECEIVE", notification)
    for signal in signals:
        script.syscall("NB_SEND", signal)
    assert script.thread_of(waiter).regs[0] == 1
    assert script.thread_of(server).regs[0] == SIGNAL | 2
    assert script.run.kernel.notification(script.object_of(notification)).pending == 4


def a_bound_thread_waits_for_something_else(script: Script) -> None:
    """To send, for an answer, or for another signal: the signal is pending meanwhile."""
    for call in ("SEND", "CALL", "RECEIVE"):
        script.begin_again()
        endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
        other = script.make("NOTIFICATION") if call == "RECEIVE" else endpoint
        thread = script.thread()
        _bind(script, thread, notification)
        script.syscall("YIELD")
        assert script.runs(thread)
        script.syscall(call, other, SHORT, (1, 2))
        script.syscall("SEND", script.mint(notification, 2))
        assert script.runs(TCB)
        if call == "RECEIVE":
            script.syscall("SEND", other)
        else:
            script.syscall("RECEIVE", endpoint)
            script.syscall("REPLY", 0, SHORT, (3, 4))
        script.syscall("YIELD")
        assert script.runs(thread)
        script.syscall("RECEIVE", endpoint)
        assert script.thread_of(thread).regs[0] == SIGNAL | 2


def a_server_answers_and_finds_a_signal(script: Script) -> None:
    """The fastpath is prevented by the signal; without one, it is taken."""
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    signal = script.mint(notification, 2)
    server = script.thread()
    _bind(script, server, notification)
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    script.syscall("CALL", endpoint, SHORT, (1, 2))
    assert script.runs(server)
    script.syscall("SEND", signal)
    script.syscall("REPLY_RECEIVE", endpoint, SHORT, (3, 4))
    assert script.thread_of(server).regs[:2] == [SIGNAL | 2, 0]
    assert script.thread_of(TCB).is_running


def an_interrupt_reaches_the_bound_thread(script: Script) -> None:
    """One line, a client, and one receive for both."""
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    handler = script.slots()
    script.invoke(API["ROOT_IRQ_CONTROL"], "IRQ_GET", [5, handler, 32], [NODE])
    script.invoke(handler, "IRQ_SET_NOTIFICATION", [], [script.mint(notification, 1)])
    script.invoke(handler, "IRQ_ACKNOWLEDGE")
    server = script.thread()
    _bind(script, server, notification)
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.interrupt(5)
    assert script.runs(server)
    assert script.thread_of(server).regs[0] == SIGNAL | 1


def what_cannot_be_bound(script: Script) -> None:
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    receiver = script.thread()
    script.syscall("YIELD")
    assert script.runs(receiver)
    script.syscall("RECEIVE", endpoint)
    _bind(script, receiver, notification, "ILLEGAL_OPERATION")
    second, thread = script.make("NOTIFICATION"), script.make("TCB")
    script.invoke(thread, "TCB_BIND", error="TRUNCATED")
    _bind(script, thread, endpoint, "INVALID_CAPABILITY")
    _bind(script, thread, script.copy(notification, API["RIGHT_SEND"]), "NO_RIGHT")
    script.invoke(thread, "TCB_UNBIND", error="ILLEGAL_OPERATION")
    _bind(script, thread, script.copy(notification, API["RIGHT_RECEIVE"]))
    _bind(script, thread, second, "ILLEGAL_OPERATION")
    _bind(script, TCB, notification, "ILLEGAL_OPERATION")
    _bind(script, TCB, second)
    script.invoke(TCB, "TCB_UNBIND")
    script.invoke(thread, "TCB_UNBIND")
    script.syscall("SEND", notification)
    _bind(script, TCB, notification)
    script.syscall("RECEIVE", endpoint)
    assert script.runs(TCB)


def binding_ends_with_one_of_the_two(script: Script) -> None:
    """Deleted or recycled, and the other can be bound again."""
    first, second = script.make("NOTIFICATION"), script.make("NOTIFICATION")
    thread, other = script.make("TCB"), script.make("TCB")
    _bind(script, thread, first)
    script.delete(script.copy(first))
    _bind(script, thread, second, "ILLEGAL_OPERATION")
    script.recycle(first)
    _bind(script, thread, second)
    script.delete(second)
    _bind(script, thread, first)
    script.invoke(thread, "TCB_SUSPEND")
    script.recycle(thread)
    _bind(script, other, first, "ILLEGAL_OPERATION")
    script.delete(thread)
    _bind(script, other, first)
    node = script.make("CNODE", 4)
    script.invoke(NODE, "CNODE_MOVE", [other, 32, first, 32], [NODE], "SLOT_OCCUPIED")
    script.invoke(node, "CNODE_MOVE", [3, 4, other, 32], [NODE])
    script.delete(node)
    _bind(script, TCB, first)


def a_thread_deletes_itself_and_is_not_bound(script: Script) -> None:
    notification = script.make("NOTIFICATION")
    thread = script.thread()
    _bind(script, thread, notification)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.delete(thread)
    _bind(script, TCB, notification)


def bound_to_what_is_being_recycled(script: Script) -> None:
    """Its first waiter, woken, binds it while it is closed: no signal comes, and it stays bound."""
    if not has_field("endpoint", "abort_worker"):
        return
    notification, endpoint = script.make("NOTIFICATION"), script.make("ENDPOINT")
    threads = [script.thread(frame=script.make("FRAME_4K")) for _ in range(2)]
    script.syscall("YIELD")
    for _ in threads:
        script.syscall("RECEIVE", notification)
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    assert script.begin("CNODE_RECYCLE", notification, 1)
    assert script.now_runs(threads[0])
    script.meanwhile_invoke(threads[0], "TCB_BIND", [], [notification])
    script.meanwhile("NB_SEND", notification, force=False)
    script.meanwhile("RECEIVE", endpoint, force=False)
    assert not script.now_runs(threads[0])
    address = script.object_of(threads[0])
    bound = script.run.host.word(address + offset("tcb", "bound"))
    assert bound == script.object_of(notification)
    sent = message(2, 0, 0, API["LABEL_CNODE_RECYCLE"])
    while not script.now_runs(TCB):
        script.meanwhile("RECEIVE", endpoint, force=False)
    script.meanwhile("CALL", NODE, sent, [notification, 32], force=False)
