# SPDX-License-Identifier: BSD-2-Clause
"""Calls that are preempted, and the state in which all threads stop."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.bilby.verification.fuzz.script import DIRECTORY, NODE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, has_field, message, offset


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
    """All stop; only a page table's back-pointer links the remaining objects."""
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


def a_thread_is_woken_and_deleted(script: Script) -> None:
    """One revocation aborts a more urgent thread's wait, then deletes the thread."""
    region = script.make("UNTYPED", 13)
    thread = script.make("TCB", region=region)
    script.configure(thread)
    script.start(thread, 255)
    endpoint = script.make("ENDPOINT", region=region)
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    script.invoke(thread, "TCB_SET_PRIORITY", [200])
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.revoke(region)


def the_most_urgent_of_two_that_are_woken_is_deleted(script: Script) -> None:
    """The other one is more urgent than who revokes, too."""
    region = script.make("UNTYPED", 13)
    threads = [script.make("TCB", region=region), script.make("TCB")]
    for thread in threads:
        script.configure(thread)
        script.start(thread, 255)
    endpoint = script.make("ENDPOINT", region=region)
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    script.syscall("RECEIVE", endpoint)
    for thread, priority in zip((*threads, TCB), (200, 150, 100), strict=True):
        script.invoke(thread, "TCB_SET_PRIORITY", [priority])
    script.revoke(region)


def a_container_of_containers(script: Script) -> None:
    """CNodes and threads that hold each other's last capabilities, and themselves."""
    outer, inner = script.make("CNODE", 2), script.make("CNODE", 3)
    thread = script.make("TCB")
    endpoint = script.make("ENDPOINT")
    script.thread()
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    script.configure(thread)
    for depth, (node, slot, index) in enumerate(
        [(outer, endpoint, 0), (outer, thread, 3), (inner, outer, 0)]
    ):
        bits = 2 if depth < 2 else 3
        words = [index, bits, slot, 32]
        script.invoke(node, "CNODE_MOVE", words, [API["ROOT_CNODE"]])
    keeper = script.copy(inner)
    script.invoke(keeper, "CNODE_MOVE", [7, 3, inner, 32], [API["ROOT_CNODE"]])
    script.delete(keeper)
    script.revoke(API["ROOT_UNTYPED"] + 1)


def badges_are_aborted_one_by_one(script: Script) -> None:
    """Of the threads that send, those with the badge wake, and no others."""
    endpoint = script.make("ENDPOINT")
    badged = [script.mint(endpoint, badge) for badge in (1, 2)]
    for _ in range(6):
        script.thread()
    script.syscall("YIELD")
    for i in range(6):
        script.syscall("SEND", badged[i % 2], message(1, 0, 0, 0))
    script.recycle(badged[0])
    script.recycle(badged[0])
    script.recycle(badged[1])
    script.recycle(endpoint)
    script.syscall("NB_SEND", endpoint)


def a_server_answers_twice(script: Script) -> None:
    """Each answer is sent once, also of the call after a preempted one."""
    endpoint = script.make("ENDPOINT")
    server = script.thread()
    script.syscall("CALL", endpoint, message(5, 0, 0, 0))
    assert script.runs(server)
    script.syscall("RECEIVE", endpoint)
    for _ in range(3):
        script.syscall("REPLY_RECEIVE", endpoint, message(5, 0, 0, 0))
        assert script.runs(TCB)
        script.syscall("CALL", endpoint, message(5, 0, 0, 0))
        assert script.runs(server)


def a_sender_is_received_while_its_badge_is_aborted(script: Script) -> None:
    """The abort was preempted; whom it woke is more urgent and takes who would be next."""
    endpoint = script.make("ENDPOINT")
    badged = [script.mint(endpoint, badge) for badge in (1, 2)]
    senders = [script.thread() for _ in range(4)]
    script.syscall("YIELD")
    for i in range(4):
        script.syscall("SEND", badged[i % 2], message(1, 0, 0, 0))
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.begin("CNODE_RECYCLE", badged[0], 1)
    assert script.run.host.current == script.thread_of(senders[0]).address
    script.meanwhile("RECEIVE", endpoint)
    script.meanwhile("RECEIVE", endpoint)
    script.meanwhile("YIELD", 0)


def _crowd(
    script: Script, call: str, address: int, count: int, first: Sequence[int] = ()
) -> list[int]:
    """Threads that wait after the waiting ones; the first one runs, and is less urgent."""
    threads = [*first, *(script.thread() for _ in range(count))]
    script.syscall("YIELD")
    for _ in threads:
        script.syscall(call, address, message(1, 0, 0, 0))
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    return threads


def who_waits_for_a_signal_is_woken_by_recycling(script: Script) -> None:
    notification = script.make("NOTIFICATION")
    for thread in _crowd(script, "RECEIVE", notification, 3):
        script.invoke(thread, "TCB_SET_PRIORITY", [50])
    script.recycle(notification)
    script.syscall("NB_SEND", notification)


def who_waits_for_a_signal_is_woken_by_deletion(script: Script) -> None:
    notification = script.make("NOTIFICATION")
    for thread in _crowd(script, "RECEIVE", notification, 3):
        script.invoke(thread, "TCB_SET_PRIORITY", [50])
    script.delete(notification)


