# SPDX-License-Identifier: BSD-2-Clause
"""Notifications and interrupt lines."""

from __future__ import annotations

from kernels.bilby.verification.fuzz.run import PREEMPT_LINE
from kernels.bilby.verification.fuzz.script import NODE, TCB, Script
from kernels.bilby.verification.spec.invocation import E
from kernels.bilby.verification.spec.layout import API, TICK, has_field, message, offset

CONTROL = API["ROOT_IRQ_CONTROL"]


def signals_add_up_and_are_taken(script: Script) -> None:
    notification = script.make("NOTIFICATION")
    badged = [script.mint(notification, 1 << i) for i in range(3)]
    script.syscall("SEND", badged[0])
    script.syscall("SEND", badged[1])
    script.syscall("RECEIVE", notification)
    script.syscall("SEND", badged[2])
    script.syscall("RECEIVE", notification)
    script.thread()
    script.syscall("RECEIVE", notification)
    script.syscall("NB_SEND", badged[1])
    script.syscall("YIELD")
    assert script.runs(TCB)


def sending_without_waiting(script: Script) -> None:
    script.thread()
    script.syscall("NB_SEND", script.make("ENDPOINT"))
    assert script.runs(TCB)


def _line(script: Script, number: int, error: str = "NONE") -> int:
    handler = script.slots()
    script.invoke(CONTROL, "IRQ_GET", [number, handler, 32], [NODE], error)
    return handler


def a_line_is_given_once_at_a_time(script: Script) -> None:
    handler = _line(script, 5)
    _line(script, 5, "ILLEGAL_OPERATION")
    script.delete(handler)
    _line(script, 5)


def a_line_has_one_notification(script: Script) -> None:
    handler = _line(script, 6)
    first, second = script.make("NOTIFICATION"), script.make("NOTIFICATION")
    script.invoke(handler, "IRQ_SET_NOTIFICATION", [], [first])
    script.invoke(handler, "IRQ_SET_NOTIFICATION", [], [second], "SLOT_OCCUPIED")
    script.delete(script.copy(handler))
    script.invoke(handler, "IRQ_CLEAR_NOTIFICATION")
    script.invoke(handler, "IRQ_SET_NOTIFICATION", [], [second])
    script.delete(handler)


def a_line_is_masked_until_acknowledged(script: Script) -> None:
    handler, notification = _line(script, 7), script.make("NOTIFICATION")
    script.invoke(handler, "IRQ_SET_NOTIFICATION", [], [notification])
    script.invoke(handler, "IRQ_ACKNOWLEDGE")
    script.interrupt(7)
    script.syscall("RECEIVE", notification)
    script.interrupt(7)
    script.invoke(handler, "IRQ_ACKNOWLEDGE")
    script.syscall("RECEIVE", notification)
    assert script.runs(TCB)


def a_signal_comes_as_its_receiver_begins_to_wait(script: Script) -> None:
    """An interrupt that is pending at its end wakes whom a receive has just blocked."""
    handler, notification = _line(script, PREEMPT_LINE), script.make("NOTIFICATION")
    script.thread()
    script.run.host.write(script.thread_of(TCB).buffer + 4 * API["BUFFER_CAPS"], notification)
    script.meanwhile(
        "CALL", handler, message(0, 1, 0, API["LABEL_IRQ_SET_NOTIFICATION"]), force=False
    )
    script.interrupt_at_the_end("RECEIVE", notification)
    script.meanwhile("YIELD", 0, force=False)


def revoking_interrupt_control_takes_the_lines(script: Script) -> None:
    handler = _line(script, 8)
    script.revoke(CONTROL)
    script.invoke(handler, "IRQ_ACKNOWLEDGE", error="INVALID_CAPABILITY")
    _line(script, 8)


def signalling_needs_the_right(script: Script) -> None:
    deaf = script.copy(script.make("NOTIFICATION"), API["RIGHT_RECEIVE"])
    script.syscall("SEND", deaf)
    script.invoke(_line(script, 9), "IRQ_SET_NOTIFICATION", [], [deaf], "NO_RIGHT")


def slices_of_time(script: Script) -> None:
    """At the end of its slice a thread moves behind its equals, and nobody else runs."""
    second, third = script.thread(), script.thread()
    script.thread(priority=254)
    for thread in (second, third, TCB, second):
        script.use_up_slice()
        script.interrupt(TICK)
        if script.run.kernel.scheduler.ordered:
            assert script.runs(thread)


def a_slice_ends_as_its_thread_blocks(script: Script) -> None:
    """Nobody takes a turn twice, or when it cannot."""
    notification = script.make("NOTIFICATION")
    other = script.thread()
    script.use_up_slice()
    script.interrupt_at_the_end("YIELD", 0, TICK, lookups=0)
    assert script.now_runs(other)
    script.interrupt_at_the_end("RECEIVE", notification, TICK)
    assert script.now_runs(TCB)
    script.use_up_slice()
    script.interrupt_at_the_end("NB_SEND", notification, TICK)
    assert script.now_runs(other)
    script.interrupt_at_the_end("YIELD", 0, TICK, lookups=0)
    assert script.now_runs(TCB)
    if not script.is_timed:  # ticks have used up its slice
        script.begin_again()
        script.thread()
    sent = message(1, 0, 0, API["LABEL_TCB_SET_PRIORITY"])
    script.interrupt_at_the_end("CALL", TCB, TICK, sent=sent, words=[255])
    if script.run.kernel.scheduler.ordered:
        assert script.now_runs(TCB)


