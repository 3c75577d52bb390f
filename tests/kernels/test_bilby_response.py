# SPDX-License-Identifier: BSD-2-Clause
"""How many turns a deletion takes, as the guide says: the bound of its response time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernels.bilby.verification.fuzz.host import program, running
from kernels.bilby.verification.fuzz.script import ANY_WORD, LINE, NODE, Script
from kernels.bilby.verification.spec.layout import API, message

END = 1  # test of pending interrupts when a call is done
SLOTS_OF_A_THREAD = 6


def _simple(script: Script) -> tuple[int, int]:
    return script.make("FRAME_4K"), 2


def _waiting(script: Script) -> tuple[int, int]:
    endpoint = script.make("ENDPOINT")
    for _ in range(3):
        script.thread()
        script.syscall("YIELD")
        script.syscall("SEND", endpoint)
    return endpoint, 2 + 3


def _handler(script: Script) -> tuple[int, int]:
    handler, notification = script.slots(), script.make("NOTIFICATION")
    script.invoke(API["ROOT_IRQ_CONTROL"], "IRQ_GET", [9, handler, 32], [NODE])
    script.invoke(handler, "IRQ_SET_NOTIFICATION", [], [notification])
    return handler, 2 + 1


def _table(script: Script) -> tuple[int, int]:
    return script.make("PAGE_TABLE"), 1 + 257


def _directory(script: Script) -> tuple[int, int]:
    return script.space(), 1 + 3841


def _node(radix: int, count: int) -> Callable[[Script], tuple[int, int]]:
    def made(script: Script) -> tuple[int, int]:
        node = script.make("CNODE", radix)
        for i in range(count):
            script.invoke(node, "CNODE_MOVE", [i, radix, script.make("ENDPOINT"), 32], [NODE])
        return node, 2 + (1 << radix) + count

    made.__name__ = f"node_{radix}_{count}"
    return made


def _thread(script: Script) -> tuple[int, int]:
    """Ready to run, with two spaces, a buffer, and its own end of a reply."""
    return script.thread(frame=script.make("FRAME_4K")), 2 + 1 + SLOTS_OF_A_THREAD + 4


OBJECTS = [
    _simple, _waiting, _handler, _table, _directory, _thread,
    _node(1, 0), _node(1, 2), _node(5, 0), _node(5, 9), _node(5, 32),
]  # fmt: skip


def turns(script: Script, label: str, slot: int) -> int:
    """Of a call that deletes or revokes and is not preempted."""
    sent = message(2, 0, 0, API[f"LABEL_CNODE_{label}"])
    registers = [NODE, sent, slot, 32, ANY_WORD, ANY_WORD]
    return script.run.host.syscall(API["SYS_CALL"], registers).tests - END


@pytest.mark.parametrize("made", OBJECTS, ids=lambda made: str(made.__name__))
def test_a_deletion_takes_the_turns_that_the_guide_says(
    made: Callable[[Script], tuple[int, int]],
) -> None:
    path = program("after")
    with running(path) as host:
        script = Script(host, path, "after")
        slot, expected = made(script)
        assert turns(script, "DELETE", slot) == expected


def test_a_revocation_takes_those_of_all_that_was_derived() -> None:
    path = program("after")
    with running(path) as host:
        script = Script(host, path, "after")
        endpoint = script.make("ENDPOINT")
        for _ in range(5):
            script.copy(endpoint)
        assert turns(script, "REVOKE", endpoint) == 5 * 2


def test_what_another_thread_deletes_costs_no_turn() -> None:
    path = program("after")
    with running(path) as host:
        script = Script(host, path, "after")
        node, own = script.make("CNODE", 8), script.make("ENDPOINT")
        urgent, _ = script.urgent()
        assert script.begin("CNODE_DELETE", node, 9 | LINE << 16)
        assert script.now_runs(urgent)
        assert turns(script, "DELETE", own) == 2
