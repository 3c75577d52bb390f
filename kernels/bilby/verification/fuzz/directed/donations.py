# SPDX-License-Identifier: BSD-2-Clause
"""Time that is donated with a message, and every way in which it comes back.

Each sequence ends at once where time is no capability.
"""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import NODE, NOWHERE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, SLICE, message
from kernels.bilby.verification.spec.state import State

OWN = API["ROOT_CONTEXT"]
SHORT, LONG = message(2, 0, 0, 9), message(20, 0, 0, 9)
REFUSED = API["SYSCALL_FAILED"] | E["NO_CONTEXT"]


def _is_on(script: Script, thread: int, context: int) -> bool:
    return script.thread_of(thread).context is script.context_of(context)


def _donate(script: Script, name: str = "CALL", sent: int = SHORT) -> tuple[int, int]:
    """The first thread's time, to a server; gives it and its endpoint."""
    endpoint = script.make("ENDPOINT")
    server = script.passive(endpoint)
    script.syscall(name, endpoint, sent, (1, 2))
    assert script.runs(server)
    assert _is_on(script, server, OWN)
    return server, endpoint


def a_call_donates_and_the_answer_gives_back(script: Script) -> None:
    """On the short way and on the long ones, and again."""
    if not script.is_timed:
        return
    server, endpoint = _donate(script)
    for sent in (SHORT, LONG):
        for answer in (SHORT, LONG):
            assert script.thread_of(TCB).donated
            script.syscall("REPLY_RECEIVE", endpoint, answer)
            assert script.runs(TCB)
            assert _is_on(script, TCB, OWN)
            assert not script.thread_of(TCB).donated
            script.syscall("CALL", endpoint, sent)
            assert script.runs(server)
    script.syscall("REPLY")
    assert script.runs(TCB)
    assert script.thread_of(server).context is None


def a_caller_that_waits_donates_when_it_is_received(script: Script) -> None:
    """Answered, the first caller has its time again before the next donates."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    server = script.passive(endpoint)
    other, context = script.paid(300, 5000)
    script.syscall("CALL", endpoint, SHORT)
    script.syscall("YIELD")
    assert script.runs(other)
    script.pass_time(5)
    script.syscall("CALL", endpoint, LONG)
    assert script.runs(server)
    script.pass_time(7)
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    assert _is_on(script, server, context)
    assert _is_on(script, TCB, OWN)


def a_donee_that_receives_gives_back(script: Script) -> None:
    """The caller has its time, and waits for an answer that never comes."""
    if not script.is_timed:
        return
    for kind in ("ENDPOINT", "NOTIFICATION"):
        script.begin_again()
        other, waits_on = script.thread(), script.make(kind)
        server, _ = _donate(script)
        script.syscall("RECEIVE", waits_on)
        assert script.runs(other)
        assert _is_on(script, TCB, OWN)
        assert script.thread_of(TCB).state is State.REPLY
        assert script.thread_of(server).context is None


def who_takes_the_next_message_gives_back(script: Script) -> None:
    """The server runs on the next client's donation, by a call or by a send."""
    if not script.is_timed:
        return
    for name in ("CALL", "SEND"):
        script.begin_again()
        client, context = script.paid(SLICE, SLICE)
        server, endpoint = _donate(script)
        script.yield_until(client)
        script.syscall(name, endpoint, SHORT)
        assert script.runs(server)
        script.syscall("RECEIVE", endpoint)
        assert _is_on(script, server, context)
        assert _is_on(script, TCB, OWN)
        assert script.waits_for_context(client) == (name == "SEND")


def a_signal_that_is_there_is_no_wait(script: Script) -> None:
    """A donee keeps it."""
    if not script.is_timed:
        return
    notification = script.make("NOTIFICATION")
    server, _ = _donate(script)
    script.syscall("SEND", notification)
    script.syscall("RECEIVE", notification)
    assert script.runs(server)
    script.syscall("REPLY")
    assert script.runs(TCB)


