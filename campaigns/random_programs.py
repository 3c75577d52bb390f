"""Random C programs against their bounds: ``python -m campaigns.random_programs``.

Arguments: number of programs (200 by default), first seed. Each is compiled at one of five levels,
analysed, run on random inputs and replayed from random states. Prints the numbers of bounded
programs and of exact loop bounds, and how tight the bounds are; exits with status 1 at the first
execution above its bound or the charge of its path, or off the graph.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from statistics import median, quantiles

from quoll.errors import UnboundedLoop
from quoll.recordings.follow import MissingEdge
from tests.testing.wcet.programs import bound, check, program

LEVELS = ("-O0", "-O1", "-O2", "-Os", "-O3")


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    start = time.perf_counter()
    tally: Counter[str] = Counter()
    margins: list[float] = []
    for seed in range(first, first + count):
        level = LEVELS[seed % len(LEVELS)]
        try:
            result = bound(program(seed, level))
            cases = check(result, seed, inputs=6, states=3)
        except UnboundedLoop:
            tally["without a bound"] += 1
            continue
        except (AssertionError, MissingEdge) as error:
            print(f"seed {seed}, {level}: {error}")
            return 1
        loops = result.entries["main"].bounds
        tally["bounded"] += 1
        tally["executions"] += len(cases)
        tally["loops"] += len(loops)
        tally["loops with an exact bound"] += sum(loop.exact is True for loop in loops)
        tally["worst path executed"] += any(c.charged == c.bound for c in cases)
        margins += [c.charged / c.most for c in cases]
    print(", ".join(f"{name} {n}" for name, n in tally.items()))
    print(
        f"charged/seen: least {min(margins):.3f}, median {median(margins):.2f}, "
        f"99th percentile {quantiles(margins, n=100)[-1]:.2f}"
    )
    print(f"{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
