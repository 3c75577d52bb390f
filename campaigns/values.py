"""More cases for value analysis: ``python -m campaigns.values CASES PROGRAMS``.

``CASES`` instruction sequences per instruction set, ``PROGRAMS`` random C programs at eight
settings each. Stops at the first difference, which it names by its seed.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter

from quoll.errors import ControlFlowError
from tests.testing.values.executed import analysed, walk
from tests.testing.values.programs import random_program
from tests.testing.values.sequences import check

SETTINGS = [(thumb, f"-O{level}") for thumb in (False, True) for level in "012s"]
FIRST = 10_000  # seeds that the tests do not use


def sequences(cases: int) -> Counter[str]:
    """Random instruction sequences from random states."""
    counts: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + cases):
        for thumb in (False, True):
            counts += check(seed, thumb)
    return counts


def programs(number: int) -> Counter[str]:
    """Random programs, executed."""
    counts: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + number):
        rng = random.Random(seed)
        for thumb, optimise in SETTINGS:
            try:
                found = analysed(random_program(seed), thumb, optimise, seed % 2 == 0)
            except ControlFlowError:  # libgcc's division in Thumb-2
                counts["not analysed"] += 1
                continue
            image, graph, values = found
            for _ in range(3):
                a, b = rng.choice([0, 3, rng.randrange(1 << 32)]), rng.randrange(1 << 10)
                counts += walk(image, graph, values, [a, b])
        analysed.cache_clear()
    return counts


if __name__ == "__main__":
    start = time.perf_counter()
    print(dict(sequences(int(sys.argv[1]))), f"{time.perf_counter() - start:.0f} s")
    start = time.perf_counter()
    print(dict(programs(int(sys.argv[2]))), f"{time.perf_counter() - start:.0f} s")
