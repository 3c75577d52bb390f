# SPDX-License-Identifier: BSD-2-Clause
"""Calls that are preempted after an address was looked up: the kernel's cached lookups.

Each ends at once without a cache: then no call is preempted there.
"""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import DIRECTORY, LINE, NODE, NOWHERE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, message

CAPS = API["BUFFER_CAPS"]


def _first_registers(script: Script) -> list[int]:
    return script.run.host.words(script.thread_of(TCB).address, 2)


def a_thread_that_was_preempted_faults(script: Script) -> None:
    """Its call will not be made again."""
    if script.keeps_lookups:
        script.begin_lookups(1, "SEND", NOWHERE)
        script.meanwhile_fault("PREFETCH_ABORT")


def a_thread_that_was_preempted_is_suspended(script: Script) -> None:
    script.urgent()
    if script.keeps_lookups:
        script.begin_lookups(1, "SEND", NOWHERE)
        script.run.host.interrupt(LINE)
        script.meanwhile("CALL", TCB, message(0, 0, 0, API["LABEL_TCB_SUSPEND"]))


def a_thread_that_was_preempted_becomes_less_urgent(script: Script) -> None:
    """Its way is marked for threads as urgent as it was."""
    script.urgent()
    if script.keeps_lookups:
        script.begin_lookups(1, "SEND", TCB)
        script.run.host.interrupt(LINE)
        script.meanwhile("CALL", TCB, message(1, 0, 0, API["LABEL_TCB_SET_PRIORITY"]), [1])


def another_address_is_looked_up(script: Script) -> None:
    """The arguments of the call are others when it is made again."""
    if script.keeps_lookups:
        script.begin_lookups(1, "SEND", NOWHERE)
        script.meanwhile("SEND", TCB)
        assert _first_registers(script)[0] == API["SYSCALL_FAILED"] | E["ILLEGAL_OPERATION"]


def a_node_on_the_way_is_replaced(script: Script) -> None:
    """The sent address leads through another CNode when the call is made again."""
    _, notification = script.urgent()
    way, other = script.make("CNODE", 2), script.make("CNODE", 2)
    script.invoke(way, "CNODE_COPY", [0, 2, TCB, 32, 7], [NODE])
    copy = message(5, 1, 0, API["LABEL_CNODE_COPY"])
    if not script.keeps_lookups:
        return
    caller = script.thread_of(TCB)
    to = script.slots()
    script.run.host.write(caller.buffer + 4 * CAPS, way)
    script.run.host.write(caller.buffer + 4 * (API["BUFFER_WORDS"] + 4), 7)
    script.begin_lookups(4, "CALL", NODE, copy, [to, 32, 0, 2])
    script.run.host.interrupt(LINE)
    move = message(4, 1, 0, API["LABEL_CNODE_MOVE"])
    script.meanwhile("CALL", NODE, move, [script.slots(), 32, way, 32])
    script.meanwhile("CALL", NODE, move, [way, 32, other, 32])
    script.meanwhile("RECEIVE", notification)
    assert script.run.host.current == caller.address
    script.meanwhile("CALL", NODE, copy, [to, 32, 0, 2])
    assert _first_registers(script)[1] == message(0, 0, 0, E["INVALID_CAPABILITY"])


def _receive_slot(script: Script) -> dict[int, int]:
    return {
        API["BUFFER_RECEIVE_ROOT"]: NODE,
        API["BUFFER_RECEIVE_INDEX"]: script.slots(),
        API["BUFFER_RECEIVE_DEPTH"]: 32,
    }


def _receiver(script: Script, space: int, through: int) -> int:
    """A thread of that capability space that waits at an endpoint, and would take a capability."""
    thread, frame = script.make("TCB"), script.make("FRAME_4K")
    script.invoke(thread, "TCB_CONFIGURE", [0, 0], [space, DIRECTORY, frame])
    script.start(thread, 255)
    script.syscall("YIELD")
    script.syscall("RECEIVE", through, buffer=_receive_slot(script))
    return thread