def a_donee_calls_and_is_called(script: Script) -> None:
    """Through a chain of servers and back; it keeps that where a server has its own."""
    if not script.is_timed:
        return
    inner, active = script.make("ENDPOINT"), script.make("ENDPOINT")
    last = script.passive(inner)
    own = script.thread()
    script.syscall("YIELD")
    script.syscall("RECEIVE", active)
    server, _ = _donate(script)
    script.syscall("CALL", inner, SHORT)
    assert script.runs(last)
    assert _is_on(script, last, OWN)
    script.syscall("REPLY_RECEIVE", inner, LONG)
    assert script.runs(server)
    script.syscall("CALL", active, SHORT)
    assert script.runs(own)
    assert _is_on(script, server, OWN)
    script.syscall("REPLY", 0, SHORT)
    assert script.runs(own)
    script.syscall("YIELD")
    script.syscall("REPLY")
    assert _is_on(script, TCB, OWN)


def a_donee_is_stopped(script: Script) -> None:
    """Another thread stops it, in three ways: its donated context returns to its owner."""
    if not script.is_timed:
        return
    for label in ("TCB_SUSPEND", "CNODE_DELETE", "CNODE_RECYCLE"):
        script.begin_again()
        other = script.thread(frame=script.make("FRAME_4K"))
        server, _ = _donate(script)
        script.syscall("YIELD")
        assert script.runs(other)
        if label == "TCB_SUSPEND":
            script.invoke(server, label)
        else:
            script.invoke(NODE, label, [server, 32])
        assert _is_on(script, TCB, OWN)


def a_donee_faults(script: Script) -> None:
    """Without a handler it stops; one donates to a handler without time, and has it back."""
    if not script.is_timed:
        return
    script.thread()
    server, _ = _donate(script)
    script.fault("UNDEFINED")
    assert script.thread_of(server).state is State.INACTIVE
    assert _is_on(script, TCB, OWN)
    for label in (0, 1):
        script.begin_again()
        script.thread()
        faults, endpoint = script.make("ENDPOINT"), script.make("ENDPOINT")
        handler = script.passive(faults)
        server = script.passive(endpoint, handler=faults)
        script.syscall("CALL", endpoint, SHORT)
        script.fault("DATA_ABORT")
        assert script.runs(handler)
        assert _is_on(script, handler, OWN)
        script.syscall("REPLY_RECEIVE", faults, message(0, 0, 0, label))
        assert _is_on(script, server if label == 0 else TCB, OWN)


def a_faulting_donee_waits_for_its_handler(script: Script) -> None:
    """The donee keeps its context, until the handler's endpoint is deleted."""
    if not script.is_timed:
        return
    faults, endpoint = script.make("ENDPOINT"), script.make("ENDPOINT")
    other = script.thread(frame=script.make("FRAME_4K"))
    server = script.passive(endpoint, handler=faults)
    script.syscall("CALL", endpoint, SHORT)
    script.fault("UNDEFINED")
    assert script.runs(other)
    assert _is_on(script, server, OWN)
    script.delete(faults)
    assert _is_on(script, TCB, OWN)


def a_send_donates(script: Script) -> None:
    """The sender goes on when its time comes home, and not before."""
    if not script.is_timed:
        return
    for sent in (SHORT, LONG):
        script.begin_again()
        other = script.thread()
        _, endpoint = _donate(script, "SEND", sent)
        assert script.waits_for_context(TCB)
        assert not script.thread_of(TCB).donated
        script.syscall("YIELD")
        assert script.runs(other)
        script.syscall("YIELD")
        script.syscall("RECEIVE", endpoint)
        assert _is_on(script, TCB, OWN)
        assert script.runs(other)
        script.yield_until(TCB)


def a_sender_that_waits_donates_when_it_is_received(script: Script) -> None:
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    server = script.passive(endpoint)
    other, context = script.paid(300, 5000)
    script.syscall("CALL", endpoint, SHORT)
    script.syscall("YIELD")
    assert script.runs(other)
    script.syscall("SEND", endpoint, LONG)
    assert script.runs(server)
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    assert _is_on(script, server, context)
    assert script.waits_for_context(other)


