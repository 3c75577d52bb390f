# SPDX-License-Identifier: BSD-2-Clause
"""The preset ``mcs`` is built with its own bound, and is not much slower than ``after``."""

from __future__ import annotations

import pytest

from campaigns.kernel_bounds import Bounds, bounds
from campaigns.mcs_results import figures
from campaigns.minimum_budget import BOARDS, Board, latency, stated, ticks
from tests.testing.harness import build
from tests.testing.harness.cases import spread

KZM, CUBIEBOARD = BOARDS
FILES = ("kernel.elf", "kernel.facts")
pytestmark = pytest.mark.xdist_group("budget")  # the stages of a kernel are kept for the next test


def built(preset: str) -> Bounds:
    build.kernel(f"kzm-{preset}", *FILES)
    return bounds("kzm", preset, {})


@pytest.mark.slow("analyses whole kernels")
@pytest.mark.parametrize("board", spread(BOARDS, 1), ids=lambda board: board.name)
def test_the_minimum_budget_is_the_bound_of_the_kernel_it_is_built_into(board: Board) -> None:
    """Else ``make campaign-minimum_budget ARGS=--write`` makes it so."""
    build.kernel(f"{board.name}-mcs", *FILES)
    assert stated(board) == ticks(board, latency(board))


@pytest.mark.slow("analyses whole kernels")
def test_time_makes_interrupts_three_tenths_later_at_most() -> None:
    after, mcs = built("after"), built("mcs")
    assert mcs.latency <= 1.3 * after.latency
    assert not mcs.functions  # of the number of threads, contexts or anything else


def test_ticks_are_rounded_up() -> None:
    assert ticks(KZM, 0) == 1
    assert ticks(KZM, 1) == 2
    assert ticks(KZM, 8) == 2
    assert ticks(KZM, 9) == 3
    assert ticks(CUBIEBOARD, 42 * 1000) == 1001


def test_a_program_prints_figures() -> None:
    text = "TAP version 13\n1..1\n# yield-mean 12\n# says nothing\nok 1 - x\n# a 10 24\n# a 10 25\n"
    assert figures(text) == [("yield-mean", "12"), ("a 10", "24"), ("a 10 (2)", "25")]
