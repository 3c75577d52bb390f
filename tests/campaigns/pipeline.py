"""Bounds against the concrete machine, many cases: ``python -m tests.campaigns.pipeline``.

Arguments: number of cases (100,000 by default), first seed. A third of them with misses, the
rest with warm caches. Prints how tight the bounds are; ends with status 1 at the first one that
is too low.
"""

from __future__ import annotations

import sys
import time
from random import Random
from statistics import median, quantiles

from pipeline.timing import Profile
from tests.pipeline.runs import check, check_warm


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    start = time.perf_counter()
    ratios: dict[str, list[float]] = {}
    for seed in range(first, first + cases):
        profile = list(Profile)[seed // 3 % 2]
        warm = seed % 3 > 0
        try:
            case = (check_warm if warm else check)(Random(seed), profile)
        except AssertionError as error:
            print(f"seed {seed}, {profile.value}, warm {warm}: {error}")
            return 1
        key = f"{profile.value}, {'warm' if warm else 'misses'}"
        ratios.setdefault(key, []).append(case.bound / max(case.concrete, 1))
    for key, values in sorted(ratios.items()):
        print(
            f"{key}: {len(values)} cases, bound/concrete median {median(values):.3f}, "
            f"99th percentile {quantiles(values, n=100)[-1]:.2f}, least {min(values):.3f}"
        )
    print(f"{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
