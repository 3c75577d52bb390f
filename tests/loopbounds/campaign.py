"""Random programs against executions, for as long as wanted.

    python -m tests.loopbounds.campaign [--programs 100] [--seed 1]

Stops with the source of the first program with an execution above a bound, or an exact bound that
no execution reaches. Prints per level of optimisation how many loops got a bound, and exact ones.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

from loopbounds.bounds import BoundOptions
from loopbounds.prove import Budget
from tests.loopbounds.counting import load
from tests.loopbounds.programs import random_program
from tests.quoll.building import build

__all__ = ["check"]

ARGUMENTS = [0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 120, 127, 248, 255, 0x7FFFFFFF, 0xFFFFFFFF]
LEVELS = ("-O0", "-O1", "-O2", "-Os")


def check(source: str, optimise: str, tries: random.Random, budget: Budget) -> Counter[str]:
    """Bound the loops of ``main`` and run it; counts of loops by what was found."""
    code = load(build(source, "-fno-tree-loop-distribute-patterns", optimise=optimise))
    bounds = code.bounds(options=BoundOptions(budget, workers=1))
    most: dict[int, int] = {}
    pairs = [(a, b) for a in ARGUMENTS for b in (0, a, 255)]
    pairs += [(tries.getrandbits(32), tries.getrandbits(32)) for _ in range(20)]
    for arguments in pairs:
        for header, count in code.counts(arguments).items():
            most[header] = max(most.get(header, 0), count)
    found: Counter[str] = Counter()
    for bound in bounds:
        found["loops"] += 1
        if bound.bound is None:
            continue
        found["bounded"] += 1
        found["exact"] += bool(bound.exact)
        reached = most.get(code.header(bound), 0)
        assert reached <= bound.bound, f"{reached} > {bound}\n{optimise}\n{source}"
        found["exact reached"] += bool(bound.exact) and reached == bound.bound
        found["reached"] += reached == bound.bound
    return found


def main() -> None:
    """Run the campaign that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    totals: dict[str, Counter[str]] = {level: Counter() for level in LEVELS}
    for number in range(options.programs):
        chance = random.Random(options.seed * 1_000_003 + number)
        source = random_program(chance)
        level = LEVELS[number % len(LEVELS)]
        totals[level] += check(source, level, chance, Budget(seconds=20))
        print(number, level, dict(totals[level]), flush=True)


if __name__ == "__main__":
    main()
