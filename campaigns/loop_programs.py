"""Random loops of every kind against executions: none is longer than its bound, most reach it.

    make campaign-loop_programs ARGS='--rounds 4 --seed 1'

A round has one program of each kind at each level of optimisation. Stops with the source of the
first program with an execution above a bound. A loop is exact if an execution or the model checker
reaches its bound: "not reached" counts loops whose bound only the model checker reached.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from tests.testing.loopbounds.counting import load
from tests.testing.loopbounds.programs import FLAGS, KINDS, UNCOUNTED, random_program
from tests.testing.quoll.building import build

__all__ = ["LEVELS", "check", "exact_share"]

CORNERS = [0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 120, 127, 248, 255, 0x7FFFFFFF, 0xFFFFFFFF]
LEVELS = ("-O0", "-O1", "-O2", "-Os")


def check(
    source: str,
    optimise: str,
    chance: random.Random,
    budget: Budget,
    tries: int = 200,
    flags: tuple[str, ...] = (),
) -> Counter[str]:
    """Bound the loops of ``main`` and run it; counts of loops by result."""
    code = load(build(source, "-fno-tree-loop-distribute-patterns", *flags, optimise=optimise))
    bounds = code.bounds(options=BoundOptions(budget, workers=0))
    most: dict[int, int] = {}
    pairs = [(a, b) for a in CORNERS for b in (0, a, 255)]
    pairs += [(chance.getrandbits(8), chance.getrandbits(8)) for _ in range(tries)]
    pairs += [(chance.getrandbits(32), chance.getrandbits(32)) for _ in range(tries // 4)]
    for arguments in pairs:
        for header, count in code.counts(arguments).items():
            most[header] = max(most.get(header, 0), count)
    found: Counter[str] = Counter()
    for bound in bounds:
        found["loops"] += 1
        if bound.bound is None:
            continue
        reached = most.get(code.header(bound), 0)
        assert reached <= bound.bound, f"{reached} > {bound}\n{optimise}\n{source}"
        found["bounded"] += 1
        found["called exact"] += bool(bound.exact)
        found["reached"] += reached == bound.bound
        found["exact"] += bool(bound.exact) or reached == bound.bound
        found["not reached"] += bool(bound.exact) and reached < bound.bound
    return found


def exact_share(found: dict[str, Counter[str]]) -> float:
    """The share of exact bounds among all counted loops."""
    counted = [counts for kind, counts in found.items() if kind not in UNCOUNTED]
    return sum(c["exact"] for c in counted) / sum(c["loops"] for c in counted)


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    columns = ("loops", "bounded", "exact", "called exact", "reached", "not reached")
    print("| kind |", " | ".join(columns), "|")
    for kind in KINDS:
        for number in range(options.rounds):
            for level in LEVELS:
                chance = random.Random(f"{options.seed} {number} {kind} {level}")
                source = random_program(chance, kind)
                found[kind] += check(
                    source, level, chance, Budget(seconds=20), flags=FLAGS.get(kind, ())
                )
        print(f"| {kind} |", " | ".join(str(found[kind][c]) for c in columns), "|", flush=True)
    print(f"exact: {exact_share(found):.1%} of the counted loops")


if __name__ == "__main__":
    main()