def nobody_joins_a_closed_queue(script: Script) -> None:
    """Recycling was preempted; whom it woke finds the endpoint closed."""
    endpoint = script.make("ENDPOINT")
    threads = _crowd(script, "SEND", endpoint, 4)
    script.begin("CNODE_RECYCLE", endpoint, 1)
    assert script.run.host.current == script.thread_of(threads[0]).address
    script.meanwhile("SEND", endpoint, message(1, 0, 0, 0))
    script.meanwhile("CALL", endpoint, message(1, 0, 0, 0))
    script.meanwhile("RECEIVE", endpoint)
    script.meanwhile("NB_SEND", endpoint)


def nobody_joins_a_closed_notification(script: Script) -> None:
    notification, other = script.make("NOTIFICATION"), script.make("NOTIFICATION")
    threads = _crowd(script, "RECEIVE", notification, 4)
    script.begin("CNODE_RECYCLE", notification, 1)
    assert script.run.host.current == script.thread_of(threads[0]).address
    script.meanwhile("RECEIVE", notification)
    script.meanwhile("NB_SEND", notification)
    script.meanwhile("RECEIVE", other)


def _stopped_recycling(script: Script, kind: str, call: str) -> int:
    """An object on which some wait; its recycler was preempted, and then suspended."""
    item = script.make(kind)
    threads = _crowd(script, call, item, 4)
    script.begin("CNODE_RECYCLE", item, 1)
    assert script.run.host.current == script.thread_of(threads[0]).address
    script.meanwhile("CALL", TCB, message(0, 0, 0, API["LABEL_TCB_SUSPEND"]))
    return item


def an_endpoint_whose_recycler_was_suspended(script: Script) -> None:
    """It can be used: of those who waited one was woken, and the next is received."""
    if has_field("endpoint", "abort_worker"):
        endpoint = _stopped_recycling(script, "ENDPOINT", "SEND")
        caller = script.run.host.current
        script.meanwhile("RECEIVE", endpoint)
        assert script.run.host.word(caller) == 0, "received"
        script.meanwhile("CALL", TCB, message(0, 0, 0, API["LABEL_TCB_RESUME"]))
        script.meanwhile("YIELD", 0)


def an_endpoint_of_receivers_whose_recycler_was_suspended(script: Script) -> None:
    if has_field("endpoint", "abort_worker"):
        endpoint = _stopped_recycling(script, "ENDPOINT", "RECEIVE")
        caller = script.run.host.current
        script.meanwhile("SEND", endpoint, message(1, 0, 0, 0))
        assert script.run.host.word(caller) == 0, "sent"


def a_notification_whose_recycler_was_suspended(script: Script) -> None:
    if has_field("endpoint", "abort_worker"):
        notification = _stopped_recycling(script, "NOTIFICATION", "RECEIVE")
        script.meanwhile("NB_SEND", notification)
        script.meanwhile("RECEIVE", notification)


def _taken_over(script: Script, kind: str, call: str, label: str, badge: int = 0) -> None:
    """Whom a recycler has woken does the rest, and suspends the recycler."""
    if not has_field("endpoint", "abort_worker"):
        return
    item = script.make(kind)
    badged, copy = script.mint(item, 1), script.copy(item)
    threads = _crowd(script, call, badged, 4)
    script.begin("CNODE_RECYCLE", copy, 1)
    assert script.run.host.current == script.thread_of(threads[0]).address
    if label == "CNODE_DELETE":
        for slot in (badged, copy):
            script.meanwhile("CALL", NODE, message(2, 0, 0, API[f"LABEL_{label}"]), [slot, 32])
    words = [badged if badge else item if label == "CNODE_DELETE" else copy, 32]
    script.begin(label, words[0], 2 if label == "CNODE_DELETE" else 1)
    script.meanwhile("CALL", NODE, message(2, 0, 0, API[f"LABEL_{label}"]), words)
    script.meanwhile("CALL", TCB, message(0, 0, 0, API["LABEL_TCB_SUSPEND"]))
    assert not script.run.host.word(script.object_of(item) + offset(kind.lower(), "head"))


def a_recycling_is_taken_over_by_another(script: Script) -> None:
    _taken_over(script, "ENDPOINT", "SEND", "CNODE_RECYCLE")


def a_recycling_is_taken_over_for_one_badge(script: Script) -> None:
    _taken_over(script, "ENDPOINT", "SEND", "CNODE_RECYCLE", 1)


def a_recycling_is_taken_over_by_deletion(script: Script) -> None:
    _taken_over(script, "ENDPOINT", "SEND", "CNODE_DELETE")


def a_recycling_of_signals_is_taken_over_by_another(script: Script) -> None:
    _taken_over(script, "NOTIFICATION", "RECEIVE", "CNODE_RECYCLE")


def a_recycling_of_signals_is_taken_over_by_deletion(script: Script) -> None:
    _taken_over(script, "NOTIFICATION", "RECEIVE", "CNODE_DELETE")


