# SPDX-License-Identifier: BSD-2-Clause
"""Nobody is runnable without a context: signals that donate one or wait, and time that is lost.

Each sequence ends at once where time is no capability.
"""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import NODE, TCB, Script
from kernels.bilby.verification.spec.layout import API, SLICE, message
from kernels.bilby.verification.spec.state import State

OWN = API["ROOT_CONTEXT"]
SIGNAL = API["BOUND_SIGNAL"]
SHORT, LONG = message(2, 0, 0, 9), message(20, 0, 0, 9)


def _is_on(script: Script, thread: int, context: int) -> bool:
    return script.thread_of(thread).context is script.context_of(context)


def _server(script: Script, *, donates: bool) -> tuple[int, int, int, int]:
    """A server without time, its endpoint, its bound notification, and its context, or 0."""
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    server = script.passive(endpoint, bound=notification)
    context = 0
    if donates:
        context = script.context()
        script.bind(context, notification)
    return server, endpoint, notification, context


def a_server_that_was_signalled_waits_for_the_next_call(script: Script) -> None:
    """It answers, and then has no time to take the signal: that waits until it has some."""
    if not script.is_timed:
        return
    for sent in (SHORT, LONG):
        script.begin_again()
        server, endpoint, notification, _ = _server(script, donates=False)
        signal = script.mint(notification, 2)
        for _ in range(2):
            script.syscall("CALL", endpoint, sent)
            assert script.runs(server)
            script.syscall("SEND", signal)
            script.syscall("REPLY_RECEIVE", endpoint, sent)
            assert script.runs(TCB)
            assert script.thread_of(server).state is State.RECEIVE
        script.bind(script.context(), server)
        script.syscall("YIELD")
        assert script.runs(server)
        assert script.thread_of(server).regs[0] == SIGNAL | 2


def a_server_takes_the_signal_on_the_time_of_the_notification(script: Script) -> None:
    """When it has answered, or when it waits; then that is back, for the next one."""
    if not script.is_timed:
        return
    server, endpoint, notification, context = _server(script, donates=True)
    signal = script.mint(notification, 2)
    script.syscall("CALL", endpoint, SHORT)
    script.syscall("SEND", signal)
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    assert script.runs(server)
    assert _is_on(script, server, context)
    assert script.thread_of(server).regs[:2] == [SIGNAL | 2, 0]
    script.syscall("RECEIVE", endpoint)
    assert script.runs(TCB)
    assert _is_on(script, TCB, OWN)
    assert script.context_of(context).thread is None
    for _ in range(2):
        script.syscall("SEND", signal)
        assert _is_on(script, server, context)
        script.syscall("YIELD")
        assert script.runs(server)
        script.syscall("SEND", signal)
        script.syscall("RECEIVE", endpoint)
        assert script.runs(server)  # it keeps the time for the signal that is there
        script.syscall("RECEIVE", endpoint)
        assert script.runs(TCB)
    script.syscall("CALL", endpoint, SHORT)
    assert script.runs(server)
    assert _is_on(script, server, OWN)


def who_waits_for_the_signal_is_donated_time(script: Script) -> None:
    """On the notification itself.  While it works the next signal waits."""
    if not script.is_timed:
        return
    notification = script.make("NOTIFICATION")
    waiter = script.passive(notification)
    context = script.context(300, 3000)
    script.bind(context, notification)
    for _ in range(2):
        script.syscall("SEND", notification)
        assert _is_on(script, waiter, context)
        script.yield_until(waiter)
        script.pass_time(5)
        script.syscall("SEND", notification)
        script.syscall("RECEIVE", notification)
        assert script.runs(waiter)
        script.syscall("RECEIVE", notification)
        assert script.runs(TCB)
    script.syscall("SEND", notification)
    script.yield_until(waiter)
    script.pass_time(400)
    assert script.runs(TCB)
    assert script.waits_for_time(context)
    script.invoke(waiter, "TCB_SUSPEND")
    assert script.context_of(context).thread is None


def a_signal_without_time_is_no_time(script: Script) -> None:
    """A server whose context was deleted waits for another one, not for a signal."""
    if not script.is_timed:
        return
    server, endpoint, notification, _ = _server(script, donates=False)
    client, context = script.paid(300, 3000)
    script.yield_until(client)
    script.syscall("CALL", endpoint, SHORT)
    assert _is_on(script, server, context)
    script.yield_until(TCB)
    script.delete(context)
    assert script.waits_for_context(server)
    script.syscall("SEND", notification)
    assert script.waits_for_context(server)


