# SPDX-License-Identifier: BSD-2-Clause
"""The programs beside the test suite run on both boards, with every preset."""

from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path

import pytest

from bench import interrupts, ipc
from bench.interrupts import AT_USER, interrupts_taken
from campaigns.kernel_bounds import sizes
from quoll.image.image import Image
from quoll.recordings.trace import Execution, Trace
from tests.testing.bilby.build import BOARDS, BUILDS, RUN, output
from tests.testing.bilby.tap import check_tap
from tests.testing.harness import build as products
from tests.testing.harness import qemu
from tests.testing.harness.cases import cases, spread
from wcet.platforms.platform_model import load

# Code that latency.elf interrupts, where a preset has it.
MET = {AT_USER, "1", "2", "3", "4", "6", "8", "9", "10", "12"}
COMMENT = re.compile(r"^# .*\n", re.M)
INTERRUPTS = re.compile(r"# interrupts (\d+)\n")


PROGRAMS = ["hello", "pingpong", "steer", "queues", "ordinary", "thumb-ordinary", "thumb-pingpong"]
SOME = spread(BUILDS, 4)


@pytest.mark.parametrize(("program", "build"), spread(product(PROGRAMS, SOME), 8))
def test_program(build: str, program: str) -> None:
    products.kernel(build, "kernel.elf", f"{program}.elf")
    assert check_tap(output(RUN, build, program)).lines


@pytest.mark.parametrize("build", SOME[: cases(2)])
def test_interrupts_come_once_each_at_every_preemption_point(build: str, tmp_path: Path) -> None:
    """The program compares raised and delivered interrupts of the timer.

    The recording shows the interrupts that the kernel took, and their places.
    """
    done = qemu.run_bilby(build, "latency", tmp_path / "trace")
    text = done.stdout.replace("\r", "")
    check_tap(INTERRUPTS.sub("", text))
    counts = [int(count) for count in INTERRUPTS.findall(text)]
    assert len(counts) == 6
    taken = interrupts_taken(Trace.read(tmp_path / "trace"), Image.load(products.kernel(build)))
    assert taken.total() == sum(counts)
    assert all(taken[name] for name in taken if name in MET), taken
    assert len(taken) >= (2 if build.endswith("-before") else 8)


@pytest.mark.parametrize("build", SOME[-cases(2) :])
def test_interrupts_come_once_each_in_thumb_code(build: str) -> None:
    """A call that is preempted there is made again two bytes before."""
    products.kernel(build, "kernel.elf", "thumb-latency.elf")
    text = output(RUN, build, "thumb-latency").replace("\r", "")
    assert check_tap(INTERRUPTS.sub("", text)).lines
    assert sum(int(count) for count in INTERRUPTS.findall(text)) > 0


# Each scheduler; the one whose boards differ in their alarms on both. Here one with slices of time:
# programs of test_bilby_time share contexts of time.
SHARES = ["kzm-after", "kzm-before", "cubieboard-mcs", "cubieboard-latency", "kzm-mcs"]


@pytest.mark.parametrize("build", spread(SHARES, 1))
def test_equals_have_equal_shares(build: str) -> None:
    """The program prints each thread's share of a hundred slices, at 8 ns for each instruction."""
    products.kernel(build, "kernel.elf", "shares.elf")
    env = {**os.environ, "BILBY_TIMEOUT": "500"}
    text = output(RUN, build, "shares", "-icount", "shift=3,sleep=off", env=env)
    assert check_tap(COMMENT.sub("", text.replace("\r", ""))).lines


# The vectors of undefined instruction, prefetch abort, data abort, interrupt.
SCHEDULING = {0xFFFF0000 + offset for offset in (0x4, 0xC, 0x10, 0x18)}


@pytest.mark.parametrize("board", spread(BOARDS, 1))
def test_executions_have_the_fixed_sizes(board: str, tmp_path: Path) -> None:
    """Lists of blocked threads and the memory of one retype are as long as docs/ilp.md says."""
    build, trace = f"{board}-before", tmp_path / "trace"
    check_tap(qemu.record(trace, build, "fixed_sizes").replace("\r", ""))
    executed = Trace.read(trace).executions
    symbols = Image.load(products.kernel(build)).symbols
    (removal,), (chunk,) = symbols.named("blocked_thread"), symbols.named("create_clear_chunk")
    longest = sizes()
    removed = {e.pcs[0] for e in executed if count(e, removal.addr) == longest["blocked_threads"]}
    assert removed == SCHEDULING
    assert max(count(e, removal.addr) for e in executed) == longest["blocked_threads"]
    # The function is called once more, for the bytes behind the last whole chunk.
    assert max(count(e, chunk.addr) for e in executed) == longest["object_chunks"] + 1


def count(execution: Execution, address: int) -> int:
    """How often an execution reaches the instruction at ``address``."""
    return execution.pcs.tolist().count(address)


def test_the_table_of_interrupts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, kernel = tmp_path / "trace", products.kernel("kzm-after")
    qemu.run_bilby("kzm-after", "hello", trace)
    assert interrupts.main([str(trace), str(kernel)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[1].split() == [*AT_USER.split(), "0"]
    assert rows[-1].split() == ["all", "0"]
    assert interrupts.main([str(trace), str(kernel.with_name("hello.elf"))]) == 2
    assert "no symbol handle_interrupt" in capsys.readouterr().err


@pytest.fixture(scope="module")
def pingpong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = tmp_path_factory.mktemp("pingpong") / "trace"
    assert qemu.run_bilby("kzm-after", "pingpong", trace).returncode == 0
    return trace


def test_rounds_are_found_and_timed(pingpong: Path) -> None:
    image = Image.load(products.kernel("kzm-after"))
    found = ipc.rounds(Trace.read(pingpong))
    assert all(made.times >= 63 for made in found)
    assert [len(made.executions) for made in found] == [2, 2, 2, 2, 2, 3]
    calls = [made.executions[0] for made in found[:4]]
    lengths = [len(call.pcs) for call in calls]
    assert lengths == sorted(lengths)
    through = "fastpath_call", "fastpath_reply_receive", "handle_interrupt"
    for execution, name in zip(
        (*found[0].executions, found[5].executions[0]), through, strict=True
    ):
        symbol = image.symbol(name)
        assert symbol is not None
        assert symbol.addr in execution.pcs.tolist()
    call, answer = ipc.timed(found[0], image, load("kzm"), states=3)
    assert min(call.again) >= lengths[0], "an instruction takes a cycle at least"
    assert max(call.again) < min(call.first)
    assert [call, answer] == ipc.timed(found[0], image, load("kzm"), states=3)


def test_a_recording_without_rounds(tmp_path: Path) -> None:
    qemu.run_bilby("kzm-after", "hello", tmp_path / "trace")
    assert ipc.rounds(Trace.read(tmp_path / "trace")) == []
