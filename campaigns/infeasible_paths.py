"""Programs with exclusive decisions, refined: ``python -m campaigns.infeasible_paths``.

Arguments: number of programs (300 by default), first seed, executions of each (300). A program has
one to three pairs of decisions; in some, the tested word may change between them. Prints by kind of
a pair alone in its program how often the bound fell; exits with status 1 at the first execution
above a refined bound, or through all edges of an exclusion.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from random import Random

from quoll.errors import UnboundedLoop
from tests.testing.wcet.infeasible_programs import CHANGED, EXCLUSIVE, PairedProgram, build_pairs
from tests.testing.wcet.refined_runs import broken_exclusions, paths_of, refined

LEVELS = ("-O0", "-O1", "-O2", "-Os", "-O3")


def drawn(seed: int) -> PairedProgram:
    """A program: every second one has a single pair, the others two or three."""
    random = Random(seed)
    kinds = tuple(random.choices((*EXCLUSIVE, *CHANGED), k=1 if seed % 2 else random.randint(2, 3)))
    return build_pairs(kinds, seed, random.choice(LEVELS))


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    start = time.perf_counter()
    lower: Counter[str] = Counter()
    single: Counter[str] = Counter()
    tally: Counter[str] = Counter()
    for seed in range(first, first + count):
        program = drawn(seed)
        try:
            found = refined(program.elf)
        except UnboundedLoop:
            tally["programs without a bound"] += 1
            continue
        tally["programs"] += 1
        tally["exclusions"] += len(found.cores)
        if len(program.kinds) == 1:
            single[program.kinds[0]] += 1
            lower[program.kinds[0]] += found.cycles < found.entry.cycles
        try:
            for path in paths_of(found, runs, seed):
                tally["executions"] += 1
                broken = broken_exclusions(found, path)
                assert not broken, broken
        except AssertionError as fault:
            print(f"seed {seed}: {fault}\n{program.source}")
            return 1
    for kind in (*EXCLUSIVE, *CHANGED):
        print(f"{kind:<12}{lower[kind]:>4} of {single[kind]:>4} lower")
    print(", ".join(f"{name} {n:,}" for name, n in tally.items()))
    print(f"{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
