# SPDX-License-Identifier: BSD-2-Clause
"""The programs beside the test suite run on both boards, with every preset."""

from __future__ import annotations

import re

import pytest

from tests.harness import build as products
from tests.kernels.bilby import BILBY, RUN, output
from tests.kernels.tap import check_tap

BOARDS = ("kzm", "cubieboard")
PRESETS = sorted(path.stem for path in (BILBY / "presets").glob("*.mk"))
BUILDS = [f"{board}-{preset}" for board in BOARDS for preset in PRESETS]
INTERRUPTS = re.compile(r"# interrupts (\d+)\n")


def run(build: str, program: str) -> str:
    products.kernel(build)
    return output(RUN, build, program).replace("\r", "")


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("program", ["hello", "pingpong", "steer"])
def test_program(build: str, program: str) -> None:
    assert check_tap(run(build, program)).lines


@pytest.mark.parametrize("build", BUILDS)
def test_interrupts_come_once_each_while_operations_run(build: str) -> None:
    """The program itself compares what the timer raised with what was delivered."""
    text = run(build, "latency")
    counts = [int(count) for count in INTERRUPTS.findall(text)]
    assert len(counts) == 3
    assert all(counts)
    assert sum(counts) > 20
    check_tap(INTERRUPTS.sub("", text))