def another_receiver_has_another_space(script: Script) -> None:
    """The first of two that wait is suspended; in the space of the other the address is empty."""
    endpoint, small = script.make("ENDPOINT"), script.make("CNODE", 4)
    script.invoke(small, "CNODE_COPY", [15, 4, endpoint, 32, 7], [NODE])
    first = _receiver(script, NODE, endpoint)
    second = _receiver(script, script.mint(small, 28), 15)
    _, notification = script.urgent()
    if not script.keeps_lookups:
        return
    caller, sent = script.thread_of(TCB), message(0, 1, 0, 0)
    script.run.host.write(caller.buffer + 4 * CAPS, TCB)
    script.begin_lookups(2, "SEND", endpoint, sent)
    script.run.host.interrupt(LINE)
    script.meanwhile("CALL", first, message(0, 0, 0, API["LABEL_TCB_SUSPEND"]))
    script.meanwhile("RECEIVE", notification)
    assert script.run.host.current == caller.address
    script.meanwhile("SEND", endpoint, sent)
    arrived = script.run.host.word(script.thread_of(second).address + 4)
    assert arrived == message(0, 0, 0, 0), f"{arrived:#x}"


def a_call_that_was_preempted_takes_no_fastpath(script: Script) -> None:
    """Its slot was empty.  Made again, the call finds somebody who waits, and keeps nothing.

    The general path tests for an interrupt at its end, a fastpath never does.
    """
    _, notification = script.urgent()
    endpoint, address = script.make("ENDPOINT"), script.slots()
    if not script.keeps_lookups:
        return
    caller = script.thread_of(TCB)
    script.begin_lookups(1, "CALL", address)
    script.run.host.interrupt(LINE)
    move = message(4, 1, 0, API["LABEL_CNODE_MOVE"])
    script.meanwhile("CALL", NODE, move, [address, 32, endpoint, 32])
    script.meanwhile("RECEIVE", address)
    assert script.run.host.current == caller.address
    assert script.meanwhile("CALL", address, force=False).tests == 1, "the general path"
    script.meanwhile("REPLY_RECEIVE", notification)
    assert script.run.host.current == caller.address
    assert script.meanwhile("CALL", address, force=False).tests == 2, "nothing was kept"
    assert script.run.host.word(caller.address) == address, (
        "it waits, and was not told that it failed"
    )


def an_answer_and_the_next_call_are_at_one_address(script: Script) -> None:
    """The kernel looks the address up first, then the addresses in the answer.

    Both phases, the answer and the receipt, use the first result.
    """
    endpoint, frame = script.make("ENDPOINT"), script.make("FRAME_4K")
    script.thread(frame=script.make("FRAME_4K"))
    script.syscall("CALL", endpoint, message(5, 0, 0, 0), buffer=_receive_slot(script))
    script.syscall("RECEIVE", endpoint)
    if not script.keeps_lookups:
        return
    script.run.host.write(
        script.run.kernel.thread(script.run.host.current).buffer + 4 * CAPS, frame
    )
    answer = script.meanwhile("REPLY_RECEIVE", endpoint, message(0, 1, 0, 0), force=False)
    lookups = 1 + 2 + 1  # the endpoint, the caller's receive slot and its CNode, the capability
    assert answer.tests == lookups + 1 + 1, "between the phases, and at the end"


def _lost(script: Script) -> int:
    """How often lookups of the most urgent threads were lost."""
    return script.run.host.word(script.run.table["lookups_lost"] + 8 * 3)


def a_move_loses_what_was_looked_up_since_the_last(script: Script) -> None:
    """A copy was on nobody's way; after a move, or a change of places, nothing is any more."""
    if not script.keeps_lookups:
        return
    way, thread = script.make("CNODE", 2), script.thread(frame=script.make("FRAME_4K"))
    script.syscall("YIELD")
    assert script.runs(thread)

    def pass_through(node: int) -> None:
        script.invoke(NODE, "CNODE_COPY", [script.slots(), 32, 3, 2, 7], [node],
                      "INVALID_CAPABILITY")  # fmt: skip

    def lost_by(label: str, words: list[int], caps: list[int]) -> int:
        before = _lost(script)
        script.invoke(NODE, label, words, caps)
        return _lost(script) - before

    pass_through(way)
    copy, moved, again, other = script.copy(way), *(script.slots() for _ in range(3))
    assert lost_by("CNODE_MOVE", [other, 32, copy, 32], [NODE]) == 0
    assert lost_by("CNODE_MOVE", [moved, 32, way, 32], [NODE]) == 1
    assert lost_by("CNODE_MOVE", [again, 32, moved, 32], [NODE]) == 0
    pass_through(again)
    assert lost_by("CNODE_ROTATE", [way, 32, again, 32, other, 32], [NODE, NODE]) == 1
    assert lost_by("CNODE_ROTATE", [other, 32, way, 32, again, 32], [NODE, NODE]) == 0
