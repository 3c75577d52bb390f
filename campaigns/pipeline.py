"""Bounds against the concrete machines, many cases: ``python -m campaigns.pipeline``.

    python -m campaigns.pipeline [PROGRAMS [STATES [FIRST_SEED]]]

Random instruction sequences and paths of both cores; each is analysed and then executed by the
compiled machine from STATES initial states with random cache contents, replacement, prefetches,
pending accesses and busy registers. One execution is a case. Half of the programs are analysed in
either profile; straight-line code with warm caches measures how tight the block times are. Prints a
summary every minute; ends with status 1 at the first bound that is too low.
"""

from __future__ import annotations

import sys
import time
from random import Random
from statistics import median, quantiles

from pipeline.timing_model import CoreProfile
from tests.testing.pipeline.runs import BOARDS, sampled, straight_line

STRAIGHT = 10  # programs for each piece of straight-line code


def main() -> int:
    numbers = [int(text) for text in sys.argv[1:]]
    programs, states, first = [*numbers, *(50_000, 200, 1_000_000)[len(numbers) :]]
    start = shown = time.perf_counter()
    ratios: dict[str, list[float]] = {}
    cases = 0
    for seed in range(first, first + programs):
        board, profile = BOARDS[seed % 2], list(CoreProfile)[seed // 2 % 2]
        name = f"{board.core}, {profile.value}"
        try:
            case = sampled(Random(seed), profile, board, states)
            ratios.setdefault(f"{name}, misses", []).append(case.bound / case.concrete)
            if seed // 4 % STRAIGHT == 0:
                case = straight_line(Random(seed), profile, board)
                ratios.setdefault(f"{name}, straight", []).append(case.bound / case.concrete)
        except AssertionError as error:
            print(f"seed {seed}, {name}: {error}")
            return 1
        cases += states
        if time.perf_counter() - shown > 60 or seed == first + programs - 1:
            shown = time.perf_counter()
            report(ratios, cases, first, shown - start)
    return 0


def report(ratios: dict[str, list[float]], cases: int, first: int, seconds: float) -> None:
    print(f"{cases:,} cases from seed {first} in {seconds:.0f} s, none above its bound")
    for key, values in sorted(ratios.items()):
        last = quantiles(values, n=100)[-1] if len(values) > 1 else values[0]
        print(
            f"  {key}: {len(values):,} programs, bound over most seen: least {min(values):.3f}, "
            f"median {median(values):.3f}, 99th percentile {last:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
