# SPDX-License-Identifier: BSD-2-Clause
"""Programs about time as a capability run on both boards, and print the figures they promise."""

from __future__ import annotations

import os
import re

import pytest

from campaigns.mcs_results import figures
from tests.testing.bilby.build import BILBY, RUN, output
from tests.testing.bilby.tap import Tap, check_tap
from tests.testing.harness import build as products
from tests.testing.harness.cases import cases, spread

PRESET = "mcs"
SECONDS = "500"  # virtual time does not depend on the host, but how long it takes does
COMMENT = re.compile(r"^# .*\n", re.M)

# Each program of the preset that no other preset has, and figures that it prints.
PROGRAMS = {
    "signals": 0,
    "budgets": 2,  # over a hundred periods
    "attacks": 2,
    "modes": 0,
    "sample": 1,
    "sched_user": 1,
    "edf": 1,
    "aes": 1,
    "isolation": 9,  # of Figure 12: the hog has 10 % to 90 %
    "cfs": 1,
}
# Instructions take 4 ns instead of 1, so that a second of virtual time has a quarter of them.
SLOWED = {"isolation", "sample", "sched_user"}
SLOWER = ("-icount", "shift=2,sleep=off")
# All programs run on both boards in ``make campaign-mcs_results``; here one whose instructions
# must take 1 ns, for half a minute, and two that take long only among many cases.
LONG = ["edf", "isolation", "cfs"]
BOTH = ("attacks", "budgets")  # the least budget is another on each board
HERE = [program for program in PROGRAMS if program not in LONG[cases(1) - 1 :]]
BOARDS = ["cubieboard", "kzm"]
ON = [
    *((program, board) for board in spread(BOARDS, 1) for program in HERE if program not in BOTH),
    *((program, board) for program in BOTH for board in BOARDS),
]


def run_time(build: str, program: str) -> tuple[Tap, list[tuple[str, str]]]:
    """Fail unless all tests of a program hold; its figures, names and values."""
    products.kernel(build, "kernel.elf", f"{program}.elf")
    env = {**os.environ, "BILBY_TIMEOUT": SECONDS}
    slower = SLOWER if program in SLOWED else ()
    text = output(RUN, build, program, *slower, env=env).replace("\r", "")
    return check_tap(COMMENT.sub("", text)), figures(text)


@pytest.mark.parametrize(("program", "board"), ON)
def test_a_program_about_time(board: str, program: str) -> None:
    tap, printed = run_time(f"{board}-{PRESET}", program)
    assert tap.lines
    assert len(printed) >= PROGRAMS[program], printed


def test_every_program_of_the_preset_is_run() -> None:
    """A program that is added to the preset is added here."""

    def built(preset: str) -> set[str]:
        shown = output("make", "-C", BILBY, "-pn", f"PRESET={preset}", "tables")
        line = re.search(r"^PROGRAMS := (.*)$", shown, re.M)
        assert line is not None
        return set(line[1].split())

    assert built(PRESET) - built("after") == set(PROGRAMS)