def a_second_aborter_finishes_the_first(script: Script) -> None:
    """With another badge, or the same; the first is told."""
    endpoint = script.make("ENDPOINT")
    badged = [script.mint(endpoint, badge) for badge in (1, 2)]
    senders = [script.thread() for _ in range(6)]
    script.syscall("YIELD")
    for i in range(6):
        script.syscall("SEND", badged[i % 2], message(1, 0, 0, 0))
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    script.begin("CNODE_RECYCLE", badged[0], 1)
    assert script.run.host.current == script.thread_of(senders[0]).address
    script.begin("CNODE_RECYCLE", badged[1], 1)
    script.begin("CNODE_RECYCLE", badged[0], 1)
    script.meanwhile("YIELD", 0)


def a_directory_that_was_begun_gives_way(script: Script) -> None:
    """Half of the kernel's mappings are copied; then frames are made there."""
    region = script.make("UNTYPED", 16)
    node = script.run.kernel.thread(script.run.first_thread).slots["cspace"].cap
    assert node is not None
    cap = script.run.kernel.cnode(node["object"]).slots[region].cap
    assert cap is not None
    script.make("ENDPOINT", region=region)
    if script.begin_retype("PAGE_DIRECTORY", region, 8):
        script.meanwhile_retype("FRAME_4K", region, 15)
        assert script.run.host.is_published(cap["object"] + (4 << 10), 60 << 10)


def a_directory_that_was_begun_moves(script: Script) -> None:
    """An earlier object is deleted, so the directory is made elsewhere, from its first step."""
    region = script.make("UNTYPED", 16)
    endpoint = script.make("ENDPOINT", region=region)
    if script.begin_retype("PAGE_DIRECTORY", region, 8):
        script.meanwhile_delete(endpoint)
        script.meanwhile_retype("PAGE_DIRECTORY", region)


def _recycling_becomes_another_call(script: Script, kind: str) -> None:
    """Its capability leads to another object at the second attempt; the next recycles all."""
    endpoint, other, way = script.make("ENDPOINT"), script.make(kind), script.copy(NODE)
    badged = script.mint(endpoint, 1)
    worker = script.thread(frame=script.make("FRAME_4K"))
    _crowd(script, "SEND", badged, 2, first=[worker])
    first, caller = script.thread_of(worker), script.thread_of(TCB)
    if not script.begin("CNODE_RECYCLE", badged, 1, way):
        return
    move = message(4, 1, 0, API["LABEL_CNODE_MOVE"])
    script.run.host.write(first.buffer + 4 * API["BUFFER_CAPS"], NODE)
    script.meanwhile("CALL", NODE, move, [script.slots(), 32, way, 32])
    script.meanwhile("CALL", NODE, move, [way, 32, other, 32])
    script.meanwhile("RECEIVE", way)
    assert script.run.host.current == caller.address
    recycle = message(2, 0, 0, API["LABEL_CNODE_RECYCLE"])
    script.meanwhile("CALL", way, recycle, [badged, 32])
    assert script.run.host.current == first.address
    script.meanwhile("REPLY", 0)
    script.meanwhile("SEND", badged)
    assert script.run.host.current == caller.address
    script.meanwhile("CALL", NODE, recycle, [badged, 32])
    assert script.run.host.word(first.address) == API["SYSCALL_FAILED"] | E["ABORTED"]


def a_recycling_that_was_preempted_becomes_a_message(script: Script) -> None:
    _recycling_becomes_another_call(script, "ENDPOINT")


def a_recycling_that_was_preempted_becomes_a_signal(script: Script) -> None:
    _recycling_becomes_another_call(script, "NOTIFICATION")


def _block(state: int) -> int:
    """The bits of cpsr that say where in an IT block a thread is."""
    return (state & 0xFC) << 8 | (state & 3) << 25


def a_call_in_a_block_is_made_again(script: Script) -> None:
    """The SVC was the first of "ite eq": made again, it is executed under the same condition."""
    outer = script.make("CNODE", 4)
    caller = script.thread_of(TCB).address
    flags, thumb = 0x40000150, 0x20
    first, second = 0x0C, 0x18  # of "ite eq": EQ then NE
    script.run.host.write(caller + 4 * 16, flags | thumb | _block(second))
    preempted = script.begin("CNODE_DELETE", outer, 3)
    if preempted:
        assert script.run.host.word(caller + 4 * 16) == flags | thumb | _block(first)


def another_pc_is_in_no_block(script: Script) -> None:
    """A fault in an IT block is answered with a pc alone: the same, then another."""
    endpoint, thread = script.make("ENDPOINT"), script.make("TCB")
    script.configure(thread, handler=endpoint)
    words = [0x2000, 0, 0x20 | _block(0x18), *[0] * 14]
    script.invoke(thread, "TCB_WRITE_REGISTERS", words)
    script.start(thread, 255)
    for pc in (0x2000, 0x3000):
        script.syscall("YIELD")
        assert script.runs(thread)
        script.fault("UNDEFINED")
        script.syscall("RECEIVE", endpoint)
        script.syscall("REPLY", 0, message(1, 0, 0, 0), [pc])