def whose_time_is_away_takes_the_signal_afterwards(script: Script) -> None:
    """Another thread is the donee; the bound one goes on when that waits or is stopped."""
    if not script.is_timed:
        return
    for ends in ("wait", "stop"):
        script.begin_again()
        server, _, notification, context = _server(script, donates=True)
        waiter, other = script.passive(notification), script.make("NOTIFICATION")
        script.syscall("SEND", notification)
        assert _is_on(script, waiter, context)
        script.syscall("SEND", script.mint(notification, 4))
        assert script.waits_for_context(server)
        if ends == "stop":
            script.invoke(waiter, "TCB_SUSPEND")
        else:
            script.yield_until(waiter)
            script.syscall("RECEIVE", other)
        assert _is_on(script, server, context)
        script.yield_until(server)
        assert script.thread_of(server).regs[0] == SIGNAL | 4


def who_waits_for_a_signal_without_time(script: Script) -> None:
    """It has the signal, and goes on when it has time."""
    if not script.is_timed:
        return
    notification = script.make("NOTIFICATION")
    waiter = script.passive(notification)
    script.syscall("SEND", script.mint(notification, 4))
    assert script.waits_for_context(waiter)
    script.bind(script.context(), waiter)
    script.yield_until(waiter)
    assert script.thread_of(waiter).regs[0] == 4


def what_cannot_donate(script: Script) -> None:
    """One context for one notification, and neither for a thread besides."""
    if not script.is_timed:
        return
    first, second = script.make("NOTIFICATION"), script.make("NOTIFICATION")
    context, other, thread = script.context(), script.context(), script.make("TCB")
    script.bind(context, script.make("ENDPOINT"), "INVALID_CAPABILITY")
    script.bind(context, script.copy(first, API["RIGHT_SEND"]), "NO_RIGHT")
    script.bind(context, script.copy(first, API["RIGHT_RECEIVE"]))
    for to in (second, thread):
        script.bind(context, to, "ILLEGAL_OPERATION")
    script.bind(other, first, "ILLEGAL_OPERATION")
    script.invoke(context, "CONTEXT_UNBIND")
    script.invoke(context, "CONTEXT_UNBIND", error="ILLEGAL_OPERATION")
    script.bind(other, first)
    script.bind(context, thread)
    script.bind(script.make("CONTEXT", region=2), second, "ILLEGAL_OPERATION")


def donation_ends_with_one_of_the_two(script: Script) -> None:
    """Also while the time is donated: whoever has it keeps it, and then it is nobody's."""
    if not script.is_timed:
        return
    for end in ("UNBIND", "recycle", "delete", "context"):
        for donated in (False, True):
            script.begin_again()
            server, endpoint, notification, context = _server(script, donates=True)
            if donated:
                script.syscall("SEND", notification)
                assert _is_on(script, server, context)
            if end == "UNBIND":
                script.invoke(context, "CONTEXT_UNBIND")
            elif end == "recycle":
                script.recycle(notification)
            else:
                script.delete(context if end == "context" else notification)
            if end == "context":
                assert script.waits_for_context(server) == donated
            elif donated:
                assert _is_on(script, server, context)
                script.yield_until(server)
                script.syscall("RECEIVE", endpoint)
            if end not in ("delete", "context"):
                script.bind(context, notification)
            elif end == "delete":
                script.bind(context, script.make("TCB"))
            else:
                script.bind(script.context(), notification)


def a_caller_that_loses_its_time_calls_again(script: Script) -> None:
    """While it waits to send: nothing could be donated to who receives, and that would stop."""
    if not script.is_timed:
        return
    for end, name in (("UNBIND", "CALL"), ("delete", "CALL"), ("UNBIND", "SEND")):
        script.begin_again()
        endpoint = script.make("ENDPOINT")
        client, context = script.paid(SLICE, SLICE)
        third, _ = script.paid(SLICE, SLICE, frame=script.make("FRAME_4K"))
        server = script.passive(endpoint)
        script.syscall("CALL", endpoint, SHORT)
        assert script.runs(server)
        script.syscall("YIELD")
        assert script.runs(client)
        script.syscall(name, endpoint, SHORT, (1, 2))
        assert script.runs(third)
        if end == "UNBIND":
            script.invoke(context, "CONTEXT_UNBIND")
        else:
            script.delete(context)
            context = script.context()
        assert script.waits_for_context(client)
        script.syscall("CALL", endpoint, LONG)
        assert script.runs(server)
        script.syscall("REPLY_RECEIVE", endpoint, SHORT)
        assert script.thread_of(server).context is script.thread_of(third).home
        script.yield_until(server)
        script.syscall("REPLY_RECEIVE", endpoint, SHORT)
        assert script.thread_of(server).state is State.RECEIVE
        if not script.runs(TCB):
            script.yield_until(TCB)
        script.bind(context, client)
        script.yield_until(client)


