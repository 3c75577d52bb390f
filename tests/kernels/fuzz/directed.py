# SPDX-License-Identifier: BSD-2-Clause
"""Sequences that random operations hardly reach; each says what it is after.

They run on every preset, and first of all on every mutant.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.kernels.fuzz.script import DIRECTORY, TCB, Script
from tests.kernels.spec.layout import API, message


def revoking_the_callers_message_buffer(script: Script) -> None:
    """The call cannot be made again once the frame that it is read from is gone."""
    frame = script.make("FRAME_4K")
    script.copy(frame)
    script.thread(priority=255, frame=frame)
    script.syscall("YIELD")
    script.invoke(API["ROOT_CNODE"], "CNODE_REVOKE", [frame, 32, 0, 0, 0])


def several_wake_in_the_same_order_when_preempted(script: Script) -> None:
    """Recycling an endpoint queues who waited there in order of arrival."""
    endpoint = script.make("ENDPOINT")
    waiting = [script.thread() for _ in range(4)]
    script.syscall("YIELD")
    for _ in waiting:
        script.syscall("RECEIVE", endpoint)
    assert script.runs(TCB)
    script.recycle(endpoint)
    script.syscall("YIELD")
    for thread in waiting:
        assert script.runs(thread)
        script.syscall("SEND", endpoint)


def a_table_whose_directory_nobody_uses(script: Script) -> None:
    """All stop; what is left hangs together only by a page table's back-pointer."""
    directory = script.space(region=2)
    table = script.make("PAGE_TABLE", region=2)
    frame = script.make("FRAME_4K", region=1)
    copy = script.copy(frame)
    script.invoke(table, "PAGE_TABLE_MAP", [0x00200000], [directory])
    script.invoke(frame, "FRAME_MAP", [0x00201000, 3, 0], [directory])
    script.invoke(copy, "FRAME_MAP", [0x001C0000, 3, 0], [DIRECTORY])
    script.invoke(TCB, "TCB_SUSPEND")


def an_answer_before_a_preempted_receive(script: Script) -> None:
    """Reply-and-receive, preempted between, is a reply, an interrupt and a receive."""
    endpoint = script.make("ENDPOINT")
    script.thread()
    script.syscall("YIELD")
    script.syscall("CALL", endpoint, message(1, 0, 0, 0))
    script.syscall("RECEIVE", endpoint)
    script.thread()
    script.syscall("REPLY_RECEIVE", endpoint, message(5, 0, 0, 0))


SEQUENCES: list[Callable[[Script], None]] = [
    a_table_whose_directory_nobody_uses,
    an_answer_before_a_preempted_receive,
    revoking_the_callers_message_buffer,
    several_wake_in_the_same_order_when_preempted,
]
