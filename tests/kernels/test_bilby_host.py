# SPDX-License-Identifier: BSD-2-Clause
"""The host build of `bilby`: the checks can fail, and hostile system calls do no harm."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator

import pytest

from kernels.bilby.verification.fuzz.host import CheckFailure, Host, program, running
from tests.testing.harness.cases import cases

YIELD = 7
ROOT_THREAD_SIZE = 256


@pytest.fixture(scope="module")
def table() -> dict[str, int]:
    done = subprocess.run(["nm", program()], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


@pytest.fixture(scope="module")
def shared() -> Iterator[Host]:
    with running(program()) as host:
        yield host


@pytest.fixture
def host(shared: Host) -> Host:
    shared.reset()
    return shared


def test_a_system_call_that_changes_nothing(host: Host) -> None:
    assert host.syscall(YIELD, [0] * 6).changes == {}


def test_what_an_operation_changes_is_seen_and_undone(host: Host) -> None:
    thread = host.syscall(YIELD, [0] * 6).current
    host.syscall(1, [7, 0, 0, 0, 0, 0])
    assert host.syscall(99, [0x1234, 0, 0, 0, 0, 0]).changes == {
        thread: 0x8000000D,
        thread + 4: 13 << 12,
    }
    host.reset()
    assert host.word(thread) == 0x001FD000  # ROOT_INFO


def test_a_host_that_waits_for_more_is_no_end_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A faulty kernel can leave it so: in the middle of an operation that was sent whole."""
    monkeypatch.setattr("kernels.bilby.verification.fuzz.host.QUIET_SECONDS", 0.2)
    with running(program()) as host, pytest.raises(CheckFailure, match="waits for more"):
        host.answers([b"\x01\x00\x00\x00"])


# Offsets in a thread control block and in the first thread's slots (objects.layout).
CORRUPTIONS = [
    ("S4", "ready_words", 0, 1),
    ("S4", "ready_bits", 4, 0x10),
    ("S1", "ready", 8 * 7 + 4, 0xB0100000),
    ("S6", "thread", 64, 0x1D3),
    ("S6", "thread", 68, 77),
    ("S2", "thread", 72, 0x010000FF),
    ("S5", "woken", 0, 0xB0100000),
    ("S5", "thread", 68, 2),
    ("S7", "idle_thread", 68, 1),
    ("S7", "idle_thread", 72, 255),
    ("W3", "thread", 192, 0),
    ("B5", "thread", 112, 0),
    ("B5", "thread", 112, 0xB0100000),
    ("W1", "slot", 16 * 1 + 12, 0x1000),
    ("W2", "slot", 16 * 1 + 12, 0),
    ("W3", "slot", 16 * 200 + 8, 3),
    ("D1", "transit", 0, 3),
    ("D2", "idle_thread", 128, 0x180000),
    ("D7", "next_owner", 0, 0xB0100000),
    ("A1", "slot", 16 * 16, 0xB0100101),
    ("A3", "slot", 16 * 16 + 4, 0xFFFFFE16),
    ("W5", "slot", 16 * 16 + 8, 0),
    ("W5", "slot", 16 * 10 + 8, 1),
    ("W5", "slot", 16 * 10 + 12, 3),
    ("B7", "slot", 16 * 1 + 4, 31 << 5 | 14),
    ("Q5", "thread", 104, 0xB0100000),
    ("P1", "slot", 16 * 224, 0x43F8120F),
    ("P1", "slot", 16 * 224, 0x8A10020F),
    ("P2", "slot", 16 * 225, 0x43F00887),
    ("P3", "slot", 16 * 224 + 4, 17),
    ("P3", "slot", 16 * 225, 0x43F841CF),
    ("V5", "owner", 4, 0),
    ("V1", "slot", 16 * 6 + 4, 0xB0110000),
]


