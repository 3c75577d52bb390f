# SPDX-License-Identifier: BSD-2-Clause
"""The preset ``mcs`` is built with its own bound, and is not much slower than ``after``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from campaigns.mcs_results import figures
from campaigns.minimum_budget import BOARDS, Board, Minimum, fits, stated, ticks
from tests.testing.harness import build
from tests.testing.harness.cases import spread

KZM, CUBIEBOARD = BOARDS
FILES = ("kernel.elf", "kernel.facts")
BASELINE = build.ROOT / "tests/wcet/baseline.json"


@pytest.mark.slow("analyses whole kernels")
@pytest.mark.parametrize("board", spread(BOARDS, 1), ids=lambda board: board.name)
def test_the_minimum_budget_covers_the_bound_of_the_kernel_it_is_built_into(
    board: Board, tmp_path: Path
) -> None:
    """Else ``make campaign-minimum_budget ARGS=--write`` makes it so.

    In a process and with a store of its own: the order of earlier terms decides which candidates
    are tried first, and a stored proof is one of any order.
    """
    build.kernel(f"{board.name}-mcs", *FILES)
    command = [sys.executable, "-m", "campaigns.minimum_budget", "--board", board.name]
    done = subprocess.run(
        command,
        cwd=build.ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_budget_fits_from_its_minimum_to_a_256th_above() -> None:
    needed = Minimum(25600, 512)
    fitting = [fits(Minimum(n, m), needed) for n, m in ((25600, 512), (25700, 514), (25599, 512))]
    assert fitting == [True, True, False]
    assert not fits(Minimum(25600, 511), needed)
    assert not fits(Minimum(25701, 512), needed)


def test_time_makes_interrupts_three_tenths_later_at_most() -> None:
    """The stated budget is the latency; the baseline has the latency of ``after``."""
    after = json.loads(BASELINE.read_text())["entries"]["interrupt latency"]["cycles"]
    latency = stated(KZM).BUDGET_MIN
    assert latency <= 1.3 * ticks(KZM, after)


def test_ticks_are_rounded_up() -> None:
    assert ticks(KZM, 0) == 1
    assert ticks(KZM, 1) == 2
    assert ticks(KZM, 8) == 2
    assert ticks(KZM, 9) == 3
    assert ticks(CUBIEBOARD, 42 * 1000) == 1001


def test_a_program_prints_figures() -> None:
    text = "TAP version 13\n1..1\n# yield-mean 12\n# says nothing\nok 1 - x\n# a 10 24\n# a 10 25\n"
    assert figures(text) == [("yield-mean", "12"), ("a 10", "24"), ("a 10 (2)", "25")]