def a_send_that_does_not_wait_donates_nothing(script: Script) -> None:
    """It is refused; so is any send but a call of a donee."""
    if not script.is_timed:
        return
    endpoint, nobody = script.make("ENDPOINT"), script.make("ENDPOINT")
    waiting = script.passive(endpoint)
    script.syscall("NB_SEND", endpoint, SHORT)
    assert script.thread_of(TCB).regs[:2] == [REFUSED, message(0, 0, 0, E["NO_CONTEXT"])]
    assert script.thread_of(waiting).state is State.RECEIVE
    server, _ = _donate(script)
    for name, to in (("SEND", endpoint), ("NB_SEND", endpoint), ("SEND", nobody)):
        script.syscall(name, to, SHORT)
        assert script.runs(server)
        assert script.thread_of(server).regs[0] == REFUSED
    script.syscall("NB_SEND", nobody, SHORT)
    assert script.thread_of(server).regs[0] == 0


def a_sender_that_waits_next_donates(script: Script) -> None:
    """A send to it donates too; its own donated context returns first."""
    if not script.is_timed:
        return
    endpoint, own = script.make("ENDPOINT"), script.make("ENDPOINT")
    other = script.thread()
    server = script.passive(endpoint)
    buffer = {API["BUFFER_CAPS"]: TCB}
    script.syscall("NB_SEND_RECEIVE", own, message(2, 1, 0, 9), (5, 6), buffer, second=endpoint)
    assert script.runs(server)
    assert script.thread_of(server).regs[1:4] == [SHORT, 5, 6]
    assert _is_on(script, server, OWN)
    script.syscall("YIELD")
    assert script.runs(other)
    script.syscall("SEND", own, SHORT)
    assert script.runs(TCB)
    assert script.thread_of(TCB).context is script.thread_of(other).home
    script.yield_until(server)
    script.syscall("RECEIVE", endpoint)
    assert script.context_of(OWN).thread is None
    script.yield_until(TCB)
    script.syscall("RECEIVE", own)
    assert script.runs(other)
    assert _is_on(script, TCB, OWN)


def a_signal_comes_while_the_time_is_donated(script: Script) -> None:
    """It ends the wait of a bound thread, which goes on when its time is at home."""
    if not script.is_timed:
        return
    endpoint, own, bound = (
        script.make("ENDPOINT"),
        script.make("ENDPOINT"),
        script.make("NOTIFICATION"),
    )
    script.invoke(TCB, "TCB_BIND", [], [bound])
    server = script.passive(endpoint)
    script.syscall("NB_SEND_RECEIVE", own, SHORT, second=endpoint)
    script.syscall("SEND", bound)
    assert script.waits_for_context(TCB)
    assert script.runs(server)
    script.syscall("RECEIVE", endpoint)
    assert script.runs(TCB)
    assert script.thread_of(TCB).regs[0] == API["BOUND_SIGNAL"]


def a_signal_waits_for_who_has_no_time(script: Script) -> None:
    """A passive server is not woken; it is when it is given a context of its own."""
    if not script.is_timed:
        return
    endpoint, bound = script.make("ENDPOINT"), script.make("NOTIFICATION")
    server = script.passive(endpoint, bound=bound)
    script.syscall("SEND", script.mint(bound, 6))
    assert script.thread_of(server).state is State.RECEIVE
    script.bind(script.context(), server)
    assert script.thread_of(server).regs[0] == API["BOUND_SIGNAL"] | 6
    script.syscall("YIELD")
    assert script.runs(server)