@pytest.mark.parametrize(("invariant", "place", "offset", "value"), CORRUPTIONS)
def test_each_invariant_can_fail(
    host: Host, table: dict[str, int], invariant: str, place: str, offset: int, value: int
) -> None:
    thread = host.syscall(YIELD, [0] * 6).current
    slots = host.word(table["root_slots"])
    base = {"thread": thread, "slot": slots}.get(place) or table[place]
    host.write(base + offset, value)
    with pytest.raises(CheckFailure, match=invariant):
        host.interrupt(1)


@pytest.mark.parametrize(
    ("invariant", "offset", "bits"), [("R1", 192, 0x20), ("B6", 160, 9), ("B6", 176, 2)]
)
def test_a_threads_own_slots_are_checked(
    host: Host, invariant: str, offset: int, bits: int
) -> None:
    place = host.syscall(YIELD, [0] * 6).current + offset
    host.write(place, host.word(place) ^ bits)
    with pytest.raises(CheckFailure, match=invariant):
        host.interrupt(1)


ROOT_FRAME_1M, ROOT_FRAME_16M, ROOT_UNTYPED = 10, 11, 16


@pytest.mark.parametrize(
    ("invariant", "source", "to"),
    [
        ("B3", ROOT_FRAME_1M, ROOT_FRAME_16M),  # the same object in two lists
        ("B2", ROOT_UNTYPED, ROOT_UNTYPED + 1),  # a region inside of one that it is not below
    ],
)
def test_a_capability_that_stands_elsewhere_is_seen(
    host: Host, table: dict[str, int], invariant: str, source: int, to: int
) -> None:
    slots = host.word(table["root_slots"])
    host.write(slots + 16 * to, host.word(slots + 16 * source))
    host.write(slots + 16 * to + 4, host.word(slots + 16 * source + 4) + (invariant == "B2"))
    with pytest.raises(CheckFailure, match=invariant):
        host.interrupt(1)


def test_a_device_that_was_not_derived_from_its_region_is_seen(
    host: Host, table: dict[str, int]
) -> None:
    """Of a region that is used to its end, a piece stands in another list."""
    slots = host.word(table["root_slots"])
    host.write(slots + 16 * 224 + 4, 16)
    host.write(slots + 16 * 225, 0x43F841CF)
    with pytest.raises(CheckFailure, match="P4"):
        host.interrupt(1)


def test_a_descriptor_changed_behind_its_capability_is_seen(
    host: Host, table: dict[str, int]
) -> None:
    """Neither the capability nor the TLB agrees with it."""
    thread = host.syscall(YIELD, [0] * 6).current
    directory = 0xB0000000 | (host.word(thread + 176) >> 8 << 4)
    entry = directory + 4 * (0x00100000 >> 20)
    table_address = (host.word(entry) & ~0x3FF) - 0x8A000000 + 0xB0000000
    host.write(table_address + 4 * 0xFD, host.word(table_address + 4 * 0xFD) ^ 0x20)
    with pytest.raises(CheckFailure, match=r"V1|M3"):
        host.interrupt(1)


def test_hostile_system_calls_return_errors(host: Host) -> None:
    """Random registers, a random buffer, every system call: no invariant breaks."""
    rng = random.Random(8)
    buffer = 0xB0000000 | host.word(host.syscall(YIELD, [0] * 6).current + 112)
    interesting = [0, 1, 2, 31, 32, 33, 127, 0xFFFFFFFF, 0x80000000, 0xF0000000, 16, 1 << 28]
    for turn in range(cases(300)):
        pick = [
            rng.choice((rng.randrange(64), rng.choice(interesting), rng.getrandbits(32)))
            for _ in range(6)
        ]
        if rng.random() < 0.7:
            pick[1] = rng.randrange(20) << 12 | rng.randrange(4) << 7 | rng.randrange(128)
        if turn % 3 == 0:
            host.write(buffer + 4 * rng.randrange(128), rng.choice(interesting + pick))
        number = rng.choice((1, 1, 1, 1, 2, 3, 5, 7, 8, 0xFFFFFFFF))
        host.syscall(number, pick, force=turn % 10 == 0)
        if host.current not in (0, buffer) and host.word(host.current + 68) != 1:
            host.reset()  # everybody waits
