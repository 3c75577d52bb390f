"""Random programs with many calls: bounds with shared contexts, against what is executed.

python -m tests.campaigns.call_strings [FIRST [LAST]]        seeds, the last one excluded
"""

from __future__ import annotations

import sys

from quoll.errors import UnboundedLoop
from quoll.telling import Telling
from tests.wcet.programs import check
from tests.wcet.test_call_strings import analysed, calling_program

LEVELS = ("-O0", "-O1", "-O2", "-Os")
LENGTHS = (2, 1, 0)


def main() -> None:
    """Print a row per program; stops with AssertionError where a bound is not one."""
    given = [int(a) for a in sys.argv[1:]]
    seeds = range(*[*given, *(40, 70)[len(given) :]])
    for seed in seeds:
        elf = calling_program(seed, LEVELS[seed % len(LEVELS)])
        row = []
        try:
            whole = analysed(elf).entries["main"]
        except UnboundedLoop:
            print(seed, "has a loop without a bound", flush=True)
            continue
        for length in LENGTHS:
            try:
                result = analysed(elf, Telling(length))
            except UnboundedLoop:
                row.append("no bound for all callers")
                continue
            entry = result.entries["main"]
            assert entry.cycles >= whole.cycles, (seed, length)
            assert entry.path.unrealisable is None, (seed, length)
            check(result, seed, inputs=3, states=2)
            row.append(f"{entry.cycles / whole.cycles:.3f} ({len(entry.graph.contexts)})")
        print(seed, whole.cycles, f"({len(whole.graph.contexts)})", *row, flush=True)


if __name__ == "__main__":
    main()
