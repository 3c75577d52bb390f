"""Infeasible pairs, refined: ``python -m campaigns.infeasible_paths [PROGRAMS SEED RUNS SECONDS]``.

300 programs by default, from seed 1 on, 40 executions of each, and so many seconds of processor
time as the limit (900). Every program has a planted pair: two costly functions that no execution
calls together so often (``tests/testing/wcet/planted_programs.py``). It counts if the worst path
without refinement does, or if a summary hides one of the calls. It is removed if the worst path
with refinement does not, summaries on it included. For every fourth seed, a program is refined,
too, whose tested words may change between the decisions
(``tests/testing/wcet/infeasible_programs.py``).
Exits with status 1 at an execution above a refined bound, or through all edges of an exclusion.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from random import Random
from typing import TypeGuard

from quoll.errors import UnboundedLoop
from tests.testing.wcet.infeasible_programs import CHANGED, EXCLUSIVE, PairedProgram, build_pairs
from tests.testing.wcet.planted_programs import ALWAYS, FAMILIES, PlantedProgram, planted
from tests.testing.wcet.refined_runs import (
    broken_exclusions,
    inlined,
    paths_of,
    refined,
    removed,
)
from wcet.refinement.refine import RefinedBound

LEVELS = ("-O0", "-O1", "-O2", "-Os", "-O3")


def drawn(seed: int) -> PairedProgram:
    """A program of two or three pairs, of which some may change."""
    random = Random(seed)
    kinds = tuple(random.choices((*EXCLUSIVE, *CHANGED, *CHANGED), k=random.randint(2, 3)))
    return build_pairs(kinds, seed, random.choice(LEVELS))


def main() -> int:
    given = [*map(int, sys.argv[1:])]
    count, first, runs, seconds = (*given, *(300, 1, 40, 900)[len(given) :])
    tally: Counter[str] = Counter()
    pairs: Counter[tuple[str, bool]] = Counter()
    for seed in range(first, first + count):
        family = [*FAMILIES][seed % len(FAMILIES)]
        for program in (planted(family, seed), *((drawn(seed),) if seed % 4 == 0 else ())):
            if time.process_time() > seconds:
                break
            try:
                found = refined_program(program)
            except UnboundedLoop:
                tally["programs without a bound"] += 1
                continue
            tally["programs"] += 1
            tally["exclusions"] += len(found.cores)
            seen = found.entry.seen
            if seen is not None:
                tally["witnesses"] += 1
                tally["witnesses at the bound"] += seen.charged == found.cycles
                assert not seen.refutes(found.cycles), (seed, seen)
            if isinstance(program, PlantedProgram):
                gone = removed(program, found)
                if gone is not None:
                    pairs[family, gone] += 1
                if gone is False:
                    print(f"seed {seed}: {family}, {program.built}: not removed", flush=True)
            try:
                plain = inlined(program) if summarised(program) else None
                for path in paths_of(found, runs, seed, plain):
                    tally["executions"] += 1
                    broken = broken_exclusions(found, path)
                    assert not broken, broken
            except AssertionError as fault:
                print(f"seed {seed}: {fault}\n{program.source}")
                return 1
    print_shares(pairs)
    print(", ".join(f"{name} {n:,}" for name, n in tally.items()))
    print(f"{time.process_time():.0f} s of processor time")
    return 0


def refined_program(program: PlantedProgram | PairedProgram) -> RefinedBound:
    """The refined bound of ``main``."""
    if isinstance(program, PairedProgram):
        return refined(program.elf)
    return refined(program.elf, platform=program.platform, sharing=program.sharing)


def summarised(program: PlantedProgram | PairedProgram) -> TypeGuard[PlantedProgram]:
    """Whether functions of a program have summaries."""
    return isinstance(program, PlantedProgram) and program.sharing == ALWAYS


def print_shares(pairs: Counter[tuple[str, bool]]) -> None:
    """By family, the planted pairs that were removed."""
    for family in FAMILIES:
        gone, planted_ = pairs[family, True], pairs[family, True] + pairs[family, False]
        print(f"{family:<12}{gone:>4} of {planted_:>4} removed")


if __name__ == "__main__":
    sys.exit(main())
