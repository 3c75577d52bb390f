"""Cache classification against concrete caches, many cases: ``python -m campaigns.caches``.

Arguments: number of cases (100,000 by default), first seed. Prints the coverage; exits with status
1 at the first wrong claim.
"""

from __future__ import annotations

import sys
import time
from random import Random

from tests.testing.cache.walks import check


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    start = time.perf_counter()
    hits = misses = first_misses = streams = charged = happened = 0
    for seed in range(first, first + cases):
        try:
            tally = check(Random(seed))
        except AssertionError as error:
            print(f"seed {seed}: {error}")
            return 1
        hits += tally.hits
        misses += tally.missing
        first_misses += tally.first
        streams += tally.streams
        charged += sum(tally.charged.values())
        happened += sum(tally.happened.values())
    print(
        f"{cases} programs, {hits} hits and {misses} misses confirmed, {first_misses} first "
        f"misses, {streams} loads of streams, {charged} charged, {happened} happened, "
        f"{time.perf_counter() - start:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
