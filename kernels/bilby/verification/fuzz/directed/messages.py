# SPDX-License-Identifier: BSD-2-Clause
"""Messages: lengths, capabilities that travel, answers, the fastpath, faults."""

from __future__ import annotations

from itertools import product

from kernels.bilby.verification.fuzz.script import DIRECTORY, LINE, NODE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, message

WORDS, CAPS = API["BUFFER_WORDS"], API["BUFFER_CAPS"]
SEND_ONLY, RECEIVE_ONLY, NO_GRANT = 1, 2, 3


def _receiving(script: Script, through: int, frame: int = 0, priority: int = 255) -> int:
    """A thread that waits at an endpoint; the first thread runs."""
    thread = script.thread(frame=frame)
    script.syscall("YIELD")
    script.syscall("RECEIVE", through)
    script.invoke(thread, "TCB_SET_PRIORITY", [priority])
    return thread


def _receive_slot(script: Script) -> dict[int, int]:
    return {
        API["BUFFER_RECEIVE_ROOT"]: NODE,
        API["BUFFER_RECEIVE_INDEX"]: script.slots(),
        API["BUFFER_RECEIVE_DEPTH"]: 32,
    }


def messages_of_every_length(script: Script) -> None:
    endpoint, frame = script.make("ENDPOINT"), script.make("FRAME_4K")
    _receiving(script, endpoint, frame)
    words = {i: 0x1000 + i for i in range(128)}
    for length in (*range(1, 15), 119, 120, 121, 127):
        script.syscall("SEND", endpoint, message(length, 0, 0, 7), (1, 2, 3, 4), words)
        script.syscall("YIELD")
        words = {i: word + 0x1000 for i, word in words.items()}
        script.syscall("RECEIVE", endpoint)
        assert script.runs(TCB)


def capabilities_travel_with_the_right_to_grant(script: Script) -> None:
    endpoint, frame = script.make("ENDPOINT"), script.make("FRAME_4K")
    badged = script.mint(endpoint, 9)
    through = [script.copy(endpoint, NO_GRANT), endpoint]
    script.thread(frame=frame)
    for sender in through:
        for sent in ([TCB], [badged, TCB, frame], [frame, TCB]):
            script.syscall("YIELD")
            script.syscall("RECEIVE", endpoint, buffer=_receive_slot(script))
            assert script.runs(TCB)
            buffer = {CAPS + i: slot for i, slot in enumerate(sent)}
            script.syscall("SEND", sender, message(1, len(sent), 0, 7), buffer=buffer)


def capabilities_are_sent_to_nowhere(script: Script) -> None:
    """No receive slot: the addresses behind it are looked up once all the same."""
    endpoint, frame = script.make("ENDPOINT"), script.make("FRAME_4K")
    badged = script.mint(endpoint, 9)
    script.thread(frame=frame)
    for nowhere in ({}, _receive_slot(script) | {API["BUFFER_RECEIVE_DEPTH"]: 31}):
        for sent in ([badged, TCB], [badged, 1 << 31]):
            script.syscall("YIELD")
            script.syscall("RECEIVE", endpoint, buffer=nowhere)
            assert script.runs(TCB)
            buffer = {CAPS + i: slot for i, slot in enumerate(sent)}
            script.syscall("SEND", endpoint, message(1, len(sent), 0, 7), buffer=buffer)


def _answer(script: Script, receive_rights: int, call_rights: int) -> None:
    endpoint, frame = script.make("ENDPOINT"), script.make("FRAME_4K")
    called, received = script.copy(endpoint, call_rights), script.copy(endpoint, receive_rights)
    script.thread(frame=frame)
    script.syscall("CALL", called, message(5, 0, 0, 0), buffer=_receive_slot(script))
    script.syscall("RECEIVE", received)
    script.syscall("REPLY", 0, message(0, 1, 0, 0), buffer={CAPS: frame})
    script.syscall("REPLY", 0, message(0, 0, 0, 0))
    script.syscall("YIELD")
    assert script.runs(TCB)


