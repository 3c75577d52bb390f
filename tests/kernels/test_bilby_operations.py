# SPDX-License-Identifier: BSD-2-Clause
"""Each barrier and coprocessor access is there, which an emulator without caches cannot show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.bilby.build import BILBY
from tests.testing.bilby.listing import Function, Insn
from tests.testing.bilby.operations import (
    MACHINES,
    differences,
    of_assembly,
    of_headers,
    operations,
    stated,
)
from tests.testing.harness import build

BUILDS = {board: [f"{board}-after"] for board in MACHINES}
BUILDS["kzm"] += ["kzm-latency-l1", "kzm-latency-l2"]


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """All that is looked at here is built."""
    for names in BUILDS.values():
        for name in names:
            build.kernel(name, "kernel.elf")


@pytest.mark.parametrize("board", MACHINES)
def test_operations_are_as_stated(board: str, tmp_path: Path) -> None:
    """And nothing is stated of a function that there is not."""
    machine = MACHINES[board]
    found = of_headers(machine, BILBY, tmp_path)
    for name in BUILDS[board]:
        found |= of_assembly(build.ROOT / "build" / "bilby" / name / "kernel.elf")
    assert not differences(machine, found)
    assert set(stated(machine)) <= set(found)


def test_a_difference_is_told() -> None:
    flush = Insn(0, 0, "mcr", "15, 0, r3, cr7, cr5, {4}")
    listed = operations(
        Function("f", [flush, Insn(4, 0, "mov", "r0, r1"), Insn(8, 0, "isb", "sy")])
    )
    assert listed == ("mcr p15 0 c7 c5 4", "isb")
    told = differences("arm1136", {"machine_drain": listed, "unknown": listed})
    assert told == [
        "machine_drain: mcr p15 0 c7 c5 4, isb; stated is mcr p15 0 c7 c10 4 =0",
        "unknown: mcr p15 0 c7 c5 4, isb; stated is nothing",
    ]
    assert not differences("arm1136", {"machine_copy_line": ()})
    assert differences("arm1136", {"idle_loop": ()}) == [
        "idle_loop: nothing; stated is mcr p15 0 c7 c0 4 =0"
    ]


def test_conditional_accesses_are_told() -> None:
    insns = [Insn(0, 0, "movne", "r3, #1"), Insn(4, 0, "mcrne", "15, 0, r3, cr13, cr0, {2}")]
    assert operations(Function("f", insns)) == ("mcrne p15 0 c13 c0 2",)
    assert operations(Function("f", [Insn(0, 0, "mcrr", "15, 0, r3, r4, cr2")])) == ()


def test_a_constant_is_told_until_its_register_is_written() -> None:
    flush = Insn(0, 0, "mcr", "15, 0, r3, cr7, cr5, {4}")
    zero, load = Insn(0, 0, "mov", "r3, #0"), Insn(0, 0, "ldr", "r3, [r1]")
    listed = operations(Function("f", [zero, flush, flush, load, flush]))
    assert listed == ("mcr p15 0 c7 c5 4 =0", "mcr p15 0 c7 c5 4 =0", "mcr p15 0 c7 c5 4")
