"""Counts along followed paths cover concrete caches on these paths, whatever they hold at first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from cache.classify import classify
from cache.executed.access_trace import AccessTrace, TracedCode, TransferRow, concerns_data
from cache.executed.counted_misses import with_misses
from cache.executed.reached_addresses import Transfer
from cache.geometry import CacheGeometry, CacheHierarchy
from cache.policy import ReplacementPolicy
from cache.reference import CacheClassification, HitClass, Reference, ReferenceKind
from quoll.arm.floating_point import vector_role
from quoll.arm.insn import AccessKind, Insn
from quoll.cfg.cfg import Block
from quoll.intervals.strided_interval import ValueSet, progression
from quoll.value_analysis.narrowed_addresses import NarrowedAddresses
from tests.testing.cache.graphs import DATA, Program, Words, in_one_block, pool, random_program
from tests.testing.cache.walks import L1, STEPS, Walk, hierarchy
from tests.testing.harness.cases import cases

CASES = cases(300)
UNSURE = 0.1  # of the accesses have no known address


class RecordedWords(Words):
    """Words that record the addresses of accesses."""

    def __init__(self, program: Program, random: Random, drawn: dict[tuple[int, int], int]) -> None:
        super().__init__(program, random)
        self.drawn = drawn

    def address(self, node: int, index: int, insn: Insn) -> int:
        found = self.drawn[node, index] = super().address(node, index, insn)
        return found


@dataclass
class Visited:
    """A node on a path, the edge to it, and the address of each executed access."""

    node: int
    edge: int | None
    addresses: dict[int, int] = field(default_factory=dict)


class RecordedWalk(Walk):
    """A walk that records its path."""

    def run_recorded(self) -> list[Visited]:
        self.drawn: dict[tuple[int, int], int] = {}
        self.path = [Visited(self.program.graph.entry, None)]
        words = RecordedWords(self.program, Random(0), self.drawn)
        words._words = self.words._words
        words._random = self.words._random
        self.words = words
        self.run(STEPS)
        return self.path

    def _block(self, node: int) -> None:
        self.drawn.clear()
        super()._block(node)
        self.path[-1].addresses = {index: at for (_, index), at in self.drawn.items()}

    def _edge(self, edge: int) -> None:
        super()._edge(edge)
        self.path.append(Visited(self.program.graph.edges[edge].dst, edge))


def rows_of(block: Block) -> list[TransferRow] | None:
    """The accesses of a block if it can be followed at once; each is taken for one transfer."""
    found = [
        TransferRow.of(index, insn, 1, conditional=insn.conditional)
        for index, insn in enumerate(block.insns)
        if concerns_data(insn)
    ]
    plain = all(row.plain for row in found) and sum(row.conditional for row in found) <= 1
    return found if plain else None


def follow(trace: AccessTrace, program: Program, path: Sequence[Visited], random: Random) -> None:
    """Let a trace follow a path; some addresses are not known to it."""
    for visited in path:
        rows = rows_of(program.graph.nodes[visited.node].block)
        if rows is not None and random.random() < 0.5:
            known = [visited.addresses[row.insn] for row in rows if row.insn in visited.addresses]
            trace.execute_block(visited.node, rows, [noted(random, at) for at in known])
            continue
        for index, insn in enumerate(program.graph.nodes[visited.node].block.insns):
            address = visited.addresses.get(index)
            preloads = insn.memory is not None and insn.memory.access is AccessKind.PRELOAD
            transfers = not preloads and vector_role(insn) is None
            known = [address] if transfers and address is not None else []
            touched = [noted(random, at) for at in known]
            if not known or random.random() < UNSURE:
                perhaps = transfers and insn.conditional and random.random() < 0.5
                touched = [Transfer.PERHAPS, *touched] if perhaps else [None]
            trace.execute(visited.node, index, touched, transfers=transfers)


def noted(random: Random, address: int) -> object:
    """The exact address, a set that contains it, or None for any address."""
    if random.random() >= 2 * UNSURE:
        return address
    below, above = (random.choice([0, 4, 32, 256]) for _ in range(2))
    apart = random.choice([4, 32, 64])
    within = progression(address - below * apart, address + above * apart, apart)
    return random.choice([None, within])


def joined(
    code: TracedCode, program: Program, paths: Sequence[Sequence[Visited]], random: Random
) -> tuple[AccessTrace, list[int]]:
    """A trace of two paths that go on as one from a place where both are; most of each edge."""
    one, two = paths
    meetings = [(i, j) for i, a in enumerate(one) for j, b in enumerate(two) if a.node == b.node]
    cuts = random.choice(meetings)
    before = [code.begin(), code.begin()]
    for trace, path, cut in zip(before, paths, cuts, strict=True):
        follow(trace, program, path[:cut], random)
    before[0].join(before[1])
    ends = [before[0].fork(), before[0].fork()]
    for trace, path, cut in zip(ends, paths, cuts, strict=True):
        follow(trace, program, path[cut:], random)
    ends[0].count(ends[1])
    halves = [
        [Counter(v.edge for v in part if v.edge is not None) for part in (path[:cut], path[cut:])]
        for path, cut in zip(paths, [at + 1 for at in cuts], strict=True)
    ]
    edges = [
        sum(max(half[edge] for half in same) for same in zip(*halves, strict=True))
        for edge in range(len(program.graph.edges))
    ]
    return ends[0], edges


def drawn(random: Random) -> tuple[Program, CacheHierarchy]:
    """A program and its caches."""
    kind = random.random()
    program = random_program(
        random, maintenance=random.random() < 0.3, steady=kind < 0.2, tables=0.2 < kind < 0.6
    )
    geometry = random.choice([L1, CacheGeometry(1024, 2, 32), CacheGeometry(2048, 4, 32)])
    policy = random.choice(list(ReplacementPolicy))
    return program, replace(hierarchy(0), l1i=geometry, l1d=geometry, policy=policy)


def claims(classes: CacheClassification) -> Counter[HitClass]:
    """How often data references have each class."""
    kinds = (ReferenceKind.LOAD, ReferenceKind.STORE)
    return Counter(r.l1 for of in classes.references for r in of if r.kind in kinds)


@pytest.mark.slow("simulates many random accesses")
def test_counts_cover_concrete_caches() -> None:
    gained, narrower = Counter[HitClass](), 0
    for seed in range(CASES):
        random = Random(f"counted {seed}")
        program, caches = drawn(random)
        plain = classify(program.graph, program, caches)
        policy = caches.policy
        if policy is ReplacementPolicy.ONE_WAY:
            policy = random.choice(list(ReplacementPolicy))
        seeds = [random.random() for _ in range(2)]

        def walk(
            classes: CacheClassification,
            own: float,
            program: Program = program,
            geometry: CacheGeometry = caches.l1d,
            policy: ReplacementPolicy = policy,
        ) -> RecordedWalk:
            return RecordedWalk(program, classes, 0, geometry, policy, Random(own))

        paths = [walk(plain, own).run_recorded() for own in seeds]
        code = TracedCode(program.graph, program, caches)
        trace, edges = joined(code, program, paths, random)
        known = NarrowedAddresses(program, trace.misses.addresses)
        narrower += len(trace.misses.addresses)
        classes = plain if random.random() < 0.3 else classify(program.graph, known, caches)
        classes = with_misses(classes, program.graph, trace.misses, edges)
        rounds = {loop.index: random.choice([1, 3, 50]) for loop in program.graph.loops}
        counted = classes.counted(rounds if random.random() < 0.8 else {})
        gained += claims(counted) - claims(plain)
        for own in seeds:
            try:
                walk(counted, own).run_recorded()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
    assert gained[HitClass.AH] > CASES
    assert gained[HitClass.CM] > CASES // 10
    assert narrower > CASES


def references(text: str, *touched: list[int]) -> tuple[Reference, ...]:
    """The references of a block that is executed once, each access at the addresses ``touched``."""
    program = in_one_block(pool(text), [None] * len(touched))
    caches = hierarchy(0)
    trace = TracedCode(program.graph, program, caches).begin()
    for index, addresses in enumerate(touched):
        trace.execute(0, index, addresses)
    plain = classify(program.graph, program, caches)
    return with_misses(plain, program.graph, trace.misses, ()).references[0]


@pytest.mark.parametrize(
    ("second", "hits"),
    [([DATA + 28], True), ([DATA + 32], False), ([DATA + 4096], False), ([], False)],
)
def test_a_load_hits_the_line_of_the_load_before(second: list[int], hits: bool) -> None:
    *_, last = references("ldr r3, [r4]\nldr r3, [r5]", [DATA], second)
    assert (last.l1 is HitClass.AH) is hits


def test_a_load_of_any_address_may_evict_every_line() -> None:
    found = references("ldr r3, [r4]\nldr r3, [r5]\nstr r3, [r4]", [DATA], [], [DATA])
    assert found[-1].l1 is not HitClass.AH


def test_a_load_that_may_not_be_executed_fills_nothing() -> None:
    values = ValueSet.of(DATA)
    program = in_one_block(pool("ldreq r3, [r4]\nldr r3, [r4]"), [values, values])
    trace = TracedCode(program.graph, program, hierarchy(0)).begin()
    trace.execute(0, 0, [None])
    trace.execute(0, 1, [DATA])
    assert trace.misses.lines == {(0, 0): 1, (0, 1): 1}


def test_stores_fill_no_line() -> None:
    found = references("str r3, [r4]\nldr r3, [r4]\nstr r3, [r4]", [DATA], [DATA], [DATA])
    data = [r for r in found if r.kind is not ReferenceKind.FETCH]
    assert [r.l1 is HitClass.AH for r in data] == [False, False, True]