def an_answer_carries_what_its_receiver_may_grant(script: Script) -> None:
    """Whether the answer may carry capabilities is the server's right, not the caller's."""
    _answer(script, 7, NO_GRANT)


def an_answer_carries_nothing_that_its_receiver_may_not_grant(script: Script) -> None:
    _answer(script, NO_GRANT, 7)


def the_fastpath_needs_the_right_to_send(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    receive_only = script.copy(endpoint, RECEIVE_ONLY)
    _receiving(script, endpoint)
    script.syscall("CALL", receive_only, message(1, 0, 0, 0))
    assert script.runs(TCB)


def the_fastpath_needs_the_right_to_receive(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    send_only = script.copy(endpoint, SEND_ONLY)
    server = _receiving(script, endpoint)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    assert script.runs(server)
    script.syscall("REPLY_RECEIVE", send_only, message(1, 0, 0, 0))


def the_fastpath_compares_the_guard(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    _receiving(script, endpoint)
    script.syscall("CALL", 1 << 20 | endpoint, message(1, 0, 0, 0))
    assert script.runs(TCB)


def the_fastpath_runs_nobody_less_urgent(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    _receiving(script, endpoint, priority=100)
    between = script.thread(200)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    assert script.runs(between)


def the_answering_fastpath_runs_nobody_less_urgent(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    server = _receiving(script, endpoint)
    between = script.thread(200)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    assert script.runs(server)
    script.syscall("REPLY_RECEIVE", endpoint, message(1, 0, 0, 0))
    assert script.runs(between)


def faults_need_a_handler_that_can_be_sent_to(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    for handler in (script.copy(endpoint, RECEIVE_ONLY), endpoint):
        script.thread(handler=handler)
        script.syscall("YIELD")
        script.fault("DATA_ABORT", 0x1234, 7)
        assert script.runs(TCB)
    script.syscall("RECEIVE", endpoint)
    script.syscall("REPLY", 0, message(3, 0, 0, 0), (0x2001, 0x3000, 0x20, 0))


def message_buffers_are_writable_memory(script: Script) -> None:
    thread, frame = script.make("TCB"), script.make("FRAME_4K")
    space = API["ROOT_PAGE_DIRECTORY"]
    for buffer, offset, error in (
        (API["ROOT_UART_FRAME"], 0, "ILLEGAL_OPERATION"),
        (script.copy(frame, 1), 0, "NO_RIGHT"),
        (frame, 4096, "RANGE"),
        (frame, 256, "ALIGNMENT"),
        (frame, 3584, "NONE"),
    ):
        script.invoke(thread, "TCB_CONFIGURE", [0, offset], [NODE, space, buffer], error)
    script.revoke(frame)


def a_caller_that_is_suspended_cannot_be_answered(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    server = _receiving(script, endpoint)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    assert script.runs(server)
    script.invoke(TCB, "TCB_SUSPEND")
    script.syscall("REPLY", 0, message(0, 0, 0, 0))


def a_server_that_is_called_becomes_less_urgent(script: Script) -> None:
    """It runs since it was called, and now that it has lowered its priority another one runs."""
    endpoint = script.make("ENDPOINT")
    server = script.thread()
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    between = script.thread(priority=200)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    assert script.runs(server)
    script.invoke(server, "TCB_SET_PRIORITY", [100])
    assert script.runs(between)


def a_server_that_is_called_stood_behind_others(script: Script) -> None:
    """It blocked in favour of its client, and the call comes from one who was more urgent."""
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    server, client = script.thread(priority=200), script.thread(priority=200)
    script.syscall("RECEIVE", notification)
    assert script.runs(server)
    script.syscall("RECEIVE", endpoint)
    assert script.runs(client)
    script.syscall("CALL", endpoint, message(5, 0, 0, 0))
    assert script.runs(server)
    script.syscall("REPLY_RECEIVE", endpoint, message(5, 0, 0, 0))
    assert script.runs(client)
    script.syscall("SEND", notification)
    assert script.runs(TCB)
    script.invoke(TCB, "TCB_SET_PRIORITY", [200])
    assert script.runs(TCB)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    assert script.runs(server)
    script.syscall("YIELD")


def a_message_looks_like_a_failure(script: Script) -> None:
    """Its label equals a failed lookup's; the receive, preempted at its end, did not fail."""
    endpoint = script.make("ENDPOINT")
    script.thread()
    script.syscall("YIELD")
    script.syscall("SEND", endpoint, message(1, 0, 0, E["LOOKUP_FAILED"]))
    script.syscall("RECEIVE", endpoint)


def _faulting(script: Script, endpoint: int) -> None:
    """One more urgent than the first thread has just faulted; the endpoint is its handler."""
    script.thread(handler=endpoint)
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.fault("DATA_ABORT")
    assert script.runs(TCB)


def an_answer_to_a_fault_stops_the_thread(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    _faulting(script, endpoint)
    script.syscall("RECEIVE", endpoint)
    script.syscall("REPLY", 0, message(0, 0, 0, 1))
    assert script.runs(TCB)


def a_handler_is_deleted_before_it_hears_of_the_fault(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    _faulting(script, endpoint)
    script.delete(endpoint)
    assert script.runs(TCB)


def a_fault_is_answered_by_who_receives_the_next(script: Script) -> None:
    """The answer is short and its receiver urgent, but is no message: it says how to go on."""
    for words in ([], [0x3000]):
        script.begin_again()
        endpoint = script.make("ENDPOINT")
        _faulting(script, endpoint)
        script.syscall("RECEIVE", endpoint)
        script.syscall("REPLY_RECEIVE", endpoint, message(len(words), 0, 0, 0), words)
        assert not script.runs(TCB)


def a_fault_is_answered_with_a_label_by_who_receives_the_next(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    other = script.thread(priority=100)
    _faulting(script, endpoint)
    script.syscall("RECEIVE", endpoint)
    script.syscall("REPLY_RECEIVE", endpoint, message(0, 0, 0, 1))
    assert script.runs(other)


def a_fault_meets_a_handler_that_waits(script: Script) -> None:
    """Of the same priority as who faults, and then of a lower one."""
    for priority in (255, 100):
        script.begin_again()
        endpoint = script.make("ENDPOINT")
        handler = _receiving(script, endpoint, priority=priority)
        faulting = script.thread(handler=endpoint)
        script.invoke(TCB, "TCB_SET_PRIORITY", [50])
        assert script.runs(faulting)
        script.fault("DATA_ABORT", 0x1234, 7)
        assert script.runs(handler)
        script.syscall("REPLY_RECEIVE", endpoint)
        assert script.runs(faulting)


def a_fault_is_answered_with_words_of_every_number(script: Script) -> None:
    """None, the pc, the stack pointer too, the flags too."""
    for length in range(5):
        script.begin_again()
        endpoint = script.make("ENDPOINT")
        _faulting(script, endpoint)
        script.syscall("RECEIVE", endpoint)
        script.syscall("REPLY", 0, message(length, 0, 0, 0), (0x2000, 0x3000, 0x30, 0x4000))
        assert not script.runs(TCB)


def a_fault_takes_no_capabilities_along(script: Script) -> None:
    """The registers of who faulted look like a message with a capability."""
    endpoint, frame = script.make("ENDPOINT"), script.make("FRAME_4K")
    faulting = script.thread(frame=frame, handler=endpoint)
    script.syscall("YIELD")
    assert script.runs(faulting)
    nobody = script.make("ENDPOINT")
    script.syscall("NB_SEND", nobody, message(0, 1, 0, 0), buffer={CAPS: TCB})
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.fault("DATA_ABORT")
    assert script.runs(TCB)
    slot = _receive_slot(script)
    script.syscall("RECEIVE", endpoint, buffer=slot)
    script.invoke(NODE, "CNODE_DELETE", [slot[API["BUFFER_RECEIVE_INDEX"]], 32])


def a_thread_that_faulted_goes_on_and_sends(script: Script) -> None:
    """Without a handler it stops; its later sends are messages, not its fault."""
    endpoint = script.make("ENDPOINT")
    thread = script.thread()
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.fault("UNDEFINED")
    assert script.runs(TCB)
    script.invoke(thread, "TCB_RESUME")
    assert script.runs(thread)
    script.syscall("CALL", endpoint, message(2, 0, 0, 5), (1, 2))
    script.syscall("RECEIVE", endpoint)
    script.syscall("REPLY", 0, message(2, 0, 0, 6), (3, 4))
    assert script.runs(thread)


def a_thread_that_faulted_is_suspended_and_goes_on(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    thread = script.thread(handler=endpoint)
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.fault("UNDEFINED")
    script.invoke(thread, "TCB_SUSPEND")
    script.invoke(thread, "TCB_RESUME")
    assert script.runs(thread)
    script.syscall("CALL", endpoint, message(2, 0, 0, 5), (1, 2))
    script.syscall("RECEIVE", endpoint)


def a_server_answers_while_others_send(script: Script) -> None:
    """Of who was answered and who had sent, one runs and one takes its turn, by priority."""
    priorities = (100, 120, 140)
    for called, sent, served in product(priorities, repeat=3):
        script.begin_again()
        endpoint = script.make("ENDPOINT")
        caller, sender = script.thread(), script.thread()
        script.syscall("YIELD")
        assert script.runs(caller)
        script.syscall("CALL", endpoint, message(1, 0, 0, 0), (1,))
        script.syscall("SEND", endpoint, message(2, 0, 0, 0), (2, 3))
        assert script.runs(TCB)
        script.syscall("RECEIVE", endpoint)
        for thread, priority in ((caller, called), (sender, sent), (TCB, served)):
            script.invoke(thread, "TCB_SET_PRIORITY", [priority])
        script.syscall("REPLY_RECEIVE", endpoint, message(1, 0, 0, 0), (4,))
        for _ in range(4):
            script.syscall("YIELD")


def an_answer_carries_what_its_receiver_may_grant_then(script: Script) -> None:
    """A server waits by the fastpath through a capability that grants less than the one before."""
    endpoint = script.make("ENDPOINT")
    less = script.copy(endpoint, NO_GRANT)
    server = _receiving(script, endpoint)
    for through in (less, endpoint, less):
        script.syscall("CALL", endpoint, message(1, 0, 0, 0))
        assert script.runs(server)
        script.syscall("REPLY_RECEIVE", through, message(1, 0, 0, 0))
        assert script.runs(TCB)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    script.run.refinement.check_everything()


def the_fastpath_needs_a_whole_address(script: Script) -> None:
    """One level of the space does not resolve all 32 bits."""
    endpoint, node = script.make("ENDPOINT"), script.make("CNODE", 4)
    _receiving(script, endpoint)
    thread = script.make("TCB")
    script.invoke(node, "CNODE_COPY", [3, 4, endpoint, 32, 7], [NODE])
    script.invoke(thread, "TCB_CONFIGURE", [0, 0], [node, DIRECTORY])
    script.start(thread, 255)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.syscall("CALL", 3, message(1, 0, 0, 0))


def a_receiver_has_not_answered_yet(script: Script) -> None:
    """Whom it owes an answer is never answered, once it receives again."""
    endpoint = script.make("ENDPOINT")
    server = _receiving(script, endpoint)
    other = script.thread()
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    assert script.runs(server)
    script.syscall("RECEIVE", endpoint)
    assert script.runs(other)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    script.syscall("REPLY", 0, message(1, 0, 0, 0))


def a_server_that_is_called_is_interrupted(script: Script) -> None:
    """By a more urgent thread, and goes on when that waits again."""
    _, notification = script.urgent()
    endpoint = script.make("ENDPOINT")
    server = script.thread(priority=100)
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    assert script.runs(server)
    script.interrupt(LINE)
    script.invoke(notification + 1, "IRQ_ACKNOWLEDGE")
    script.syscall("RECEIVE", notification)
    assert script.runs(server)
