"""Write-backs are at most as many as lines can be dirty (rule 9)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from cache.cache_simulator import CacheOutcome, SimulatedCache
from cache.classify import classify
from cache.geometry import CacheGeometry, CacheHierarchy
from cache.initial import InitialCache, InitialContentsKind
from cache.policy import ReplacementPolicy
from cache.reference import HitClass, Reference, ReferenceKind
from pipeline.charge import due_cycles
from pipeline.costs import CostCause, Costs, WriteBackPool
from pipeline.write_backs import write_back_pool
from quoll.arm.insn import AccessKind
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import DATA, FOREIGN, Program, in_one_block, pool, straight
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
    strex r5, r0, [r4]
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


class TwoLevels:
    """Data caches of two levels. A line that leaves the first one is stored into the second one."""

    def __init__(
        self, first: CacheGeometry, second: CacheGeometry, policy: ReplacementPolicy, random: Random
    ) -> None:
        self.random = random
        self.first = SimulatedCache(first, policy, random)
        self.second = SimulatedCache(second, policy, random)
        self.parts = max(1, first.line_bytes // second.line_bytes)  # lines of L2 in one of L1
        self.evicted = 0  # dirty victims of loads in the first level

    def lines(self, line: int) -> range:
        """The lines of the second level that hold a line of the first."""
        bytes_1, bytes_2 = self.first.geometry.line_bytes, self.second.geometry.line_bytes
        return range(line * bytes_1 // bytes_2, line * bytes_1 // bytes_2 + self.parts)

    def store_behind(self, line: int) -> None:
        """Write a line, or words of it, past the first level."""
        for part in self.lines(line):
            self.second.store(part)

    def moved(self, outcome: CacheOutcome, line: int) -> None:
        """After an access to the first level: the fill of a line, and its victim."""
        if outcome.victim is not None:
            self.store_behind(outcome.victim)
        if not outcome.hit:
            for part in self.lines(line):
                self.second.load(part)

    def load(self, line: int) -> None:
        """A load; the core may as well fetch instructions of other lines into the second level."""
        outcome = self.first.load(line)
        self.evicted += outcome.victim is not None
        self.moved(outcome, line)
        self.second.load(self.random.choice(self.lines(line)) + self.random.randrange(1, 4))

    def store(self, line: int) -> None:
        """A store."""
        geometry = self.first.geometry
        outcome = self.first.store(line)
        if geometry.write_allocate:
            self.moved(outcome, line)
        if geometry.write_through or not (outcome.hit or geometry.write_allocate):
            self.store_behind(line)

    def dirty(self) -> list[int]:
        """Addresses of lines that are dirty in one of both levels."""
        return [
            n * cache.geometry.line_bytes
            for cache in (self.first, self.second)
            for n, is_dirty in zip(*cache.contents(), strict=True)
            if is_dirty
        ]

    def clean(self, address: int) -> bool:
        """Write a line back: to the second level, or on to memory. Whether anything was written."""
        line = self.first.geometry.line(address)
        written = self.first.clean(line)
        if written:
            self.store_behind(line)
        if written and self.random.random() < 0.7:
            return True  # to the point of unification only
        return self.second.clean(self.second.geometry.line(address)) or written


@pytest.mark.slow("simulates many random accesses")
def test_the_potential_covers_two_levels() -> None:
    """Write-backs of lines that are dirty in L1, in L2, and in L2 after L1."""
    limited = 0
    number = cases(150)
    for seed in range(number):
        random = Random(seed)
        load, *others, _ = (one for one in pool(OPERATIONS) if one.mnemonic != "swp")
        *stores, clean = [one for one in others if one.memory is None or random.random() < 0.7]
        chosen = [load] * 2 + [clean] * 20
        for _ in range(random.randint(1, 12)):
            chosen += [random.choice(stores or [clean]), *[clean] * random.randint(0, 6)]
        places = [ValueSet.of(DATA + 64 * (n % 2)) for n, _ in enumerate(chosen)]
        program = in_one_block(chosen, list(places))
        kind = random.choice([InitialContentsKind.UNKNOWN, InitialContentsKind.CLEAN])
        first = CacheGeometry(
            128, 2, random.choice([32, 64]), write_allocate=random.random() < 0.3,
            write_through=random.random() < 0.2,
        )  # fmt: skip
        second = CacheGeometry(256, 2, 32, write_allocate=random.random() < 0.5)
        policy = random.choice([ReplacementPolicy.LRU, ReplacementPolicy.ROUND_ROBIN])
        caches = replace(hierarchy(0), l1d=first, l2=second, policy=policy)
        caches = replace(caches, initial_d=InitialCache(kind))
        memory = replace(
            LATENCIES, l2_hit=8, line_words=first.line_bytes // 4,
            dirty_l1_victims=not first.write_through, write_allocate=first.write_allocate,
            write_through=first.write_through, stores_pay=caches.initial_d.clean,
        )  # fmt: skip
        classes = classify(program.graph, program, caches)
        found = write_back_pool(program.graph, classes.references, caches, memory, due_cycles)
        if found is None:
            continue
        machine = TwoLevels(first, second, policy, random)
        dirty = not (caches.initial_d.clean or first.write_through)
        machine.first.pollute([DATA // first.line_bytes + n for n in range(8)], dirty=dirty)
        machine.second.pollute([DATA // 32 + n for n in range(16)])
        written = sum(carry_out(machine, program, n, random) for n in range(len(chosen)))
        written += machine.evicted
        without = found.without_line({0: 1}, {})
        assert written <= found.charged(0) - without, seed
        limited += without > 0
    assert limited > number // 3


def carry_out(machine: TwoLevels, program: Program, index: int, random: Random) -> bool:
    """Execute an instruction; whether it is a write-back by maintenance."""
    insn = program.graph.nodes[0].block.insns[index]
    if insn.memory is None:
        dirty = machine.dirty()
        return bool(dirty) and machine.clean(random.choice(dirty))
    address = program.values[0, index]
    assert address is not None
    for line in machine.first.geometry.lines(address.low, insn.memory.size * insn.memory.count):
        if insn.memory.access is AccessKind.LOAD:
            machine.load(line)
        else:
            machine.store(line)
    return False


@pytest.mark.slow("simulates many random accesses")
def test_charges_cover_victims_of_loads() -> None:
    """Loads and stores that may hit or not, in caches of few lines, before an L2 or without it.

    The classes are given: a hit is claimed only where the concrete access hits.
    """
    limited = exact = 0
    number = cases(10_000)
    graph = straight("nop", []).graph
    for seed in range(number):
        random = Random(seed)
        ways = random.choice([1, 2, 4])
        geometry = CacheGeometry(32 * ways * random.choice([1, 2]), ways, 32)
        level_2 = random.choice([None, CacheGeometry(256, 2, 32)])
        kind = random.choice([InitialContentsKind.UNKNOWN, InitialContentsKind.CLEAN])
        caches = replace(hierarchy(0), l1d=geometry, l2=level_2, initial_d=InitialCache(kind))
        memory = replace(
            LATENCIES,
            access=random.choice([32, 60, 96]),
            l2_hit=None if level_2 is None else 8,
            replay=random.choice([0, 8]),
            dirty_l2_victims=random.random() < 0.5,
            stores_pay=caches.initial_d.clean,
        )
        policy = random.choice([one for one in ReplacementPolicy if one.name != "ONE_WAY"])
        machine = SimulatedCache(geometry, policy, random)
        lines = range(random.randint(2, 12))
        machine.pollute(list(lines), dirty=not caches.initial_d.clean)
        references, happened, stores = [], 0, random.random()
        for _ in range(random.randint(4, 40)):
            line, cached = random.choice(lines), random.random() < 0.9
            words = random.choice([1, 1, 2, 8])
            store = random.random() < stores
            kind_of = ReferenceKind.STORE if store else ReferenceKind.LOAD
            hit = cached and machine.resident(line)
            l1 = HitClass.AH if hit and random.random() < 0.7 else HitClass.NC
            uncached = not cached or random.random() < 0.2
            references.append(
                Reference(
                    0, kind_of, None, None, words, cacheable=True, l1=l1, l2=None, uncached=uncached
                )
            )
            if not cached:
                happened += words * memory.uncached_word
            elif store:
                happened += 0 if machine.store(line).hit else words * memory.store_word(None)
            else:
                outcome = machine.load(line)
                filled = replace(memory, dirty_l1_victims=False).load_miss(None)
                happened += 0 if outcome.hit else filled
                happened += 0 if outcome.victim is None else memory.write_back
        found = write_back_pool(graph, [references], caches, memory, due_cycles)
        charged = sum(due_cycles(reference, memory) for reference in references)
        less = 0 if found is None else memory.write_back * found.without_line({0: 1}, {})
        assert happened <= charged - less, seed
        limited += less > 0
        exact += 0 < happened == charged - less
    assert limited > number // 6
    assert exact > number // 50


def pool_of(program: Program, level_2: CacheGeometry | None = None) -> tuple[int, dict[int, int]]:
    """Dirty lines at the start, and lines made dirty in each node."""
    caches = replace(hierarchy(0), l2=level_2)
    memory = replace(LATENCIES, access=60, l2_hit=None if caches.l2 is None else 26)
    classes = classify(program.graph, program, caches)
    pool = write_back_pool(program.graph, classes.references, caches, memory, due_cycles)
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
    pool = write_back_pool(program.graph, classes.references, caches, memory, due_cycles)
    assert pool is not None
    assert pool.dirtied == {0: 1}


def test_stores_alone_need_no_pool() -> None:
    program = straight("str r3, [r4]", [HERE])
    caches = hierarchy(0)
    classes = classify(program.graph, program, caches)
    found = write_back_pool(program.graph, classes.references, caches, LATENCIES, due_cycles)
    assert found is None


def victims(text: str, values: list[ValueSet | None], caches: CacheHierarchy) -> WriteBackPool:
    """The pool of a block, with the latencies of the KZM."""
    program = straight(text, values)
    memory = replace(LATENCIES, access=60, line_rest=3, l2_hit=None if caches.l2 is None else 26)
    classes = classify(program.graph, program, caches)
    found = write_back_pool(program.graph, classes.references, caches, memory, due_cycles)
    assert found is not None
    return found


def test_each_load_that_may_miss_is_charged_a_victim() -> None:
    """The second load of a line hits. A store that hits makes its line dirty."""
    text = "ldr r3, [r4]\n ldr r3, [r4]\n str r3, [r4]\n ldr r3, [r5]"
    found = victims(text, [HERE, HERE, HERE, ValueSet.of(DATA + 32)], hierarchy(0))
    assert (found.start, found.evicted, found.maintained, found.dirtied) == (
        LINES, {0: 2}, {}, {0: 1},
    )  # fmt: skip


def test_an_uncached_access_that_takes_longer_keeps_its_charge() -> None:
    """Two words past L1 take 120 cycles, and a miss without a victim 63."""
    anything = ValueSet.of(FOREIGN)
    one = victims("ldr r3, [r4]\n ldrd r2, r3, [r4]", [anything, anything], hierarchy(0))
    assert one.evicted == {0: 1}


def test_victims_of_loads_were_dirty_in_level_1() -> None:
    """Dirty lines of an L2 count only where maintenance may write them back."""
    caches = replace(hierarchy(0), l2=CacheGeometry(131072, 8, 32))
    assert victims("ldr r3, [r4]", [HERE], caches).start == LINES
    both = victims(f"ldr r3, [r4]\n {CLEAN}", [HERE], caches)
    assert (both.start, both.evicted, both.maintained) == (2 * LINES + 4096, {0: 1}, {0: 1})


def test_the_last_nodes_of_a_path_find_no_dirty_line() -> None:
    """The costs of a path are charged as many write-backs as lines may be dirty."""
    causes = tuple(50 if cause is CostCause.LOAD_MISS else 0 for cause in CostCause)
    pool = WriteBackPool(10, 3, 3, {}, {1: 2, 2: 1}, {0: 1}, frozenset())
    costs = Costs((causes, causes, causes), (), pool=pool)
    path = costs.on_path([1, 2, 3], [])  # 7 charged, 4 dirty
    assert [path.nodes[n][CostCause.LOAD_MISS] for n in range(3)] == [50, 50, 40]
    assert path.start == costs.start
    longer = costs.on_path([1, 3, 3], [])  # 9 charged: 2 of the victims in node 1 are not dirty
    assert [longer.nodes[n][CostCause.LOAD_MISS] for n in range(3)] == [50, 30, 40]
    assert longer.start[CostCause.LOAD_MISS] == 10 * 4
