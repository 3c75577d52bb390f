"""Random kernels with an interrupt that arrives before every instruction, against the latency.

python -m campaigns.interrupts [FIRST [LAST [INPUTS]]]     seeds, the last one excluded

Each kernel's system call is a program of the tests of segments; its handler works, tests and
acknowledges in a random order. For INPUTS pairs of arguments of the call (8) the interrupt arrives
in user mode, before each instruction of the call, and before each instruction of the path of
another interrupt, also of its own line. Prints a row per kernel; raises AssertionError if an
execution is no bounded path, or takes longer than the latency.
"""

from __future__ import annotations

import sys
from random import Random

from quoll.errors import ControlFlowError
from tests.testing.wcet.interrupts import analysed, latencies, random_kernel

SIZE = 40_000  # cycles of the latency; larger kernels have too many instructions


def main() -> None:
    """Print a row per kernel, then the sums."""
    given = [int(a) for a in sys.argv[1:]]
    first, last, inputs = [*given, *(0, 100, 8)[len(given) :]]
    kernels = arrivals = paths = refused = unbounded = large = cut = 0
    closest = 0.0
    for seed in range(first, last):
        try:
            result = analysed(random_kernel(seed))
        except ControlFlowError:  # a loop between a read and the branch that it decides
            refused += 1
            continue
        if result.latency is None:
            unbounded += 1
            continue
        if result.latency.cycles > SIZE:
            large += 1
            continue
        random = Random(f"inputs {seed}")
        arguments = [(random.randrange(32), random.randrange(32)) for _ in range(inputs)]
        found = latencies(result, seed, arguments)
        print(f"{seed} {found}", flush=True)
        kernels, arrivals, paths = kernels + 1, arrivals + found.arrivals, paths + found.paths
        cut += len(result.entries["syscall"].starts) > 1
        closest = max(closest, found.most / found.bound)
    print(
        f"{kernels} kernels, {cut} with tests that cut; {arrivals:,} arrivals on {paths:,} paths; "
        f"at most {closest:.0%} of the latency was seen; not tried: {refused} refused, {unbounded} "
        f"without a bound, {large} too large"
    )


if __name__ == "__main__":
    main()