def who_faults_and_loses_its_time_faults_again(script: Script) -> None:
    """Its handler does not have the message yet."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    thread, context = script.make("TCB"), script.context()
    script.configure(thread, handler=endpoint)
    script.bind(context, thread)
    script.start(thread, 255)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.fault("DATA_ABORT")
    assert script.thread_of(thread).state is State.SEND
    script.invoke(context, "CONTEXT_UNBIND")
    assert script.waits_for_context(thread)
    assert not script.thread_of(thread).fault
    script.bind(context, thread)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.fault("DATA_ABORT")
    script.syscall("RECEIVE", endpoint)
    assert script.thread_of(TCB).regs[1] >> 12 == API["FAULT_DATA_ABORT"]
    script.invoke(NODE, "CNODE_SWAP_CALLER", [script.slots(), 32])


def _waits_for_its_notification(script: Script) -> tuple[int, int, int, int]:
    """A server that has a signal while another has the time, which is of its notification.

    Gives the server, the notification, the context, and who has that.
    """
    server, _, notification, context = _server(script, donates=True)
    waiter = script.passive(notification)
    script.syscall("SEND", notification)
    assert _is_on(script, waiter, context)
    script.syscall("SEND", notification)
    assert script.waits_for_context(server)
    return server, notification, context, waiter


def other_time_comes_to_the_notification(script: Script) -> None:
    """The bound thread that waits for some goes on; its own comes first to one that has both."""
    if not script.is_timed:
        return
    server, notification, context, waiter = _waits_for_its_notification(script)
    script.invoke(context, "CONTEXT_UNBIND")
    assert script.waits_for_context(server)
    other = script.context()
    script.bind(other, notification)
    assert _is_on(script, server, other)
    assert _is_on(script, waiter, context)
    script.yield_until(server)
    script.invoke(other, "CONTEXT_UNBIND")
    assert script.runs(server)  # it keeps the time


def a_signal_comes_to_a_thread_that_waits_for_a_context(script: Script) -> None:
    """It has never had one, or lost its own: its notification's, and then it takes the signal."""
    if not script.is_timed:
        return
    for end in ("never", "UNBIND"):
        script.begin_again()
        notification, lent = script.make("NOTIFICATION"), script.context()
        endpoint, thread = script.make("ENDPOINT"), script.make("TCB")
        script.configure(thread)
        script.invoke(thread, "TCB_BIND", [], [notification])
        script.bind(lent, notification)
        script.invoke(thread, "TCB_SET_PRIORITY", [255])
        if end == "UNBIND":
            context = script.context()
            script.bind(context, thread)
        script.invoke(thread, "TCB_RESUME")
        if end == "UNBIND":
            script.invoke(context, "CONTEXT_UNBIND")
        assert script.waits_for_context(thread)
        script.syscall("SEND", script.mint(notification, 2))
        assert _is_on(script, thread, lent)
        script.syscall("SEND", script.mint(notification, 4))
        script.yield_until(thread)
        script.syscall("RECEIVE", endpoint)
        assert script.runs(thread)
        assert script.thread_of(thread).regs[0] == SIGNAL | 6
        script.syscall("RECEIVE", endpoint)
        assert script.context_of(lent).thread is None


def an_answer_when_the_time_is_back_at_the_notification(script: Script) -> None:
    """Whoever answers the donor, it goes on with a signal that comes before or after."""
    if not script.is_timed:
        return
    for before in (True, False):
        script.begin_again()
        inner, kept = script.make("ENDPOINT"), script.slots()
        helper = script.passive(inner)
        server, _, notification, context = _server(script, donates=True)
        script.syscall("SEND", notification)
        script.yield_until(server)
        script.syscall("CALL", inner, SHORT)
        assert _is_on(script, helper, context)
        script.yield_until(TCB)
        script.invoke(helper, "TCB_SUSPEND")
        assert script.context_of(context).thread is None
        assert script.thread_of(server).state is State.REPLY
        if before:
            script.syscall("SEND", notification)
            assert script.context_of(context).thread is None  # it waits for the answer
        script.invoke(helper, "TCB_SAVE_CALLER", [kept, 32], [NODE])
        script.invoke(NODE, "CNODE_SWAP_CALLER", [kept, 32])
        script.syscall("REPLY")
        if not before:
            assert script.waits_for_context(server)
            script.syscall("SEND", notification)
        assert _is_on(script, server, context)
        script.yield_until(server)


