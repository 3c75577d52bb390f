"""Bounds by class of a result cover every execution, and exclude branches of callers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from random import Random

import pytest

from quoll.errors import UnboundedLoop
from quoll.image.image import Image
from tests.testing.harness.cases import cases
from tests.testing.wcet.planted_programs import LEVELS, MACHINES, built
from tests.testing.wcet.result_programs import ResultProgram
from tests.testing.wcet.result_runs import (
    INLINED,
    SUMMARISED,
    bounded,
    broken_rows,
    executions,
    judge,
    levels,
)
from wcet.analysis.result import EntryResult

RUNS = 12
FUNCTIONS = ("f0", "f1", "f2")


@dataclass(frozen=True)
class Drawn:
    """A random program with summaries by class of result, for a board."""

    seed: int
    elf: Path
    platform: str
    summarised: EntryResult


def drawn(first: int) -> Iterator[Drawn]:
    """Programs whose loops all have bounds."""
    for seed in count(first):
        random = Random(seed)
        clang, thumb = random.random() < 0.5, random.random() < 0.5
        cpu, platform = MACHINES[thumb]
        source = ResultProgram(random).source()
        level = random.choice(LEVELS)
        elf = built(source, clang=clang, thumb=thumb, cpu=cpu, level=level)
        try:
            found = bounded(elf, "main", SUMMARISED, platform)
        except UnboundedLoop:
            continue
        if levels(found):
            yield Drawn(seed, elf, platform, found)


@pytest.mark.slow("whole analyses of random programs")
def test_executions_are_within_the_bounds_of_their_results() -> None:
    for one in islice(drawn(0), cases(1)):
        image = Image.load(one.elf)
        plain = bounded(one.elf, "main", INLINED, one.platform)
        for execution in executions(image, "main", RUNS, one.seed):
            assert judge(plain, image, execution, called=False) <= one.summarised.cycles, one.seed
            assert not broken_rows(one.summarised, image, execution), one.seed
        functions = levels(one.summarised)
        symbols = ((name, image.symbol(name)) for name in FUNCTIONS)
        for name, address in ((name, found.addr & ~1) for name, found in symbols if found):
            if address not in functions:
                continue
            returned = one.summarised.graph.guidance.replaced[address].result
            alone = bounded(one.elf, name, INLINED, one.platform)
            for execution in executions(image, name, RUNS, one.seed):
                result = execution.results[-1]
                assert returned is None or result in returned
                bounds = functions[address]
                fitting = [b.cycles for b in bounds if b.result and result in b.result]
                assert judge(alone, image, execution, called=True) <= max(fitting), one.seed