def signals_before_receives(script: Script) -> None:
    """A signal wakes whoever waits; if it cannot be sent, nothing is received."""
    if not script.is_timed:
        return
    notification, endpoint = script.make("NOTIFICATION"), script.make("ENDPOINT")
    deaf = script.copy(notification, API["RIGHT_RECEIVE"])
    other = script.thread()
    for second in (NOWHERE, TCB, 0, endpoint, deaf):
        script.syscall("SIGNAL_RECEIVE", endpoint, second=second)
        assert script.runs(TCB)
    mute = script.copy(endpoint, API["RIGHT_RECEIVE"])
    for second in (NOWHERE, TCB, 0, notification, mute):
        script.syscall("NB_SEND_RECEIVE", endpoint, SHORT, second=second)
        assert script.runs(TCB)
    script.syscall("YIELD")
    assert script.runs(other)
    script.syscall("RECEIVE", notification)
    script.syscall("SIGNAL_RECEIVE", endpoint, second=notification)
    assert script.runs(other)
    script.syscall("NB_SEND_RECEIVE", notification, SHORT, (3, 4), second=endpoint)
    assert script.runs(TCB)
    assert script.thread_of(TCB).regs[1:4] == [SHORT, 3, 4]
    script.syscall("SIGNAL_RECEIVE", NOWHERE, second=notification)
    assert script.thread_of(TCB).regs[0] == API["SYSCALL_FAILED"] | E["LOOKUP_FAILED"]


def a_caller_is_suspended(script: Script) -> None:
    """Its time stays with the server until that waits again."""
    if not script.is_timed:
        return
    other = script.thread()
    server, endpoint = _donate(script)
    script.syscall("YIELD")
    assert script.runs(other)
    script.invoke(TCB, "TCB_SUSPEND")
    assert _is_on(script, server, OWN)
    script.syscall("YIELD")
    script.syscall("REPLY")
    assert script.thread_of(server).regs[0] == API["SYSCALL_FAILED"] | E["INVALID_CAPABILITY"]
    script.syscall("RECEIVE", endpoint)
    assert _is_on(script, TCB, OWN)


def a_caller_dies(script: Script) -> None:
    """The server has its time until it waits; then nobody has, and it can be bound again."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    server = script.passive(endpoint)
    client, context = script.paid(SLICE, SLICE)
    script.syscall("YIELD")
    assert script.runs(client)
    script.syscall("CALL", endpoint, SHORT)
    script.syscall("YIELD")
    assert script.runs(TCB)
    script.delete(client)
    assert _is_on(script, server, context)
    assert script.context_of(context).home is None
    script.bind(context, script.make("TCB"), "ILLEGAL_OPERATION")
    script.invoke(context, "CONTEXT_UNBIND", error="ILLEGAL_OPERATION")
    script.syscall("YIELD")
    assert script.runs(server)
    script.syscall("RECEIVE", endpoint)
    script.bind(context, script.make("TCB"))


def a_context_is_unbound_while_it_is_donated(script: Script) -> None:
    """The caller is answered, and has the time once more, which is nobody's at home."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    server = script.passive(endpoint)
    client, context = script.paid(SLICE, SLICE)
    script.syscall("YIELD")
    script.syscall("CALL", endpoint, SHORT)
    script.syscall("YIELD")
    script.invoke(context, "CONTEXT_UNBIND")
    assert _is_on(script, server, context)
    script.syscall("YIELD")
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    assert script.runs(client)
    assert _is_on(script, client, context)
    script.syscall("RECEIVE", endpoint)
    assert script.context_of(context).thread is None


def a_context_is_deleted_while_it_is_donated(script: Script) -> None:
    """The server stops, until another donates; the caller stays without time."""
    if not script.is_timed:
        return
    endpoint = script.make("ENDPOINT")
    server = script.passive(endpoint)
    client, context = script.paid(SLICE, SLICE)
    script.syscall("YIELD")
    script.syscall("CALL", endpoint, SHORT)
    script.syscall("YIELD")
    script.delete(context)
    assert script.waits_for_context(server)
    assert script.thread_of(client).home is None
    script.bind(script.context(), server)
    script.syscall("YIELD")
    assert script.runs(server)
    script.syscall("REPLY", 0, SHORT)
    assert script.waits_for_context(client)