def a_signal_comes_before_its_thread_waits_for_a_context(script: Script) -> None:
    """It answers, or loses its own context: the signal that is pending donates it time at once."""
    if not script.is_timed:
        return
    for sent in (SHORT, LONG):
        script.begin_again()
        server, endpoint, notification, context = _server(script, donates=True)
        signal = script.mint(notification, 2)
        script.syscall("CALL", endpoint, sent)
        assert script.runs(server)
        script.syscall("SEND", signal)
        script.syscall("REPLY", 0, sent)
        assert _is_on(script, server, context)
        script.yield_until(server)
        script.syscall("RECEIVE", endpoint)
        assert script.runs(server)
        assert script.thread_of(server).regs[0] == SIGNAL | 2
        script.syscall("RECEIVE", endpoint)
        assert script.runs(TCB)
        assert script.context_of(context).thread is None


def who_has_a_signal_loses_its_context(script: Script) -> None:
    """Its own is unbound or deleted, while it runs or waits to send: its notification's is next."""
    if not script.is_timed:
        return
    for end, sends in (("UNBIND", False), ("delete", False), ("UNBIND", True), ("delete", True)):
        script.begin_again()
        endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
        lent = script.context()
        thread, own = script.paid(SLICE, SLICE)
        script.yield_until(thread)
        if sends:
            script.syscall("SEND", endpoint, SHORT)
        script.yield_until(TCB)
        script.invoke(thread, "TCB_BIND", [], [notification])
        script.bind(lent, notification)
        script.syscall("SEND", script.mint(notification, 2))
        assert script.context_of(lent).thread is None
        if end == "UNBIND":
            script.invoke(own, "CONTEXT_UNBIND")
        else:
            script.delete(own)
        assert _is_on(script, thread, lent)
        assert script.thread_of(thread).state is State.RUNNING
        script.yield_until(thread)


def a_thread_that_waits_for_a_context_is_bound(script: Script) -> None:
    """To a notification that has one: the order in which the three are bound does not matter."""
    if not script.is_timed:
        return
    for signals in (False, True):
        script.begin_again()
        notification, context = script.make("NOTIFICATION"), script.context()
        thread = script.make("TCB")
        script.configure(thread)
        script.invoke(thread, "TCB_RESUME")
        script.bind(context, notification)
        if signals:
            script.syscall("SEND", notification)
        assert script.waits_for_context(thread)
        script.invoke(thread, "TCB_BIND", [], [notification])
        assert _is_on(script, thread, context)


def who_loses_a_donated_context_goes_on_with_its_own(script: Script) -> None:
    """That was on nobody, and comes before the one of its notification."""
    if not script.is_timed:
        return
    server, endpoint, notification, lent = _server(script, donates=True)
    client, donated = script.paid(SLICE, SLICE)
    script.yield_until(client)
    script.syscall("CALL", endpoint, LONG)
    assert _is_on(script, server, donated)
    script.yield_until(TCB)
    own = script.context()
    script.bind(own, server)
    script.syscall("SEND", notification)
    assert _is_on(script, server, donated)
    script.delete(donated)
    assert _is_on(script, server, own)
    assert script.context_of(lent).thread is None
    script.yield_until(server)


def who_loses_its_context_in_a_call_is_preempted(script: Script) -> None:
    """A revocation deletes its context first: a signal donates another, or it waits for one."""
    if not script.is_timed:
        return
    for signals in (True, False):
        script.begin_again()
        region, notification = script.make("UNTYPED", 13), script.make("NOTIFICATION")
        for _ in range(3):
            script.make("ENDPOINT", region=region)
        own, lent, thread = (
            script.make("CONTEXT", region=region),
            script.context(),
            script.make("TCB"),
        )
        script.allot(own, SLICE, SLICE)
        script.configure(thread)
        script.bind(own, thread)
        script.start(thread, 255)
        script.invoke(thread, "TCB_BIND", [], [notification])
        script.bind(lent, notification)
        if signals:
            script.syscall("SEND", notification)
        script.yield_until(thread)
        script.revoke(region)
        assert script.runs(thread) == signals
        assert script.waits_for_context(thread) == (not signals)
        assert _is_on(script, thread, lent) == signals


def a_signal_takes_no_context_from_who_has_it(script: Script) -> None:
    """The bound thread waits for the context of its notification, and another signal comes."""
    if not script.is_timed:
        return
    server, notification, context, waiter = _waits_for_its_notification(script)
    other = script.make("NOTIFICATION")
    script.syscall("SEND", notification)
    assert _is_on(script, waiter, context)
    assert script.waits_for_context(server)
    script.yield_until(waiter)
    script.syscall("RECEIVE", other)
    assert _is_on(script, server, context)
