"""Classification against concrete caches: claimed hits are hits, and misses are charged."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from cache.classify import classify
from cache.geometry import CacheGeometry
from cache.reference import HitClass, Reference, ReferenceKind
from pipeline.charge import due_cycles
from pipeline.timing_model import MemoryLatencies
from quoll.cfg.cfg import Block, EdgeKind
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperLoop, SuperNode
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import CODE, DATA, DEVICE, Program, at, pool, straight
from tests.testing.cache.walks import Tally, check, hierarchy
from tests.testing.harness.cases import cases

CASES = cases(420)  # of the 100,000 in campaigns/caches.py


@pytest.mark.slow("simulates many random accesses")
@pytest.mark.parametrize("part", range(2))
def test_claims_hold_on_concrete_caches(part: int) -> None:
    """Rules 6, 8, 9, 10, 12: random programs, contents, addresses, prefetches, two policies."""
    total = Tally()
    for seed in range(part, CASES, 2):
        try:
            tally = check(Random(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        total.hits += tally.hits
        total.first += tally.first
        total.paid += tally.paid
        total.symbolic += tally.symbolic
        total.streams += tally.streams
        total.ranges += tally.ranges
        total.shared += tally.shared
        total.contested += tally.contested
        total.missing += tally.missing
        total.clean += tally.clean
        for kind in total.charged:
            total.charged[kind] += tally.charged[kind]
            total.happened[kind] += tally.happened[kind]
    # The generator must reach all claims: hits, first misses, charges in advance, and charges that
    # real misses use up.
    assert min(total.hits, total.first, total.ranges) > CASES
    assert total.shared > CASES // 2
    assert total.contested > 0
    assert total.paid > CASES // 10
    assert total.symbolic > CASES // 100
    assert min(total.streams, total.missing) > CASES // 20
    kinds = total.charged.keys() - {"maintenance"}
    assert all(total.happened[kind] > total.charged[kind] // 10 for kind in kinds)
    assert total.clean > CASES // 20


def data(text: str, *values: ValueSet | None) -> list[tuple[int, ReferenceKind, HitClass, int]]:
    """(instruction, kind, class, words) of the data references of a block."""
    program = straight(text, list(values))
    references = classify(program.graph, program, hierarchy(0)).references[0]
    return [
        (r.insn, r.kind, r.l1, r.words) for r in references if r.kind is not ReferenceKind.FETCH
    ]


HERE = ValueSet.of(DATA)


@pytest.mark.parametrize(
    ("between", "value", "after"),
    [
        ("ldr r3, [r4]", HERE, HitClass.AH),
        ("ldr r3, [r4]", ValueSet.of(DATA + 32), HitClass.AH),
        ("ldr r3, [r4]", ValueSet.of(DATA + 4096), HitClass.NC),
        ("ldr r3, [r4]", ValueSet(DATA + 32, DATA + 4092, 4), HitClass.AH),
        ("ldr r3, [r4]", ValueSet(DATA + 32, DATA + 4096, 4), HitClass.NC),
        ("ldr r3, [r4]", None, HitClass.NC),
        ("ldrne r3, [r4]", ValueSet.of(DATA + 4096), HitClass.NC),
        ("pld [r4]", ValueSet.of(DATA + 4096), HitClass.NC),
        ("str r3, [r4]", ValueSet.of(DATA + 4096), HitClass.AH),
        ("str r3, [r4]", None, HitClass.AH),
        ("ldr r3, [r4]", ValueSet.of(DEVICE), HitClass.AH),
        ("ldrex r3, [r4]", HERE, HitClass.NC),
        ("strex r2, r3, [r4]", HERE, HitClass.NC),
        ("strex r2, r3, [r4]", None, HitClass.NC),
        ("strex r2, r3, [r4]", ValueSet.of(DATA + 32), HitClass.AH),
        ("swp r3, r2, [r4]", HERE, HitClass.NC),
        ("mcr p15, 0, r0, c7, c14, 1", None, HitClass.NC),
        ("mcr p15, 0, r0, c7, c10, 1", None, HitClass.AH),
        ("mcr p15, 0, r0, c2, c0, 0", None, HitClass.AH),
        ("mcr p15, 1, r0, c7, c5, 0", None, HitClass.NC),
    ],
)
def test_what_is_resident_after(between: str, value: ValueSet | None, after: HitClass) -> None:
    """Rule 6: a line loaded once, then one access, then a load and a store of the line."""
    values = [HERE, HERE, HERE] if between.startswith("mcr") else [HERE, value, HERE, HERE]
    found = data(f"ldr r0, [r1]\n{between}\nldr r0, [r1]\nstr r0, [r1]\n", *values)
    assert found[0] == (0, ReferenceKind.LOAD, HitClass.NC, 1)
    # In all cases the load leaves the line resident for the store.
    assert found[-2:] == [
        (2, ReferenceKind.LOAD, after, 1),
        (3, ReferenceKind.STORE, HitClass.AH, 1),
    ]


@pytest.mark.parametrize(
    "first", ["ldrne r0, [r1]", "pld [r1]", "str r0, [r1]", "swp r0, r2, [r1]"]
)
def test_what_leaves_nothing_resident(first: str) -> None:
    found = data(f"{first}\nldr r0, [r1]\n", HERE, HERE)
    assert found[-1] == (1, ReferenceKind.LOAD, HitClass.NC, 1)


@pytest.mark.parametrize(
    ("access", "cycles"),
    [("ldrex r0, [r1]", 123), ("strex r2, r0, [r1]", 60 + 60), ("swp r0, r2, [r1]", 123 + 60)],
)
def test_locked_accesses_are_charged_although_their_line_is_resident(
    access: str, cycles: int
) -> None:
    """They may go past L1: to an exclusive monitor, or as a locked pair on the bus."""
    memory = MemoryLatencies(60, None, 3, dirty_l1_victims=True, dirty_l2_victims=True)
    program = straight(f"ldr r0, [r1]\n{access}\n", [HERE, HERE])
    references = classify(program.graph, program, hierarchy(0)).references[0]
    assert sum(due_cycles(r, memory) for r in references if r.insn == 1) == cycles


@pytest.mark.parametrize("access", ["ldrex r0, [r1]", "swp r0, r2, [r1]"])
def test_locked_accesses_miss_in_every_iteration(access: str) -> None:
    """One that goes past L1 fills no line, so it never is a first miss."""
    (locked,), (beq, *_) = pool(f"{access}\n"), pool("beq .\n")
    body = Block(0, (at(locked, CODE), at(beq, CODE + 4)))
    graph = Supergraph(
        (Context(None, None, CODE),), (SuperNode(0, body),), (SuperEdge(0, 0, EdgeKind.TAKEN),),
        ((0,),), ((0,),), 0, (0,), (SuperLoop(0, 0, (), (0,), frozenset([0]), None),),
    )  # fmt: skip
    classes = classify(graph, Program(graph, {(0, 0): HERE}), hierarchy(0))
    (load, *_) = [r for r in classes.references[0] if r.kind is ReferenceKind.LOAD]
    assert load.due
    assert load.uncached


def test_lists_cross_lines() -> None:
    words = "ldm r4, {r0-r3, r5-r9}\n"
    assert [w for *_, w in data(words, ValueSet.of(DATA + 28))] == [1, 8]
    assert [w for *_, w in data(words, ValueSet.of(DATA + 20))] == [3, 6]
    assert len(data(words, None)) == 2
    assert len(data("ldm r4, {r0-r3, r5-r10}\n", None)) == 3
    assert [w for *_, w in data("strd r2, r3, [r4]\n", None)] == [1, 1]
    # Aligned to lines, nine words take two of them and eight take one.
    aligned = ValueSet(DATA, DATA + 320, 32)
    assert len(data(words, aligned)) == 2
    assert len(data("ldm r4, {r0-r3, r5-r8}\n", aligned)) == 1


def test_devices_are_charged_and_change_nothing() -> None:
    found = data("ldr r0, [r1]\nstr r0, [r1]\n", ValueSet.of(DEVICE), ValueSet.of(DEVICE))
    assert found == [
        (0, ReferenceKind.LOAD, HitClass.AM, 1),
        (1, ReferenceKind.STORE, HitClass.AM, 1),
    ]


def test_cleaning_writes_back() -> None:
    assert data("mcr p15, 0, r0, c7, c10, 1\n") == [(0, ReferenceKind.WRITE_BACK, HitClass.NC, 8)]
    assert data("mcr p15, 0, r0, c7, c10, 0\n") == [
        (0, ReferenceKind.WRITE_BACK, HitClass.NC, 4096)
    ]


def loop(length: int, *, ahead: int, conflict: bool = False) -> tuple[Supergraph, list[Reference]]:
    """Entry block, then a loop of ``length`` instructions; the references inside it."""
    (add, *_), (beq, *_) = pool("add r0, r1, r2\n"), pool("beq .\n")
    first = Block(0, tuple(at(add, CODE + 4 * i) for i in range(8)))
    far = CODE + 4096 if conflict else CODE + 32
    body = Block(
        1, (*(at(add, far + 4 * i) for i in range(length - 1)), at(beq, far + 4 * length - 4))
    )
    edges = (
        SuperEdge(0, 1, EdgeKind.FALLTHROUGH),
        SuperEdge(1, 1, EdgeKind.TAKEN),
    )
    graph = Supergraph(
        (Context(None, None, CODE),), (SuperNode(0, first), SuperNode(0, body)), edges,
        ((0,), (1,)), ((), (0, 1)), 0, (1,),
        (SuperLoop(0, 1, (0,), (1,), frozenset([1]), None),),
    )  # fmt: skip
    classes = classify(graph, Program(graph, {}), hierarchy(ahead))
    return graph, [*classes.references[1], *classes.prefetches[1], *classes.first_misses[0]]


def test_a_loop_is_fetched_once_per_entry() -> None:
    _, references = loop(16, ahead=0)
    # Two lines in the body, each a first miss, charged on the edge into the loop.
    assert [(r.kind, r.l1, r.due) for r in references] == [
        (ReferenceKind.FETCH, HitClass.FM, False)
    ] * 4


@pytest.mark.parametrize(
    ("operation", "due"),
    [("mcr p15, 0, r0, c7, c5, 1", 1), ("mcr p15, 0, r0, c7, c5, 2", 1),
     ("mcr p15, 0, r0, c7, c5, 0", 3)],
)  # fmt: skip
def test_what_an_operation_on_one_line_costs_in_a_loop(operation: str, due: int) -> None:
    """It drops one line at most: one miss per execution, however long the loop is."""
    (add, *_), (beq, *_), (drop, *_) = (pool(t) for t in ("add r0, r1, r2\n", "beq .\n", operation))
    body = Block(0, tuple(at(i, CODE + 4 * n) for n, i in enumerate([drop, *[add] * 14, beq])))
    graph = Supergraph(
        (Context(None, None, CODE),), (SuperNode(0, body),), (SuperEdge(0, 0, EdgeKind.TAKEN),),
        ((0,),), ((0,),), 0, (0,), (SuperLoop(0, 0, (), (0,), frozenset([0]), None),),
    )  # fmt: skip
    classes = classify(graph, Program(graph, {}), hierarchy(0))
    assert sum(r.due for r in classes.references[0]) == due
    # The two lines themselves are paid for where the path starts, unless all is forgotten.
    assert len(classes.start_misses) == (2 if due == 1 else 0)


def test_lines_past_the_loop_are_prefetched_once_per_entry() -> None:
    _, references = loop(16, ahead=48)
    inside, past, charged = references[:2], references[2:4], references[4:]
    assert {r.l1 for r in inside + past} == {HitClass.FM}
    assert [r.kind for r in past] == [ReferenceKind.PREFETCH] * 2
    assert sorted(r.low or 0 for r in charged) == [CODE + 32 * i for i in range(1, 5)]


def test_a_long_loop_misses_every_time() -> None:
    _, references = loop(8 * 129, ahead=0)
    # 129 lines in 128 sets: only the first and the last compete.
    assert [r.l1 for r in references[:129]].count(HitClass.NC) == 2


def test_l2_is_never_claimed() -> None:
    program = straight("ldr r0, [r1]\nldr r0, [r1]\n", [HERE, HERE])
    caches = replace(hierarchy(0), l2=CacheGeometry(131072, 8, 32))
    references = classify(program.graph, program, caches).references[0]
    assert {r.l2 for r in references} == {HitClass.NC}
