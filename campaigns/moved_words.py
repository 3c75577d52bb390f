"""Random nests that move positions: no execution counts more than executions followed together.

    make campaign-moved_words ARGS='--programs 3000 --fields 500 --seed 1'

Prints how many nests have counts, how many of these have a total below the product of their bounds,
and each contradiction. Exits with status 1 if an execution counts more.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from random import Random

from loopbounds.execution.counts import ExecutionCounts
from loopbounds.execution.together import executed_together
from tests.testing.loopbounds.counting import Program
from tests.testing.loopbounds.moved_words import (
    FIELD_FLAGS,
    MEMORY,
    broken_counts,
    moved_fields,
    moved_words,
)
from tests.testing.quoll.building import build

__all__ = ["compare", "fields"]

TOGETHER = 20  # functions of an ELF
LEVELS = ("-O0", "-O0", "-O1", "-O2", "-Os")
# The bytes of memory, in each of six executions of a function.
BYTES = ((0,), (255,), (77,), (0, 77), (0, 1, 2, 77, 255), tuple(range(256)))


def compare(code: Program, random: Random) -> tuple[str, list[str]]:
    """The kind of result, and the counts that some executions exceed."""
    found = executed_together(code.graph, code.image, code.values, {})
    if not isinstance(found, ExecutionCounts):
        return "no counts", []
    contents = [bytes(random.choices(some, k=256)) for some in BYTES]
    broken = [text for content in contents for text in broken_counts(code, found, content)]
    lower = any(
        found.totals[loop.index] < found.most[loop.parent] * found.most[loop.index]
        for loop in code.graph.loops
        if loop.parent is not None
    )
    return "lower total" if lower else "counts", broken


def fields(random: Random) -> Program:
    """A random C program, compiled at a random level in ARM or Thumb state."""
    source, level = moved_fields(random), random.choice(LEVELS)
    thumb = random.random() < 0.3
    elf = build(source, *FIELD_FLAGS, optimise=level, thumb=thumb, cpu="cortex-a8")
    return Program(elf, "main", memory=MEMORY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=3000)
    parser.add_argument("--fields", type=int, default=500, help="C programs with structures")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first group of 20 nests")
    options = parser.parse_args()
    kinds, bad = Counter[str](), 0
    for group in range(options.first, options.first + -(-options.programs // TOGETHER)):
        random = Random(f"{options.seed} {group}")
        elf = build(moved_words(random, TOGETHER), language="asm", cpu="cortex-a8")
        for number in range(TOGETHER):
            code = Program(elf, f"f{number}", memory=MEMORY)
            kind, broken = compare(code, random)
            kinds[kind] += 1
            bad += bool(broken)
            for text in broken:
                print(f"group {group} f{number}: {text}", flush=True)
    for number in range(options.fields):
        random = Random(f"{options.seed} fields {number}")
        kind, broken = compare(fields(random), random)
        kinds[f"fields: {kind}"] += 1
        bad += bool(broken)
        for text in broken:
            print(f"fields {number}: {text}", flush=True)
    used = os.times()
    print(f"{kinds.total()} nests: {dict(kinds)}; {bad} contradicted; {used.user:.0f} s")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
