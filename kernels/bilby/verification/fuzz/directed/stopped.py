# SPDX-License-Identifier: BSD-2-Clause
"""Polls, and threads that do not run: their registers, their configuration taken away."""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import DIRECTORY, NODE, NOWHERE, TCB, Script
from kernels.bilby.verification.spec.layout import API, message


def a_poll_finds_a_sender_or_nothing(script: Script) -> None:
    endpoint, notification = script.make("ENDPOINT"), script.make("NOTIFICATION")
    deaf = script.copy(endpoint, API["RIGHT_SEND"])
    for there in (endpoint, notification, deaf, TCB, 1 << 31):
        script.syscall("POLL", there)
    script.syscall("SEND", notification)
    script.syscall("POLL", notification)
    script.syscall("POLL", notification)
    script.thread()
    script.syscall("YIELD")
    script.syscall("CALL", endpoint, message(2, 0, 0, 9), (1, 2))
    script.syscall("POLL", endpoint)
    script.syscall("POLL", endpoint)  # the call is not given up
    script.syscall("REPLY", 0, message(1, 0, 0, 0))
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    assert script.runs(TCB)
    script.syscall("POLL", endpoint)


def a_poll_takes_a_message_with_capabilities(script: Script) -> None:
    endpoint, frame = script.make("ENDPOINT"), script.make("FRAME_4K")
    script.thread(frame=frame)
    script.syscall("YIELD")
    buffer = {API["BUFFER_CAPS"] + i: slot for i, slot in enumerate((endpoint, TCB))}
    script.syscall("SEND", endpoint, message(20, 2, 0, 7), buffer=buffer)
    assert script.runs(TCB)
    receive = {
        API["BUFFER_RECEIVE_ROOT"]: NODE,
        API["BUFFER_RECEIVE_INDEX"]: script.slots(),
        API["BUFFER_RECEIVE_DEPTH"]: 32,
    }
    script.syscall("POLL", endpoint, buffer=receive)


def a_receive_slot_cannot_be_reached(script: Script) -> None:
    """No CNode is where the receiver says that its slot is: only the words come."""
    endpoint, frame = script.make("ENDPOINT"), script.make("FRAME_4K")
    script.thread(frame=frame)
    script.syscall("YIELD")
    script.syscall("SEND", endpoint, message(20, 1, 0, 7), buffer={API["BUFFER_CAPS"]: TCB})
    receive = {
        API["BUFFER_RECEIVE_ROOT"]: NOWHERE,
        API["BUFFER_RECEIVE_INDEX"]: script.slots(),
        API["BUFFER_RECEIVE_DEPTH"]: 32,
    }
    script.syscall("POLL", endpoint, buffer=receive)
    assert script.thread_of(TCB).regs[1] == message(20, 0, 0, 7)


def registers_of_a_stopped_thread(script: Script) -> None:
    thread, frame = script.make("TCB"), script.make("FRAME_4K")
    script.configure(thread, frame)
    words = [0x2000, 0x3000, 0x20, *range(14)]
    script.invoke(thread, "TCB_WRITE_REGISTERS", words)
    nothing = {API["BUFFER_WORDS"] + i: 0xFFFF for i in range(len(words))}
    script.syscall(
        "CALL", thread, message(0, 0, 0, API["LABEL_TCB_READ_REGISTERS"]), buffer=nothing
    )
    script.invoke(TCB, "TCB_READ_REGISTERS", error="ILLEGAL_OPERATION")
    script.start(thread, 255)
    script.invoke(thread, "TCB_READ_REGISTERS", error="ILLEGAL_OPERATION")


def a_thread_without_a_buffer_reads_no_registers(script: Script) -> None:
    stopped = script.make("TCB")
    script.configure(stopped)
    reader = script.thread()
    script.syscall("YIELD")
    assert script.runs(reader)
    script.syscall("CALL", stopped, message(0, 0, 0, API["LABEL_TCB_READ_REGISTERS"]))


def a_frame_tells_its_address(script: Script) -> None:
    for frame in (script.make("FRAME_4K"), API["ROOT_FRAME_1M"], API["ROOT_UART_FRAME"]):
        script.syscall("CALL", frame, message(0, 0, 0, API["LABEL_FRAME_ADDRESS"]))


def a_thread_is_configured_again(script: Script) -> None:
    frame, space = script.make("FRAME_4K"), script.space()
    thread = script.thread(frame=frame)
    script.invoke(thread, "TCB_UNCONFIGURE", error="ILLEGAL_OPERATION")
    script.invoke(thread, "TCB_SUSPEND")
    script.invoke(thread, "TCB_UNCONFIGURE")
    script.invoke(thread, "TCB_UNCONFIGURE")
    script.invoke(thread, "TCB_RESUME", error="ILLEGAL_OPERATION")
    script.configure(thread, frame, space)
    script.invoke(thread, "TCB_RESUME")
    script.syscall("YIELD")
    assert script.runs(thread)


def what_a_thread_had_alone_is_deleted(script: Script) -> None:
    """Its space, and a CNode with the last capability to another thread, preempted at each step."""
    frame, space = script.make("FRAME_4K"), script.space()
    node, other = script.make("CNODE", 2), script.make("TCB")
    thread = script.make("TCB")
    script.invoke(thread, "TCB_CONFIGURE", [0, 0], [node, space, frame])
    script.invoke(node, "CNODE_MOVE", [1, 2, other, 32], [NODE])
    for slot in (frame, space, node):
        script.delete(slot)
    script.invoke(thread, "TCB_UNCONFIGURE")
    script.configure(thread)


def a_thread_that_takes_a_configuration_away_deletes_itself(script: Script) -> None:
    """The last capability to the caller is in the space; its call ends there."""
    node, frame = script.make("CNODE", 2), script.make("FRAME_4K")
    stopped = script.make("TCB")
    script.invoke(stopped, "TCB_CONFIGURE", [0, 0], [node, API["ROOT_PAGE_DIRECTORY"], frame])
    caller = script.thread(frame=script.make("FRAME_4K"))
    script.invoke(node, "CNODE_MOVE", [1, 2, caller, 32], [NODE])
    script.delete(node)
    script.syscall("YIELD")
    script.syscall("CALL", stopped, message(0, 0, 0, API["LABEL_TCB_UNCONFIGURE"]))
    assert script.runs(TCB)
    script.invoke(stopped, "TCB_UNCONFIGURE")


def flags_are_kept_when_a_thread_is_configured(script: Script) -> None:
    """Its registers may be written first."""
    thread = script.make("TCB")
    script.invoke(thread, "TCB_WRITE_REGISTERS", [0x200000, 0x300000, 0xF0000030, *[0] * 14])
    script.configure(thread)
    assert script.thread_of(thread).regs[16] & 0xF0000020


def a_buffer_in_a_large_frame(script: Script) -> None:
    """Behind its first page; the buffer goes when the frame is revoked."""
    thread, frame = script.make("TCB"), script.make("FRAME_64K")
    script.invoke(thread, "TCB_CONFIGURE", [0, 0x2000], [NODE, DIRECTORY, frame])
    assert script.thread_of(thread).buffer
    script.revoke(frame)
    assert not script.thread_of(thread).buffer