def the_running_context_is_deleted(script: Script) -> None:
    """Of the first thread itself, and while a server is on it."""
    if not script.is_timed:
        return
    other = script.thread()
    script.delete(OWN)
    assert script.runs(other)
    script.begin_again()
    other = script.thread()
    _donate(script)
    script.invoke(NODE, "CNODE_DELETE", [OWN, 32])
    assert script.runs(other)


def a_context_of_the_own_is_bound_while_on_a_donation(script: Script) -> None:
    """It waits until the donation is over."""
    if not script.is_timed:
        return
    other = script.thread(frame=script.make("FRAME_4K"))
    context = script.context()
    server, _ = _donate(script)
    script.syscall("YIELD")
    assert script.runs(other)
    script.bind(context, server)
    assert script.context_of(context).thread is None
    script.syscall("YIELD")
    script.syscall("REPLY")
    assert script.runs(server)
    assert _is_on(script, server, context)
    assert _is_on(script, TCB, OWN)


def a_context_that_waits_for_the_end_of_a_donation_is_unbound(script: Script) -> None:
    """Its thread goes on: it is on another one."""
    if not script.is_timed:
        return
    other = script.thread(frame=script.make("FRAME_4K"))
    context = script.context()
    server, _ = _donate(script)
    script.syscall("YIELD")
    assert script.runs(other)
    script.bind(context, server)
    script.invoke(context, "CONTEXT_UNBIND")
    script.syscall("YIELD")
    assert script.runs(server)
    assert _is_on(script, server, OWN)


def who_donated_on_has_its_own_before_the_answer(script: Script) -> None:
    """The answer gives nothing back: the server stays on the context of the first caller."""
    if not script.is_timed:
        return
    for sent in (SHORT, LONG):
        script.begin_again()
        last = script.make("ENDPOINT")
        server = script.passive(last, frame=script.make("FRAME_4K"))
        context = script.context()
        middle, _ = _donate(script)
        script.syscall("CALL", last, sent)
        assert script.runs(server)
        script.bind(context, middle)
        assert _is_on(script, middle, context)
        script.syscall("REPLY_RECEIVE", last, sent)
        assert _is_on(script, middle, context)


def answers_are_kept_for_later(script: Script) -> None:
    """A server saves its caller, takes another, and answers both in the other order."""
    if not script.is_timed:
        return
    endpoint, first, second = script.make("ENDPOINT"), script.slots(), script.slots()
    server = script.passive(endpoint, frame=script.make("FRAME_4K"))
    client, context = script.paid(300, 5000)
    script.syscall("CALL", endpoint, SHORT)
    script.invoke(server, "TCB_SAVE_CALLER", [first, 32], [TCB], "INVALID_CAPABILITY")
    script.invoke(server, "TCB_SAVE_CALLER", [TCB, 32], [NODE], "SLOT_OCCUPIED")
    script.invoke(server, "TCB_SAVE_CALLER", [first, 32], [NODE])
    script.invoke(server, "TCB_SAVE_CALLER", [second, 32], [NODE], "INVALID_CAPABILITY")
    script.syscall("RECEIVE", endpoint)
    assert script.runs(client)
    script.syscall("CALL", endpoint, SHORT)
    assert script.runs(server)
    assert _is_on(script, server, context)
    script.invoke(NODE, "CNODE_SWAP_CALLER", [TCB, 32], error="INVALID_CAPABILITY")
    script.invoke(NODE, "CNODE_SWAP_CALLER", [first, 32])
    script.syscall("REPLY", 0, SHORT)
    assert _is_on(script, server, context)
    assert script.thread_of(TCB).is_running
    script.invoke(NODE, "CNODE_SWAP_CALLER", [first, 32])
    script.invoke(NODE, "CNODE_SWAP_CALLER", [second, 32])
    script.invoke(NODE, "CNODE_SWAP_CALLER", [first, 32])
    script.invoke(NODE, "CNODE_SWAP_CALLER", [second, 32])
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    assert _is_on(script, client, context)
    script.syscall("YIELD")
    script.invoke(NODE, "CNODE_SWAP_CALLER", [NOWHERE, 32], error="LOOKUP_FAILED")
    script.invoke(NODE, "CNODE_SWAP_CALLER", [first, 33], error="RANGE")
    script.invoke(NODE, "CNODE_SWAP_CALLER", [first], error="TRUNCATED")