def a_slice_ends_as_its_thread_yields(script: Script) -> None:
    """It takes one turn, behind both others."""
    others = [script.thread() for _ in range(2)]
    script.use_up_slice()
    script.interrupt_at_the_end("YIELD", 0, TICK, lookups=0)
    assert any(script.now_runs(thread) for thread in others)


def a_slice_follows_one_that_is_over(script: Script) -> None:
    """Who has used up one and waits is woken before equals that take their turns."""
    endpoint = script.make("ENDPOINT")
    script.thread(frame=script.make("FRAME_4K"))
    script.thread()
    for _ in range(3):
        script.use_up_slice()
        script.interrupt(TICK)
    if not script.runs(TCB):
        return  # lazy scheduling chooses among equals
    script.syscall("RECEIVE", endpoint)
    script.syscall("CALL", endpoint, message(API["MESSAGE_REGISTERS"] + 1, 0, 0, 0))
    assert script.runs(TCB)


def the_line_of_the_kernels_timer_is_nobodys(script: Script) -> None:
    words = [TICK, script.slots(), 32]
    script.invoke(CONTROL, "IRQ_GET", words, [NODE], "RANGE")


def a_released_line_stays_masked(script: Script) -> None:
    """Whoever gets it next hears nothing before the first acknowledgement."""
    notification, first = script.make("NOTIFICATION"), _line(script, 10)
    script.invoke(first, "IRQ_SET_NOTIFICATION", [], [notification])
    script.invoke(first, "IRQ_ACKNOWLEDGE")
    script.delete(first)
    second = _line(script, 10)
    script.invoke(second, "IRQ_SET_NOTIFICATION", [], [notification])
    script.interrupt(10)
    assert not script.run.kernel.notification(script.object_of(notification)).signalled
    script.invoke(second, "IRQ_ACKNOWLEDGE")
    script.syscall("RECEIVE", notification)
    assert script.runs(TCB)


def what_was_signalled_goes_with_recycling(script: Script) -> None:
    notification = script.make("NOTIFICATION")
    other = script.thread()
    script.syscall("SEND", script.mint(notification, 5))
    script.recycle(notification)
    script.syscall("RECEIVE", notification)
    assert script.runs(other)


def _closed(script: Script) -> tuple[int, list[int]]:
    """A notification that is being recycled, and who waited for it; the first was woken."""
    notification = script.make("NOTIFICATION")
    threads = [script.thread() for _ in range(3)]
    script.syscall("YIELD")
    for _ in threads:
        script.syscall("RECEIVE", notification)
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    assert script.begin("CNODE_RECYCLE", notification, 1)
    assert script.now_runs(threads[0])
    return notification, threads


def _badge_of(script: Script, thread: int) -> int:
    """Register 0: the result of its last system call."""
    return script.run.host.word(script.object_of(thread))


def a_signal_to_a_closed_notification_is_dropped(script: Script) -> None:
    """Who waited hears that it is recycled, and nothing is left of the signal."""
    if not has_field("endpoint", "abort_worker"):
        return
    aborted = API["SYSCALL_FAILED"] | E["ABORTED"]
    notification, threads = _closed(script)
    script.meanwhile("NB_SEND", notification, force=False)
    script.meanwhile("RECEIVE", notification, force=False)
    assert _badge_of(script, threads[0]) == aborted
    script.meanwhile("CALL", TCB, message(0, 0, 0, API["LABEL_TCB_SUSPEND"]), force=False)
    script.meanwhile("CALL", TCB, message(0, 0, 0, API["LABEL_TCB_RESUME"]), force=False)
    script.meanwhile("CALL", NODE, message(2, 0, 0, API["LABEL_CNODE_RECYCLE"]),
                     [notification, 32], force=False)  # fmt: skip
    assert [_badge_of(script, thread) for thread in threads[1:]] == [aborted, aborted]
    address = script.object_of(notification)
    assert not script.run.host.word(address + offset("notification", "pending"))


def who_waits_for_a_signal_is_suspended(script: Script) -> None:
    """The first, one between, or the last of three; the others are woken in their order."""
    for place in range(3):
        script.begin_again()
        notification = script.make("NOTIFICATION")
        threads = [script.thread() for _ in range(3)]
        script.syscall("YIELD")
        for thread in threads:
            assert script.runs(thread)
            script.syscall("RECEIVE", notification)
        script.invoke(threads[place], "TCB_SUSPEND")
        for _ in threads:
            script.syscall("SEND", notification)
        script.invoke(threads[place], "TCB_RESUME")
        for _ in threads:
            script.syscall("YIELD")


def a_receiver_may_not_receive(script: Script) -> None:
    for kind in ("ENDPOINT", "NOTIFICATION"):
        script.syscall("RECEIVE", script.copy(script.make(kind), API["RIGHT_SEND"]))
        assert script.runs(TCB)


def a_notification_is_recycled_beside_others(script: Script) -> None:
    """Behind it is a queue, where the state would be if it were a thread."""
    region = script.make("UNTYPED", 12)
    notification = script.make("NOTIFICATION", region=region)
    behind = script.make("ENDPOINT", region=region)
    while script.object_of(behind) - script.object_of(notification) < 64:
        behind = script.make("ENDPOINT", region=region)
    script.thread()
    script.syscall("YIELD")
    script.syscall("RECEIVE", behind)
    script.recycle(notification)
    script.syscall("NB_SEND", behind, message(1, 0, 0, 0))
