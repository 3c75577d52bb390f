"""Concrete walks: a path with addresses through concrete caches, checked against the classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from cache.cache_simulator import CacheOutcome, FetchUnit, SimulatedCache
from cache.classify import classify
from cache.geometry import CacheGeometry, CacheHierarchy
from cache.initial import UNKNOWN_CONTENTS, InitialCache, InitialContentsKind
from cache.locked import NOT_LOCKED, LockedLines
from cache.maintenance import UNKNOWN, cache_operation
from cache.policy import ReplacementPolicy
from cache.reference import CacheClassification, HitClass, Reference, ReferenceKind
from pipeline.charge import due_cycles, entry_cycles
from pipeline.timing_model import MemoryLatencies
from pipeline.write_backs import write_back_pool
from quoll.arm.floating_point import vector_role
from quoll.arm.insn import AccessKind, Insn
from quoll.cfg.cfg import EdgeKind
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from tests.testing.cache.graphs import (
    BLOCKS,
    CODE,
    DATA,
    DEVICE,
    FOREIGN,
    LOADS,
    Program,
    Words,
    random_program,
)

STEPS = 24  # of a walk, one node each
PAGE = 4096  # bytes
STREAMING = 0.2  # of the programs are mostly loads through one pointer
TABLES = 0.2  # of the others are mostly loads from tables
OBJECTS = 0.2  # of the others still are loads through few pointers
LOCKING = 0.25  # of the cases have lines that are locked
MISS = 96  # cycles of one in memory that is cached
LATENCIES = MemoryLatencies(
    access=32, l2_hit=None, line_rest=64, dirty_l1_victims=True, dirty_l2_victims=False
)
KINDS = ("fetch", "load", "store", "maintenance")
NOTHING_LOCKED = (NOT_LOCKED, NOT_LOCKED)
L1 = CacheGeometry(16384, 4, 32)
ONE_WAY = CacheGeometry(4096, 1, 32)
MEMORY = MemoryMap(
    (
        MemoryRegion("ram", 0xF0000000, 0xF7FFFFFF, RegionKind.CACHED, 0x80000000, True),
        MemoryRegion("device", DEVICE, DEVICE + 0xFFFFF, RegionKind.DEVICE, None, True),
    )
)


def hierarchy(fetch_ahead: int) -> CacheHierarchy:
    """L1 caches as on the i.MX31, no L2."""
    return CacheHierarchy(L1, L1, None, MEMORY, fetch_ahead, aligned=True)


@dataclass
class Tally:
    """Charges and actual costs by kind, and the coverage of the walk.

    In cycles.
    """

    charged: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    happened: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    hits: int = 0  # claimed and confirmed
    first: int = 0  # first misses met
    paid: int = 0
    symbolic: int = 0  # hits at unknown addresses
    missing: int = 0  # claimed to miss and confirmed
    streams: int = 0  # executions of loads that miss once per line
    shared: int = 0  # loads through a symbol for which another one is charged
    clean: int = 0  # nodes after which more write-backs were charged than lines could be dirty
    ranges: int = 0  # executions of accesses to one of several lines, each charged once
    contested: int = 0  # loops with lines for whose evictions other accesses are charged


class HoldingCache(SimulatedCache):
    """A cache with a given initial content."""

    def hold(self, lines: frozenset[int], *, dirty: bool = True) -> None:
        """Have ``lines`` in it, and everything in any order of use. No set may lack ways."""
        for line in lines:
            if not self.resident(line):
                ways = self._sets[self.geometry.set_of(line)]
                way = self._random.choice(
                    [way for way in ways if way.line is None or way.line not in lines]
                )
                way.line, way.dirty = line, dirty and self._random.random() < 0.7
        for ways in self._sets:
            for way in ways:
                way.used = self._random.randrange(1 << 20)
        self._clock = 1 << 20


class Walk:
    """One execution of a program on concrete caches."""

    def __init__(
        self,
        program: Program,
        classes: CacheClassification,
        ahead: int,
        geometry: CacheGeometry,
        policy: ReplacementPolicy,
        random: Random,
        locked: tuple[LockedLines, LockedLines] = NOTHING_LOCKED,
        initial: tuple[InitialCache, InitialCache] = (UNKNOWN_CONTENTS, UNKNOWN_CONTENTS),
    ) -> None:
        self.program, self.classes, self.ahead, self.random = program, classes, ahead, random
        self.memory = replace(
            LATENCIES,
            dirty_l1_victims=not geometry.write_through,
            write_allocate=geometry.write_allocate,
            write_through=geometry.write_through,
            stores_pay=initial[1].clean,
        )
        # Where charges of stores cover loads, or the other way around, they are summed up.
        self.stores = "load" if geometry.write_allocate or initial[1].clean else "store"
        self.icache, self.dcache = (
            HoldingCache(geometry, policy, random, lines.lines()) for lines in locked
        )
        every = range(4 * 128 // geometry.sets)
        pools = [
            [b // 32 + geometry.sets * k + i for k in every for i in range(8)] for b in (CODE, DATA)
        ]
        for cache, lines, state in zip((self.icache, self.dcache), pools, initial, strict=True):
            dirty = not state.clean and not geometry.write_through
            if state.contents is not InitialContentsKind.COLD:
                cache.pollute(lines, random.choice([0.0, 0.5, 1.0]), dirty=dirty)
            cache.hold(frozenset(state.held.lines()), dirty=dirty)
        caches = replace(hierarchy(ahead), l1d=geometry, initial_d=initial[1])
        self.invalidated: dict[tuple[int, int], int] = {}  # the last address of an operation
        self.pool = write_back_pool(
            program.graph, classes.references, caches, self.memory, due_cycles
        )
        self.visits, self.taken = Counter[int](), Counter[int]()
        self.fetch = FetchUnit(self.icache)
        self.entered: set[int] = set()  # lines of the run of which an instruction was executed
        self.waiting: list[int] = []  # lines that missed and of which none was executed yet
        self.foreign_cached = random.random() < 0.5
        self.words = Words(program, random)
        self.tally = Tally()

    def run(self, steps: int) -> Tally:
        graph = self.program.graph
        node = graph.entry
        self._charge_once(self.classes.start_misses)
        self._redirect(graph.nodes[node].block.addr)
        for _ in range(steps):
            self.visits[node] += 1
            self._block(node)
            self._compare()
            if not graph.successors[node]:
                break
            edge = self.onward(graph.successors[node])
            self.taken[edge] += 1
            self._edge(edge)
            self.words.follow(edge)
            node = graph.edges[edge].dst
        return self.tally

    def onward(self, edges: Sequence[int]) -> int:
        """The edge that the walk takes, out of the ones that leave a node."""
        return self.random.choice(edges)

    def _compare(self) -> None:
        """Charges cover actual costs; a prefetched line is charged when entered."""
        self.tally.happened["fetch"] = MISS * (self.fetch.misses - len(self.waiting))
        for kind, charged in self.tally.charged.items():
            assert self.tally.happened[kind] <= charged, (kind, self.tally)
        less = 0 if self.pool is None else self.pool.without_line(self.visits, self.taken)
        self.tally.clean += less > 0
        of_data = ("load", "store", "maintenance")
        charged = sum(self.tally.charged[kind] for kind in of_data) - less * self.memory.write_back
        assert sum(self.tally.happened[kind] for kind in of_data) <= charged, self.tally

    def _redirect(self, addr: int) -> None:
        self.fetch.redirect(addr)
        self.entered.clear()

    def _fetch_to(self, addr: int) -> None:
        before = set(self.fetch.log)
        self.fetch.fetch_to(addr)
        self.waiting += [n for n, hit in self.fetch.log.items() if n not in before and not hit]

    def _edge(self, edge: int) -> None:
        graph = self.program.graph
        self._charge_once(self.classes.first_misses[edge])
        for reference in self.classes.prefetches[edge]:
            self._charge(reference)
            assert reference.low is not None
            line = reference.low // 32
            if reference.l1 is HitClass.AH:
                assert self.fetch.log.get(line, True), f"claimed to hit: {reference}"
        taken = graph.edges[edge]
        self._leave_loops(taken.src, taken.dst)
        if taken.kind is not EdgeKind.FALLTHROUGH:
            self.waiting.clear()
            self._redirect(graph.nodes[taken.dst].block.addr)

    def _charge_once(self, references: tuple[Reference, ...]) -> None:
        for reference in references:
            if reference.kind in (ReferenceKind.FETCH, ReferenceKind.PREFETCH):
                self.tally.charged["fetch"] += entry_cycles(reference, self.memory)
            elif reference.kind is ReferenceKind.STORE:
                self.tally.charged[self.stores] += entry_cycles(reference, self.memory)
            else:
                self.tally.charged["load"] += entry_cycles(reference, self.memory)

    def _block(self, node: int) -> None:
        references = self.classes.references[node]
        for index, insn in enumerate(self.program.graph.nodes[node].block.insns):
            self._fetch_to(insn.next)
            self._fetch_to(insn.next + self.random.randint(0, self.ahead))
            line = insn.addr // 32
            entering = line not in self.entered
            self.entered.add(line)
            self.waiting = [n for n in self.waiting if n != line]
            here = [r for r in references if r.insn == index]
            for reference in here:
                self._charge(reference)
                if reference.kind is ReferenceKind.FETCH:
                    self._fetched(reference, line, entering=entering)
            executed = not insn.conditional or self.random.random() < 0.5
            if insn.memory is not None and executed:
                self._data(
                    node, index, insn, [r for r in here if r.kind is not ReferenceKind.FETCH]
                )
            elif executed:
                self._maintain(node, index, insn)

    def _fetched(self, reference: Reference, line: int, *, entering: bool) -> None:
        """Check a fetch of the line that is executed, or of one behind it that may be fetched."""
        assert reference.low is not None
        own = reference.low // 32 == line
        hit = self.fetch.log.get(reference.low // 32)
        assert hit is not None or not own
        if hit is None or (own and not entering):
            return
        if reference.l1 is HitClass.AH:
            assert hit, f"claimed to hit: {reference}"
            self.tally.hits += 1
        if reference.l1 is HitClass.AM:
            assert not hit, f"claimed to miss: {reference}"
            self.tally.missing += 1

    def _charge(self, reference: Reference) -> None:
        self.tally.first += reference.l1 is HitClass.FM
        self.tally.paid += reference.credited
        self.tally.shared += reference.credited and reference.symbolic
        self.tally.streams += reference.l1 is HitClass.PL
        is_range = reference.low != reference.high and reference.high is not None
        self.tally.ranges += reference.l1 is HitClass.FM and is_range
        if reference.kind is ReferenceKind.STORE:
            self.tally.charged[self.stores] += due_cycles(reference, self.memory)
        elif reference.kind is ReferenceKind.LOAD:
            self.tally.charged["load"] += due_cycles(reference, self.memory)
        elif reference.kind is ReferenceKind.WRITE_BACK:
            self.tally.charged["maintenance"] += due_cycles(reference, self.memory)
        else:
            self.tally.charged["fetch"] += due_cycles(reference, self.memory)

    def _data(self, node: int, index: int, insn: Insn, here: list[Reference]) -> None:
        memory = insn.memory
        assert memory is not None
        addr = self.words.address(node, index, insn)
        size = memory.size * memory.count
        loads = [r for r in here if r.kind is ReferenceKind.LOAD]
        stores = [r for r in here if r.kind is ReferenceKind.STORE]
        if memory.access is AccessKind.PRELOAD and self.random.random() < 0.5:
            return
        lines = L1.lines(addr, size)
        assert len(lines) <= max(len(loads), len(stores)), (hex(addr), here)
        for position, line in enumerate(lines):
            low, high = max(addr, line * 32), min(addr + size, line * 32 + 32)
            words, cached = (high - 1) // 4 - low // 4 + 1, self._is_cached(line * 32)
            if vector_role(insn) and cached and self.random.random() < 0.5:
                self._past_l1(line, words, memory.access)
                continue
            locked = memory.exclusive or memory.access is AccessKind.SWAP
            if locked and cached and self.random.random() < 0.5:
                self._locked(line, words, memory.access)
                continue
            if memory.access is not AccessKind.STORE:
                self._load(line, words, cached, loads[min(position, len(loads) - 1)])
            if memory.access in (AccessKind.STORE, AccessKind.SWAP):
                self._store(line, words, cached, stores[min(position, len(stores) - 1)])

    def _past_l1(self, line: int, words: int, access: AccessKind) -> None:
        """An access of the vector unit that fills no line; a stored line may leave L1."""
        if access is AccessKind.LOAD:
            self.tally.happened["load"] += 0 if self.dcache.resident(line) else MISS
            return
        self.tally.happened[self.stores] += words * self.memory.uncached_word
        if self.dcache.resident(line) and self.random.random() < 0.5:
            self._vacate(line, self.stores)

    def _locked(self, line: int, words: int, access: AccessKind) -> None:
        """An exclusive access or a swap that goes to memory; its line may leave L1."""
        if self.random.random() < 0.5 and self.dcache.resident(line):
            self._vacate(line, self.stores if access is AccessKind.STORE else "load")
        if access is not AccessKind.STORE:
            self.tally.happened["load"] += words * self.memory.uncached_word
        if access is not AccessKind.LOAD:
            self.tally.happened[self.stores] += words * self.memory.uncached_word

    def _vacate(self, line: int, kind: str) -> None:
        """The access goes to memory behind the write-back of its line, if that is dirty."""
        if self.dcache.clean(line):
            self.tally.happened[kind] += self.memory.write_back
        self.dcache.invalidate(line)

    def _is_cached(self, addr: int) -> bool:
        """Whether the line at ``addr`` is cached memory; an access may lie half in another kind."""
        if addr < FOREIGN + 8192:
            return self.foreign_cached
        return not DEVICE <= addr < DEVICE + 0x100000

    def _load(self, line: int, words: int, cached: bool, reference: Reference) -> None:
        if not cached:
            assert reference.l1 is not HitClass.AH or reference.uncached
            self.tally.happened["load"] += words * LATENCIES.uncached_word
            return
        outcome = self.dcache.load(line)
        self._misses("load", reference, outcome)
        if reference.l1 is HitClass.AH:
            assert outcome.hit, f"claimed to hit: {reference}"
            self.tally.hits += 1
            self.tally.symbolic += reference.symbolic

    def _store(self, line: int, words: int, cached: bool, reference: Reference) -> None:
        past = words * self.memory.uncached_word
        if not cached:
            assert reference.l1 is not HitClass.AH or reference.uncached, (
                f"claimed to hit: {reference}"
            )
            self.tally.happened[self.stores] += past
            return
        outcome = self.dcache.store(line)
        if self.memory.write_through or not (outcome.hit or self.memory.write_allocate):
            self.tally.happened[self.stores] += past
        if self.memory.write_allocate:
            self._misses(self.stores, reference, outcome)
        if reference.l1 is HitClass.AH:
            assert outcome.hit, f"claimed to hit: {reference}"
            self.tally.hits += 1
        if reference.l1 is HitClass.AM:
            assert not outcome.hit, f"claimed to miss: {reference}"
            self.tally.missing += 1

    def _misses(self, kind: str, reference: Reference, outcome: CacheOutcome) -> None:
        """A line that may be filled, and one that is written back to make room."""
        victim = 0 if outcome.victim is None else self.memory.write_back
        self.tally.happened[kind] += victim + (0 if outcome.hit else MISS)
        if reference.kind is ReferenceKind.LOAD and reference.l1 is HitClass.AM:
            assert not outcome.hit, f"claimed to miss: {reference}"
            self.tally.missing += 1

    def _maintain(self, node: int, index: int, insn: Insn) -> None:
        """Effects of the operations in ``MAINTENANCE``, written down from the manual."""
        if insn.mnemonic != "mcr":
            return
        word = int.from_bytes(insn.raw, "little")
        register = (word >> 16 & 15, word & 15, word >> 5 & 7)
        code, data = (b // 32 + self.random.randrange(16) for b in (CODE, DATA))
        dirty = [n for n, written in zip(*self.dcache.contents(), strict=True) if written]
        data = self.random.choice(dirty) if dirty and self.random.random() < 0.5 else data
        match register:
            case (7, 5, 0):
                self.icache.invalidate_all()
            case (7, 5, 1):
                self.icache.invalidate(self._dropped(node, index, code))
            case (7, 5, 4):
                self._redirect(insn.next)
            case (7, 6, 0):
                self.dcache.invalidate_all()
            case (7, 10, 0):
                self._written_back(self.dcache.clean_all())
            case (7, 10, 1):
                self._written_back(self.dcache.clean(data))
            case (7, 14, 0):
                self._written_back(self.dcache.clean_all())
                self.dcache.invalidate_all()
            case (7, 14, 1):
                self._written_back(self.dcache.clean(data))
                self.dcache.invalidate(data)
            case (9, 0, 0):  # lockdown: any line may go
                self.dcache.invalidate(data)
                self.icache.invalidate(code)
                assert cache_operation(insn) is UNKNOWN
            case (7, 10, 4) | (13, 0, 1):
                pass
            case other:
                raise AssertionError(f"no concrete effect for {other} in {insn.text}")

    def _dropped(self, node: int, index: int, other: int) -> int:
        """The line at the address of an invalidation, under any mapping of its page.

        The address moves by its stride while the innermost loop runs.
        """
        stride = self.program.strides.get((node, index))
        if stride is None:
            return other
        before = self.invalidated.get((node, index))
        start = PAGE * self.random.randrange(1 << 20) + 4 * self.random.randrange(8 * 16)
        address = start if before is None else before + stride
        self.invalidated[node, index] = address & 0xFFFFFFFF
        place = address % PAGE // 32
        here = [n for n in self.icache.contents()[0] if n >= 0 and n % (PAGE // 32) == place]
        return self.random.choice(here) if here else place

    def _leave_loops(self, source: int, target: int) -> None:
        """Forget the addresses of invalidations in loops that are left."""
        around = [loop for loop in self.program.graph.loops if source in loop.nodes]
        left = {n for loop in around if target not in loop.nodes for n in loop.nodes}
        self.invalidated = {at: a for at, a in self.invalidated.items() if at[0] not in left}

    def _written_back(self, lines: int) -> None:
        self.tally.happened["maintenance"] += lines * self.memory.write_back


def locked_lines(random: Random, base: int, geometry: CacheGeometry) -> LockedLines:
    """Lines near ``base``, at most one of each set."""
    first = base // 32 + random.randrange(8)
    count = random.randint(1, min(8, geometry.sets))
    return LockedLines.of([(first * 32, (first + count) * 32)], 32)


def initial_state(random: Random, base: int, geometry: CacheGeometry) -> InitialCache:
    """Most often unknown; else clean or cold, and perhaps some lines that are held."""
    if random.random() < 0.6:
        return UNKNOWN_CONTENTS
    held = locked_lines(random, base, geometry) if random.random() < 0.5 else NOT_LOCKED
    return InitialCache(random.choice(list(InitialContentsKind)), held)


def check(random: Random, policy: ReplacementPolicy | None = None) -> Tally:
    """One random program, walked on a cache of the policy that was analysed.

    "One-way" is walked on caches of every policy, its own direct-mapped cache among them.
    """
    ahead = random.choice([0, 8, 48])
    if random.random() < STREAMING:
        program = random_program(random, maintenance=False, blocks=4, text=LOADS, steady=True)
    elif random.random() < TABLES:
        program = random_program(random, maintenance=False, blocks=4, text=LOADS, tables=True)
    elif random.random() < OBJECTS:
        program = random_program(random, maintenance=False, blocks=4, text=BLOCKS, objects=True)
    else:
        program = random_program(random, maintenance=random.random() < 0.5)
    policy = policy or random.choice(list(ReplacementPolicy))
    geometry = random.choice([L1, L1, CacheGeometry(1024, 2, 32), CacheGeometry(2048, 4, 32)])
    caches = hierarchy(ahead)
    if random.random() < LOCKING:
        geometry = replace(geometry, locked_ways=1)
        code, data = (locked_lines(random, base, geometry) for base in (CODE, DATA))
        caches = replace(caches, locked_i=code, locked_d=data)
    else:
        states = (initial_state(random, base, geometry) for base in (CODE, DATA))
        caches = replace(caches, initial_i=next(states), initial_d=next(states))
    geometry = replace(
        geometry, write_allocate=random.random() < 0.25, write_through=random.random() < 0.15
    )
    caches = replace(caches, l1i=geometry, l1d=geometry, policy=policy)
    moving = {node for node, _ in program.strides}
    rounds = {
        loop.index: STEPS if moving & loop.nodes else random.choice([1, 3, 50])
        for loop in program.graph.loops
    }
    classes = classify(program.graph, program, caches)
    contested = 0
    if random.random() < 0.8:
        known = rounds if random.random() < 0.8 else {}
        contested = sum(bool(lines.evictions) and lines.gains(known) for lines in classes.ranges)
        classes = classes.counted(known)
    if policy is ReplacementPolicy.ONE_WAY:
        policy = random.choice(list(ReplacementPolicy))
        one_way = replace(geometry, size=geometry.size // geometry.ways, ways=1, locked_ways=0)
        geometry = random.choice([one_way, geometry])
    locked = caches.locked_i, caches.locked_d
    initial = caches.initial_i, caches.initial_d
    tally = Walk(program, classes, ahead, geometry, policy, random, locked, initial).run(STEPS)
    return replace(tally, contested=contested)
