"""The least budget of the preset ``mcs``, from its own bound: ``make campaign-minimum_budget``.

A thread that is chosen to run must be able to leave the kernel within the remaining budget of its
context: from any entry to the first preemption point or the exit, and through a waiting interrupt.
That time is the kernel's worst interrupt latency. It is analysed for the kernel itself and built
into it as ``BUDGET_MIN`` (``kernels/bilby/boards/*/budget.h``), in ticks of the board's clock,
until kernel and number agree. So a preempted call reaches its first preemption point each time it
is made. Without ``ARGS=--write`` nothing is written; exits with status 1 if they disagree.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from campaigns.kernel_bounds import ENTRIES
from tests.testing.harness import build
from wcet.analysis.analysis import analyse
from wcet.analysis.stage_times import StageLog
from wcet.request import add_analysis, requested

__all__ = ["BOARDS", "Board", "latency", "main", "stated", "ticks"]

ROUNDS = 5  # until the number agrees; it is an immediate, so two are enough as a rule


@dataclass(frozen=True, slots=True)
class Board:
    """A board, with the frequency of its clock.

    The core's cycles for one tick are rounded down, so that no tick is missing: on the i.MX31 the
    peripheral clock is an eighth of the core's 532 MHz; on the A10 24 MHz of 1,008 MHz.
    """

    name: str
    cycles_per_tick: int


BOARDS = (Board("kzm", 8), Board("cubieboard", 42))


def latency(board: Board) -> int:
    """Cycles from the arrival of an interrupt until its handling is over, at worst."""
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    options = requested(parser.parse_args([f"--platform={board.name}"]), [])
    kernel = build.ROOT / "build/bilby" / f"{board.name}-mcs" / "kernel.elf"
    entries = analyse(kernel, options, StageLog(verbose=False)).entries
    return max(entries[name].cycles for name in ENTRIES) + entries["interrupt"].cycles


def ticks(board: Board, cycles: int) -> int:
    """Ticks of the board's clock, rounded up, plus one for the tick that has already begun."""
    return -(-cycles // board.cycles_per_tick) + 1


def header(board: Board) -> Path:
    return build.ROOT / "kernels/bilby/boards" / board.name / "budget.h"


def stated(board: Board) -> int:
    """The number in the kernel's sources."""
    text = header(board).read_text(encoding="utf-8")
    found = re.search(r"^#define BUDGET_MIN (\d+)", text, re.M)
    assert found is not None
    return int(found[1])


def write(board: Board, number: int) -> None:
    path = header(board)
    text = path.read_text(encoding="utf-8")
    new = re.sub(r"(?m)^#define BUDGET_MIN \d+", f"#define BUDGET_MIN {number}", text)
    path.write_text(new, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into budget.h, until both agree")
    options = parser.parse_args()
    failed = False
    for board in BOARDS:
        for _ in range(ROUNDS):
            build.make("kernels/bilby", f"BOARD={board.name}", "PRESET=mcs")
            cycles = latency(board)
            number = ticks(board, cycles)
            agrees = number == stated(board)
            print(
                f"{board.name}: {cycles:,} cycles, {number:,} ticks; built with {stated(board):,}"
            )
            if agrees or not options.write:
                break
            write(board, number)
        failed |= not agrees
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
