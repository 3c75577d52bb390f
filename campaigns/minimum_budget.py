"""The least budget of the preset ``mcs``, from its own bound: ``make campaign-minimum_budget``.

A thread that is chosen to run must be able to leave the kernel within the remaining budget of its
context: from any entry to the first preemption point or the exit, and through a waiting interrupt.
That time is the kernel's worst interrupt latency. It is analysed for the kernel itself and built
into it as ``BUDGET_MIN`` (``kernels/bilby/boards/*/budget.h``), in ticks of the board's clock,
until the number covers the kernel with it, and is at most a 256th above: the number is an immediate
of the code, so that two may require each other for ever. So a preempted call reaches its first
preemption point each time it is made. ``BUDGET_OVERRUN`` is the interrupt path alone: how long a
thread that is not in the kernel runs beyond its budget, at worst, until the alarm is handled. A
budget is at least the sum of both.
Without ``ARGS=--write`` nothing is written; exits with status 1 if a number does not fit, or if a
bound depends on a number of contexts, of threads, or of anything else.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from campaigns.kernel_bounds import ENTRIES
from tests.testing.harness import build
from wcet.analysis.analysis import analyse
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import StageLog
from wcet.request import add_analysis, requested

__all__ = ["BOARDS", "Board", "Minimum", "fits", "main", "minimum", "stated", "ticks"]

ROUNDS = 5  # until the number fits; two are enough as a rule
SLACK = 256  # the part of a number by which it may be above


@dataclass(frozen=True, slots=True)
class Board:
    """A board, with the frequency of its clock.

    The core's cycles for one tick are rounded down, so that no tick is missing: on the i.MX31 the
    peripheral clock is an eighth of the core's 532 MHz; on the A10 24 MHz of 1,008 MHz.
    """

    name: str
    cycles_per_tick: int


BOARDS = (Board("kzm", 8), Board("cubieboard", 42))


@dataclass(frozen=True, slots=True)
class Minimum:
    """Ticks of the board's clock, by the names that they have in the kernel."""

    BUDGET_MIN: int
    BUDGET_OVERRUN: int


def analysed(board: Board) -> Mapping[str, EntryResult]:
    """The bounds of all entries."""
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    options = requested(parser.parse_args([f"--platform={board.name}"]), [])
    kernel = build.ROOT / "build/bilby" / f"{board.name}-mcs" / "kernel.elf"
    return analyse(kernel, options, StageLog(verbose=False)).entries


def minimum(board: Board, entries: Mapping[str, EntryResult]) -> Minimum:
    """From an interrupt until its handling is over, at worst: anywhere, and outside the kernel."""
    interrupt = entries["interrupt"].cycles
    latency = max(entries[name].cycles for name in ENTRIES) + interrupt
    return Minimum(ticks(board, latency), ticks(board, interrupt))


def fits(built: Minimum, needed: Minimum) -> bool:
    """Whether the numbers in the kernel cover those that it needs, and are hardly above."""
    pairs = zip(asdict(built).values(), asdict(needed).values(), strict=True)
    return all(least <= number <= least + least // SLACK for number, least in pairs)


def greater(one: Minimum, other: Minimum) -> Minimum:
    """The greater of each number."""
    pairs = zip(asdict(one).values(), asdict(other).values(), strict=True)
    return Minimum(*(max(pair) for pair in pairs))


def ticks(board: Board, cycles: int) -> int:
    """Ticks of the board's clock, rounded up, plus one for the tick that has already begun."""
    return -(-cycles // board.cycles_per_tick) + 1


def header(board: Board) -> Path:
    return build.ROOT / "kernels/bilby/boards" / board.name / "budget.h"


def stated(board: Board) -> Minimum:
    """The numbers in the kernel's sources."""
    text = header(board).read_text(encoding="utf-8")
    found = dict(re.findall(r"^#define (BUDGET_\w+) (\d+)", text, re.M))
    return Minimum(**{name: int(number) for name, number in found.items()})


def write(board: Board, numbers: Minimum) -> None:
    path = header(board)
    text = path.read_text(encoding="utf-8")
    for name, number in asdict(numbers).items():
        text = re.sub(rf"(?m)^#define {name} \d+", f"#define {name} {number}", text)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", choices=[board.name for board in BOARDS], action="append")
    parser.add_argument("--write", action="store_true", help="into budget.h, until it fits")
    options = parser.parse_args()
    failed = False
    for board in BOARDS:
        if board.name not in (options.board or [board.name]):
            continue
        for again in range(ROUNDS):
            build.make("kernels/bilby", f"BOARD={board.name}", "PRESET=mcs")
            entries = analysed(board)
            numbers, built = minimum(board, entries), stated(board)
            fitting = fits(built, numbers) and all(e.parametric is None for e in entries.values())
            print(f"{board.name}: {numbers}; built with {built}")
            if fitting or not options.write:
                break
            write(board, greater(numbers, built) if again else numbers)
        failed |= not fitting
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
