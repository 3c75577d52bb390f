"""Loops of invalidations by address: lines that they drop, on concrete instruction caches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from cache.classify import classify
from cache.dropped_lines import LineDrops
from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy
from cache.reference import CacheClassification
from quoll.cfg.cfg import Block, EdgeKind
from quoll.inlining.supergraph import SuperEdge
from tests.testing.cache.graphs import CODE, Program, at, pool, program_of
from tests.testing.cache.walks import Walk, hierarchy
from tests.testing.harness.cases import cases

STEPS = 120  # of a walk, one node each
MISS = 63  # cycles
LINE = 32
PAGE = 4096
INVALIDATE = "mcr p15, 0, r0, c7, c5, 1\n"


def looping(random: Random) -> Program:
    """A block, a loop of one to three blocks with invalidations, and a block that leads back."""
    count = random.randint(1, 3)
    blocks: list[Block] = []
    addr = CODE
    for index in range(count + 2):
        addr += PAGE * 4 * random.randrange(2) + LINE * random.randrange(2)
        text = ["add r0, r1, r2\n"] * random.randint(0, 12 if 0 < index <= count else 40)
        if 0 < index <= count and (index == 1 or random.random() < 0.3):
            text.insert(random.randint(0, len(text)), INVALIDATE)
        insns = pool("".join(text) + ("b .\n" if index > count else "bne .\n"))
        blocks.append(Block(index, tuple(at(i, addr + 4 * n) for n, i in enumerate(insns))))
        addr = blocks[-1].end
    edges = [SuperEdge(i, i + 1, EdgeKind.TAKEN) for i in range(count + 1)]
    edges += [SuperEdge(count, 1, EdgeKind.TAKEN), SuperEdge(count + 1, 0, EdgeKind.TAKEN)]
    return program_of(random, blocks, edges)


class LongWalk(Walk):
    """A walk that makes many iterations of a loop, most often as many as it has steps."""

    def onward(self, edges: Sequence[int]) -> int:
        graph = self.program.graph
        back = [e for e in edges if graph.edges[e].dst < graph.edges[e].src]
        return self.random.choice(back if back and self.random.random() < 0.98 else edges)


def counted(program: Program, classes: CacheClassification) -> CacheClassification:
    """The classes with no fewer iterations than a walk may make."""
    return classes.counted({loop.index: STEPS for loop in program.graph.loops})


@pytest.mark.slow("simulates many invalidations")
def test_charges_cover_the_misses_of_dropped_lines() -> None:
    """Any start, any mapping of pages, lines fetched past the loop, caches of all policies."""
    gaining = 0
    number = cases(25)
    for seed in range(number):
        random = Random(seed)
        program, ahead = looping(random), random.choice([0, 8, 48])
        geometry = random.choice([CacheGeometry(1024, 2, 32), CacheGeometry(2048, 4, 32)])
        policy = random.choice(list(ReplacementPolicy))
        caches = replace(hierarchy(ahead), l1i=geometry, l1d=geometry, policy=policy)
        classes = counted(program, classify(program.graph, program, caches))
        charges = [r.drops for of_node in classes.references for r in of_node if r.drops]
        gaining += any(drops.cycles(MISS)[0] for drops in charges)
        if policy is ReplacementPolicy.ONE_WAY:
            geometry = CacheGeometry(geometry.size // geometry.ways, 1, LINE)
        try:
            LongWalk(program, classes, ahead, geometry, policy, random).run(STEPS)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert gaining > number // 3


@pytest.mark.slow("simulates many invalidations")
def test_drops_of_lines_that_are_there() -> None:
    """Each invalidation drops a line at its place in a page, of any page; the loop fetches some."""
    tight = 0
    number = cases(120)
    for seed in range(number):
        random = Random(seed)
        stride = random.choice([4, 32, 36, 64, 512, 1024, 2048, -32, -512]) & 0xFFFFFFFF
        lines = [random.randrange(512) for _ in range(random.randint(1, 60))]  # of four pages
        fetched = set(random.sample(lines, min(len(lines), random.randint(1, 3))))
        present, address = set(lines), LINE * random.choice(lines) + random.randrange(LINE)
        found = LineDrops.of(0, stride, LINE, fetched=len(fetched), present=len(present))
        dropped = 0
        for n in range(1, 600):
            place = address // LINE % (PAGE // LINE)
            here = [line for line in present if line % (PAGE // LINE) == place]
            if here:
                present.remove(random.choice(here))
                dropped += 1
            present |= fetched
            address = (address + stride) & 0xFFFFFFFF
            if found is not None:
                most = found.once + found.again * -(-n // found.period)
                assert dropped <= most, seed
                tight += dropped + len(fetched) >= most
    assert tight > number


def test_charges_cover_every_number_of_executions() -> None:
    """Up to the most; where fewer lines are dropped than there are executions."""
    for stride, fetched, most in ((32, 3, 1000), (512, 2, 90), (4, 5, 5000), (36, 7, 777)):
        found = LineDrops.of(0, stride, LINE, fetched=fetched, present=10)
        assert found is not None
        first, each = found.counted({0: most}).cycles(MISS)
        assert first + most * each < most * MISS
        for n in range(1, most + 1):
            drops = 10 + found.again * -(-n // found.period)
            within = 10 + found.again * (n + found.period - 1) / found.period
            assert MISS * within <= first + n * each
            assert drops <= within


@pytest.mark.parametrize("stride", [4, 16, 32, 36, 64, 512, -32 & 0xFFFFFFFF, 96])
def test_each_place_in_a_page_is_met_at_most_so_often(stride: int) -> None:
    found = LineDrops.of(0, stride, LINE, fetched=1, present=0)
    assert found is not None
    for start in (0, 4, 28, 4092):
        places = [(start + i * stride) % PAGE // LINE for i in range(2 * found.period)]
        for i in (0, 1, found.period // 2, found.period):
            assert max(Counter(places[i : i + found.period]).values()) <= found.again


def test_strides_of_pages_and_short_loops_gain_nothing() -> None:
    assert LineDrops.of(0, 0, LINE, fetched=1, present=10) is None
    assert LineDrops.of(0, PAGE, LINE, fetched=1, present=10) is None
    assert LineDrops.of(0, 2048, LINE, fetched=2, present=10) is None
    found = LineDrops.of(0, 32, LINE, fetched=2, present=10)
    assert found is not None
    assert found.counted({0: 11}).cycles(MISS) == (0, MISS)
    assert found.counted({}).cycles(MISS) == (0, MISS)
