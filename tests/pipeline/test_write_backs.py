"""Write-backs by maintenance are at most as many as lines can be dirty (rule 9)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pytest

from cache.classify import classify
from cache.geometry import CacheGeometry
from cache.initial import InitialCache, InitialContentsKind
from cache.policy import ReplacementPolicy
from pipeline.charge import due_cycles
from pipeline.write_backs import write_back_pool
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import DATA, Program, in_one_block, pool, straight
from tests.testing.cache.walks import LATENCIES, NOTHING_LOCKED, Walk, hierarchy
from tests.testing.harness.cases import cases

SMALL = CacheGeometry(128, 2, 32)  # four lines
LINES = 512  # of L1 on the KZM
OPERATIONS = """
    ldr r3, [r4]
    ldr r3, [r4]
    str r3, [r4]
    str r3, [r4]
    stm r4, {r0-r3}
    swp r0, r1, [r4]
    mcr p15, 0, r0, c7, c10, 1
    mcr p15, 0, r0, c7, c10, 1
    mcr p15, 0, r0, c7, c14, 1
    mcr p15, 0, r0, c7, c10, 0
"""


@pytest.mark.slow("simulates many random accesses")
def test_charges_cover_write_backs_of_small_caches() -> None:
    """Stores and maintenance of few lines, on caches of all kinds."""
    limited = beyond = 0
    number = cases(200)
    for seed in range(number):
        random = Random(seed)
        load, *others, whole = pool(OPERATIONS)
        few = random.sample(others, random.randint(2, 5))  # often without loads, which pay more
        chosen = [load] * 2 + [random.choice(few) for _ in range(40)]
        chosen += [whole] * random.randrange(3)
        places = [ValueSet.of(DATA + 32 * (n % 2)) for n, _ in enumerate(chosen)]
        program = in_one_block(chosen, list(places))
        kind = random.choice([InitialContentsKind.UNKNOWN, InitialContentsKind.CLEAN])
        geometry = replace(
            SMALL, write_allocate=random.random() < 0.3, write_through=random.random() < 0.1
        )
        initial = InitialCache(), InitialCache(kind)
        policy = random.choice([ReplacementPolicy.LRU, ReplacementPolicy.ROUND_ROBIN])
        caches = replace(hierarchy(0), l1i=geometry, l1d=geometry, policy=policy)
        caches = replace(caches, initial_d=initial[1])
        classes = classify(program.graph, program, caches)
        walk = Walk(program, classes, 0, geometry, policy, random, NOTHING_LOCKED, initial)
        try:
            tally = walk.run(1)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        limited += tally.clean > 0
        start = 0 if walk.pool is None else walk.pool.start * walk.pool.cycles
        beyond += tally.happened["maintenance"] > start
    assert limited > number // 2
    assert beyond > number // 5  # stores between make lines dirty again


def pool_of(program: Program, level_2: CacheGeometry | None = None) -> tuple[int, dict[int, int]]:
    """Dirty lines at the start, and lines made dirty in each node."""
    caches = replace(hierarchy(0), l2=level_2)
    memory = replace(LATENCIES, access=60, l2_hit=None if caches.l2 is None else 26)
    classes = classify(program.graph, program, caches)
    pool = write_back_pool(
        program.graph, classes.references, caches, memory, partial(due_cycles, memory=memory)
    )
    assert pool is not None
    return pool.start, dict(pool.dirtied)


HERE = ValueSet.of(DATA)
CLEAN = "mcr p15, 0, r0, c7, c10, 1"
HITTING = straight(f"ldr r3, [r4]\n str r3, [r4]\n str r3, [r4]\n {CLEAN}", [HERE] * 3)
MISSING = straight(f"str r3, [r4]\n {CLEAN}", [HERE])


def test_a_store_that_may_miss_is_charged_for_its_line() -> None:
    """Two hits cost nothing where they stand; a miss makes no line dirty."""
    assert pool_of(HITTING) == (LINES, {0: 2})
    assert pool_of(MISSING) == (LINES, {})


def test_a_level_2_holds_dirty_lines_too() -> None:
    """A line of L1 is written to L2, and from there to memory."""
    level_2 = CacheGeometry(131072, 8, 32)
    assert pool_of(HITTING, level_2) == (2 * LINES + 4096, {0: 4})
    assert pool_of(MISSING, level_2) == (2 * LINES + 4096, {0: 2})


def test_stores_that_allocate_make_their_line_dirty() -> None:
    caches = hierarchy(0)
    program = straight(f"str r3, [r4]\n {CLEAN}", [HERE])
    allocating = replace(caches.l1d, write_allocate=True)
    memory = replace(LATENCIES, write_allocate=True)
    caches = replace(caches, l1d=allocating)
    classes = classify(program.graph, program, caches)
    due = partial(due_cycles, memory=memory)
    pool = write_back_pool(program.graph, classes.references, caches, memory, due)
    assert pool is not None
    assert pool.dirtied == {0: 1}


def test_without_maintenance_there_is_no_pool() -> None:
    program = straight("str r3, [r4]", [HERE])
    caches = hierarchy(0)
    classes = classify(program.graph, program, caches)
    due = partial(due_cycles, memory=LATENCIES)
    assert write_back_pool(program.graph, classes.references, caches, LATENCIES, due) is None
