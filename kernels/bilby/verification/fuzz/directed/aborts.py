# SPDX-License-Identifier: BSD-2-Clause
"""Badged aborts: two threads, and every field of the endpoint's and the worker's records.

The first thread begins to abort badge 1 and is preempted; the sender that it woke is more urgent
and acts. Where aborts are atomic there is nothing between.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernels.bilby.verification.fuzz.script import ANY_WORD, NODE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, has_field, message, offset, read_field


def _begun(script: Script, badges: Sequence[int]) -> tuple[int, dict[int, int], list[int]]:
    """An endpoint, capabilities by badge, and the threads that send with these badges.

    Nothing was derived from the capability with badge 0. The first thread has badge 1; it was woken
    and runs.
    """
    endpoint = script.make("ENDPOINT")
    badged = {badge: script.mint(endpoint, badge) for badge in (1, 2)}
    badged[0] = script.copy(endpoint)
    senders = [script.thread(frame=script.make("FRAME_4K")) for _ in badges]
    script.syscall("YIELD")
    for badge in badges:
        script.syscall("SEND", badged[badge], message(1, 0, 0, 0))
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    assert script.begin("CNODE_RECYCLE", badged[1], 1)
    assert script.now_runs(senders[0])
    return endpoint, badged, senders


def _waits(script: Script, thread: int) -> bool:
    address = script.object_of(thread)
    return script.run.host.word(address + offset("tcb", "waits_on")) != 0


def _recycle(script: Script, slot: int) -> None:
    script.meanwhile_invoke(NODE, "CNODE_RECYCLE", [slot, 32])


def _until_first_runs(script: Script, sleeping: int) -> None:
    """Whoever is more urgent waits for an answer that does not come."""
    while not script.now_runs(TCB):
        script.meanwhile("CALL", sleeping, force=False)


def _sends_again(script: Script, slot: int) -> None:
    """The running thread joins the queue, behind those whom the abort concerns."""
    script.meanwhile("SEND", slot, message(1, 0, 0, 0), force=False)


def the_last_sender_leaves_during_an_abort(script: Script) -> None:
    """Who comes then is not concerned."""
    if not has_field("endpoint", "abort_at"):
        return
    _, badged, senders = _begun(script, (1, 2, 1))
    script.meanwhile_invoke(senders[2], "TCB_SUSPEND")
    _sends_again(script, badged[1])
    assert script.now_runs(TCB)
    _recycle(script, badged[1])
    assert _waits(script, senders[0])
    assert _waits(script, senders[1])


def the_next_sender_leaves_during_an_abort(script: Script) -> None:
    if not has_field("endpoint", "abort_at"):
        return
    _, badged, senders = _begun(script, (1, 2, 1))
    script.meanwhile_invoke(senders[1], "TCB_SUSPEND")
    _sends_again(script, badged[1])
    script.begin("CNODE_RECYCLE", badged[1], 1)
    assert not _waits(script, senders[2])
    assert _waits(script, senders[0])


def the_only_sender_left_leaves_during_an_abort(script: Script) -> None:
    """The abort is over, and who began it is told."""
    if not has_field("endpoint", "abort_at"):
        return
    _, badged, senders = _begun(script, (1, 2))
    script.meanwhile_invoke(senders[1], "TCB_SUSPEND")
    _sends_again(script, badged[1])
    assert script.now_runs(TCB)
    _recycle(script, badged[1])
    assert _waits(script, senders[0])


def an_abort_is_made_again_with_another_badge(script: Script) -> None:
    """Its slot was filled anew: both badges are aborted."""
    if not has_field("endpoint", "abort_at"):
        return
    sleeping = script.make("ENDPOINT")
    _, badged, senders = _begun(script, (1, 2, 1, 2))
    _until_first_runs(script, sleeping)
    _recycle(script, badged[2])
    assert not any(_waits(script, sender) for sender in senders[1:])


def _told(script: Script) -> tuple[int, int, dict[int, int], list[int]]:
    """The abort of badge 1 was finished by who aborted badge 2, who runs; all were woken."""
    sleeping = script.make("ENDPOINT")
    endpoint, badged, senders = _begun(script, (1, 2, 1))
    _recycle(script, badged[2])
    assert script.now_runs(senders[0])
    return sleeping, endpoint, badged, senders


def who_began_an_abort_is_told_of_its_end(script: Script) -> None:
    """Who sends with that badge afterwards waits on."""
    if not has_field("endpoint", "abort_at"):
        return
    sleeping, _, badged, senders = _told(script)
    _sends_again(script, badged[1])
    _until_first_runs(script, sleeping)
    _recycle(script, badged[1])
    assert _waits(script, senders[0])


def who_was_told_of_one_badge_aborts_another(script: Script) -> None:
    if not has_field("endpoint", "abort_at"):
        return
    sleeping, _, badged, senders = _told(script)
    _sends_again(script, badged[2])
    _until_first_runs(script, sleeping)
    _recycle(script, badged[2])
    assert not _waits(script, senders[0])


def who_was_told_of_one_endpoint_aborts_at_another(script: Script) -> None:
    if not has_field("endpoint", "abort_at"):
        return
    other = script.mint(script.make("ENDPOINT"), 1)
    sleeping, _, _, senders = _told(script)
    _sends_again(script, other)
    _until_first_runs(script, sleeping)
    _recycle(script, other)
    assert not _waits(script, senders[0])


def who_was_told_is_stopped(script: Script) -> None:
    """It has forgotten that when it aborts again."""
    if not has_field("endpoint", "abort_at"):
        return
    sleeping, _, badged, senders = _told(script)
    script.meanwhile_invoke(TCB, "TCB_SUSPEND")
    script.meanwhile_invoke(TCB, "TCB_RESUME")
    _sends_again(script, badged[1])
    _until_first_runs(script, sleeping)
    _recycle(script, badged[1])
    assert not _waits(script, senders[0])


def an_endpoint_is_closed_during_an_abort(script: Script) -> None:
    """By its recycling, which is preempted: everybody is woken, and it can be used again."""
    if not has_field("endpoint", "abort_at"):
        return
    _, badged, senders = _begun(script, (1, 2, 1))
    script.begin("CNODE_RECYCLE", badged[0], 1)
    _recycle(script, badged[0])
    assert not any(_waits(script, sender) for sender in senders)
    _sends_again(script, badged[1])
    assert _waits(script, senders[0])


def an_endpoint_is_deleted_during_an_abort(script: Script) -> None:
    if not has_field("endpoint", "abort_at"):
        return
    endpoint, badged, senders = _begun(script, (1, 2, 1))
    for slot in (*badged.values(), endpoint):
        script.meanwhile_invoke(NODE, "CNODE_DELETE", [slot, 32])
    assert not any(_waits(script, sender) for sender in senders)


def who_aborts_at_one_endpoint_begins_at_another(script: Script) -> None:
    """The first is left for others to finish."""
    if not has_field("endpoint", "abort_at"):
        return
    sleeping, other = script.make("ENDPOINT"), script.mint(script.make("ENDPOINT"), 1)
    _, badged, senders = _begun(script, (1, 2, 1))
    _sends_again(script, other)
    _until_first_runs(script, sleeping)
    _recycle(script, other)
    assert not _waits(script, senders[0])
    assert _waits(script, senders[2])
    _until_first_runs(script, sleeping)
    _recycle(script, badged[2])
    assert not any(_waits(script, sender) for sender in senders[1:])


def _being_closed(script: Script, senders: int) -> tuple[int, list[int]]:
    """An endpoint that is recycled as a whole; the first of those who sent was woken, and runs.

    Their faults go to the same endpoint.
    """
    endpoint = script.make("ENDPOINT")
    threads = [script.thread(frame=script.make("FRAME_4K"), handler=endpoint)
               for _ in range(senders)]  # fmt: skip
    script.syscall("YIELD")
    for _ in threads:
        script.syscall("SEND", endpoint, message(1, 0, 0, 0))
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    assert script.begin("CNODE_RECYCLE", endpoint, 1)
    assert script.now_runs(threads[0])
    return endpoint, threads


def a_closed_endpoint_is_used(script: Script) -> None:
    """Who sends or receives hears that it is recycled, and goes on."""
    if not has_field("endpoint", "abort_at"):
        return
    endpoint, threads = _being_closed(script, 3)
    registers = [API["SYSCALL_FAILED"] | E["ABORTED"], message(0, 0, 0, E["ABORTED"])]
    for name in ("SEND", "CALL", "RECEIVE", "NB_SEND"):
        script.meanwhile(name, endpoint, message(1, 0, 0, 0), [ANY_WORD], force=False)
        assert script.now_runs(threads[0])
        assert script.run.host.words(script.object_of(threads[0]), 2) == registers, name


def a_fault_is_sent_to_a_closed_endpoint(script: Script) -> None:
    """Nobody handles it: the thread stops with the registers that it had."""
    if not has_field("endpoint", "abort_at"):
        return
    _, threads = _being_closed(script, 2)
    address = script.object_of(threads[0])
    for i in range(2):  # not the result of its wake-up
        script.run.host.write(address + 4 * i, ANY_WORD)
    registers = script.run.host.words(address, 8)
    script.meanwhile_fault("DATA_ABORT")
    assert not script.now_runs(threads[0])
    assert script.run.host.words(address, 8) == registers
    assert script.run.host.word(address + offset("tcb", "state")) == 0
    assert read_field(script.run.host.word, "tcb", address, "queued") == 0


def who_closed_an_empty_endpoint_is_stopped(script: Script) -> None:
    """All who waited were woken: it is idle, and whoever sends next waits."""
    if not has_field("endpoint", "abort_at"):
        return
    endpoint, threads = _being_closed(script, 1)
    script.meanwhile_invoke(TCB, "TCB_SUSPEND")
    assert script.run.host.word(script.object_of(endpoint)) == 0
    script.meanwhile("SEND", endpoint, message(1, 0, 0, 0), force=False)
    assert _waits(script, threads[0])


def who_closed_an_empty_endpoint_loses_its_context(script: Script) -> None:
    """It waits for time, and keeps nobody from the endpoint meanwhile."""
    if not script.is_timed or not has_field("endpoint", "abort_at"):
        return
    endpoint, threads = _being_closed(script, 1)
    script.meanwhile_invoke(API["ROOT_CONTEXT"], "CONTEXT_UNBIND")
    assert script.run.host.word(script.object_of(endpoint)) == 0
    script.meanwhile("SEND", endpoint, message(1, 0, 0, 0), force=False)
    assert _waits(script, threads[0])


def a_recycling_is_taken_over_before_a_badge_is_aborted(script: Script) -> None:
    """Who began the first is not told of an abort that nobody made."""
    if not has_field("endpoint", "abort_at"):
        return
    sleeping = script.make("ENDPOINT")
    _, badged, senders = _begun(script, (1, 2, 2))
    _until_first_runs(script, sleeping)
    _recycle(script, badged[1])
    assert script.begin("CNODE_RECYCLE", badged[0], 1)
    assert script.now_runs(senders[1])
    _recycle(script, badged[0])
    script.meanwhile("SEND", badged[1], message(1, 0, 0, 0), force=False)
    _until_first_runs(script, sleeping)
    assert _waits(script, senders[1])
    _recycle(script, badged[1])
    assert not _waits(script, senders[1])