def a_saved_answer_is_deleted(script: Script) -> None:
    """The caller waits for good; its time is at home when the server waits."""
    if not script.is_timed:
        return
    endpoint, kept = script.make("ENDPOINT"), script.slots()
    other = script.thread()
    server = script.passive(endpoint, frame=script.make("FRAME_4K"))
    script.syscall("CALL", endpoint, SHORT)
    script.invoke(server, "TCB_SAVE_CALLER", [kept, 32], [NODE])
    script.delete(kept)
    script.syscall("RECEIVE", endpoint)
    assert script.runs(other)
    assert _is_on(script, TCB, OWN)
    script.invoke(TCB, "TCB_SUSPEND")


def who_has_its_own_donates_what_was_donated(script: Script) -> None:
    """It has its own from then on; the answer does not return the context that goes home."""
    if not script.is_timed:
        return
    inner = script.make("ENDPOINT")
    last = script.passive(inner)
    other = script.thread(frame=script.make("FRAME_4K"))
    context = script.context()
    server, _ = _donate(script)
    script.yield_until(other)
    script.bind(context, server)
    script.yield_until(server)
    script.syscall("CALL", inner, SHORT)
    assert script.runs(last)
    assert _is_on(script, last, OWN)
    assert _is_on(script, server, context)
    script.syscall("REPLY", 0, SHORT)
    assert script.runs(last)
    assert _is_on(script, last, OWN)
    script.syscall("RECEIVE", inner)
    assert _is_on(script, TCB, OWN)
    script.yield_until(server)
    script.syscall("REPLY")
    script.yield_until(TCB)


def _answers_who_lost_its_time(script: Script) -> tuple[int, int, int, int]:
    """A server on the first thread's time, about to answer a client that donated none and has none.

    Gives both, the endpoint, and where the first thread's reply is kept meanwhile.
    """
    endpoint, kept = script.make("ENDPOINT"), script.slots()
    server, own = script.paid(SLICE, SLICE, frame=script.make("FRAME_4K"))
    client, context = script.paid(SLICE, SLICE)
    script.yield_until(server)
    script.syscall("RECEIVE", endpoint)
    script.yield_until(client)
    script.syscall("CALL", endpoint, SHORT)
    script.yield_until(server)
    assert not script.thread_of(client).donated
    script.invoke(server, "TCB_SAVE_CALLER", [kept, 32], [NODE])
    script.syscall("RECEIVE", endpoint)
    script.yield_until(TCB)
    for given in (own, context):
        script.invoke(given, "CONTEXT_UNBIND")
    script.syscall("CALL", endpoint, SHORT)
    assert script.runs(server)
    script.invoke(NODE, "CNODE_SWAP_CALLER", [kept, 32])
    return server, client, endpoint, kept


def an_answer_donates_nothing(script: Script) -> None:
    """Who did not donate gets no time with it, though it has none any more."""
    if not script.is_timed:
        return
    server, client, endpoint, kept = _answers_who_lost_its_time(script)
    script.syscall("REPLY", 0, SHORT)
    assert script.runs(server)
    assert _is_on(script, server, OWN)
    assert script.waits_for_context(client)
    script.invoke(NODE, "CNODE_SWAP_CALLER", [kept, 32])
    script.syscall("REPLY", 0, SHORT)
    assert script.runs(TCB)
    script.begin_again()
    server, client, endpoint, kept = _answers_who_lost_its_time(script)
    script.syscall("REPLY_RECEIVE", endpoint, SHORT)
    assert script.waits_for_context(client)
    assert _is_on(script, TCB, OWN)
