# SPDX-License-Identifier: BSD-2-Clause
"""Address spaces with numbers (`vspace_asid.c`), in the host build of the preset that has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernels.bilby.verification.fuzz.host import CheckFailure, Host, program, running
from kernels.bilby.verification.fuzz.run import symbols

YIELD = 7
SLOT = 16
DIRECTORY, TABLE, POOL = 3, 5, 13  # slots of the first thread


@pytest.fixture(scope="module")
def table() -> dict[str, int]:
    return symbols(program("before"))


@pytest.fixture
def host() -> Iterator[Host]:
    """One for each test: a failed check leaves its notes behind."""
    with running(program("before")) as host:
        yield host


def window(word: int) -> int:
    """The address that a capability's first word holds."""
    return 0xB0000000 | word >> 8 << 4


def place(host: Host, table: dict[str, int], name: str) -> int:
    """Addresses in the state after boot, by meaning."""
    slots = host.word(table["root_slots"])
    directory = window(host.word(slots + SLOT * DIRECTORY))
    pool = window(host.word(slots + SLOT * POOL))
    return {
        "directory": directory,
        "pool": pool,
        "pools": table["asid_pools"],
        "owner": table["owner"],
        "slots": slots,
        "table": window(host.word(slots + SLOT * TABLE)),
        "number": directory + 4 * 4094,
    }[name]


@pytest.mark.parametrize(
    ("invariant", "name", "offset", "value"),
    [
        ("V1", "slots", SLOT * TABLE + 4, 0x00100002),  # the table remembers another number
        ("V1", "directory", 4 * 2, 0x80500C1E | 0x20000),  # a section that nobody has
        ("V1", "slots", SLOT * TABLE + 4, 0),  # a table that is mapped, and says it is not
        ("V3", "pool", 0, 0xB0140000),  # number 0
        ("V3", "pool", 4 * 7, 0xB0400000),  # a number leads to no directory
        ("V3", "slots", SLOT * DIRECTORY + 4, 5),  # a capability with another number
        ("V4", "directory", 4 * 4000, 0),
        ("V4", "number", 0, 0x01000002),
        ("V5", "owner", 4, 0),
        ("V6", "directory", 4 * (0xB00 + 2), 0x80500C1E | 0x20000),
        ("V7", "slots", SLOT * POOL + 4, 3),
    ],
)
def test_each_invariant_can_fail(
    host: Host, table: dict[str, int], invariant: str, name: str, offset: int, value: int
) -> None:
    at = place(host, table, name) + offset
    assert host.word(at) != value
    host.write(at, value)
    with pytest.raises(CheckFailure, match=f"{invariant} "):
        host.interrupt(1)


def test_a_table_without_a_number_is_empty(host: Host, table: dict[str, int]) -> None:
    directory = place(host, table, "directory")
    entry = next(at for at in range(directory, directory + 0x2C00, 4) if host.word(at) & 3 == 1)
    host.write(entry, 0)
    host.write(place(host, table, "slots") + SLOT * TABLE + 4, 0)
    with pytest.raises(CheckFailure, match="V2 "):
        host.interrupt(1)


def test_a_pool_at_a_second_index_is_seen(host: Host, table: dict[str, int]) -> None:
    host.write(table["asid_pools"] + 4 * 2, place(host, table, "pool"))
    with pytest.raises(CheckFailure, match="V7 "):
        host.interrupt(1)


def test_without_a_pool_the_first_thread_faults(host: Host, table: dict[str, int]) -> None:
    """Its number is nobody's then, so it runs in the kernel's directory."""
    current = host.syscall(YIELD, [0] * 6).current
    before = host.word(place(host, table, "number"))
    assert before >> 24 != 0
    host.syscall(1, [1, 16 << 12 | 2, POOL, 32, 0, 0])  # delete
    assert host.current == current
    assert host.word(place(host, table, "directory") + 4 * 4094) == 0
    assert host.word(table["asid_pools"]) == 0
