"""Bounds with unrolled loops are never below an execution of random programs with many calls.

python -m campaigns.unrolling [FIRST [LAST]]        seeds, the last one excluded
"""

from __future__ import annotations

import sys

from quoll.errors import UnboundedLoop
from quoll.inlining.vivu import VivuSettings
from tests.testing.wcet.calling import calling_program
from tests.testing.wcet.programs import bound, check

LEVELS = ("-O0", "-O1", "-O2", "-Os")


def main() -> None:
    """Print a row per program; stops with AssertionError where a bound is not one."""
    given = [int(a) for a in sys.argv[1:]]
    seeds = range(*[*given, *(40, 70)[len(given) :]])
    for seed in seeds:
        elf = calling_program(seed, LEVELS[seed % len(LEVELS)])
        try:
            whole = bound(elf).entries["main"]
        except UnboundedLoop:
            print(seed, "has a loop without a bound", flush=True)
            continue
        result = bound(elf, vivu=VivuSettings(unroll=True))
        entry = result.entries["main"]
        assert entry.path.unrealisable is None, seed
        check(result, seed, inputs=3, states=2)
        row = f"{entry.cycles / whole.cycles:.3f} ({len(entry.graph.contexts)})"
        print(seed, whole.cycles, f"({len(whole.graph.contexts)})", row, flush=True)


if __name__ == "__main__":
    main()
