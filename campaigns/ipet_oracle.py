"""IPET against the search over all paths, many cases: ``python -m campaigns.ipet_oracle``.

Arguments: number of cases (10,000 by default), first seed, solver (highs). Prints the coverage and
how loose repeated instances are; exits with status 1 at the first wrong result.
"""

from __future__ import annotations

import sys
import time

from ilp.solvers.solve import solver_named
from tests.testing.ilp.judging import Tally, judge


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    solver = solver_named(sys.argv[3] if len(sys.argv) > 3 else "highs")
    start = time.perf_counter()
    tally = Tally()
    for seed in range(first, first + cases):
        try:
            judge(seed, solver, tally)
        except AssertionError as error:
            print(f"case {seed}: {error}")
            return 1
    print(f"{cases} cases in {time.perf_counter() - start:.1f} s with {solver.name}: {tally}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
