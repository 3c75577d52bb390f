"""Lines that are surely not there, and states that are given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cache.classify import classify
from cache.initial import InitialCache, InitialContentsKind
from cache.locked import LockedLines
from cache.policy import ReplacementPolicy
from cache.reference import HitClass, ReferenceKind
from pipeline.charge import due_cycles
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import DATA, FOREIGN, straight
from tests.testing.cache.walks import LATENCIES, hierarchy

WAY = 4096
LOAD, EMPTY, PRELOAD = "ldr r0, [r1]\n", "mcr p15, 0, r0, c7, c6, 0\n", "pld [r1]\n"
ANOTHER = tuple(DATA + n * WAY for n in range(8))  # lines of one set


def classes(
    text: str,
    addresses: list[int | None],
    policy: ReplacementPolicy = ReplacementPolicy.ONE_WAY,
    contents: InitialContentsKind = InitialContentsKind.UNKNOWN,
    held: tuple[int, int] | None = None,
    **writes: bool,
) -> list[HitClass]:
    """Of the loads and stores of one block."""
    program = straight(text, [None if a is None else ValueSet.of(a) for a in addresses])
    lines = LockedLines.of([held] if held else [], 32)
    caches = replace(hierarchy(0), policy=policy, initial_d=InitialCache(contents, lines))
    caches = replace(caches, l1d=replace(caches.l1d, **writes))
    references = classify(program.graph, program, caches).references[0]
    return [r.l1 for r in references if r.kind in (ReferenceKind.LOAD, ReferenceKind.STORE)]


def test_four_others_evict_a_line_under_lru() -> None:
    loads = [*ANOTHER[:5], ANOTHER[0]]
    assert classes(LOAD * 6, [*loads], ReplacementPolicy.LRU)[-1] is HitClass.AM
    # Four other lines have been used since the start, so all initial lines are evicted.
    assert classes(LOAD * 6, [*loads], ReplacementPolicy.LRU)[:5] == [HitClass.NC] * 4 + [
        HitClass.AM
    ]
    for policy in (
        ReplacementPolicy.ONE_WAY,
        ReplacementPolicy.ROUND_ROBIN,
        ReplacementPolicy.RANDOM,
        ReplacementPolicy.FIFO,
    ):
        assert classes(LOAD * 6, [*loads], policy) == [HitClass.NC] * 6
    assert classes(LOAD * 5, [*ANOTHER[:4], ANOTHER[0]], ReplacementPolicy.LRU)[-1] is HitClass.AH


def test_an_unknown_access_may_fill_anything() -> None:
    loads = [*ANOTHER[:4], None, ANOTHER[5]]
    assert classes(LOAD * 6, [*loads], ReplacementPolicy.LRU)[-1] is HitClass.NC
    assert classes(EMPTY + LOAD * 2, [None, DATA])[-1] is HitClass.NC


@pytest.mark.parametrize("policy", ReplacementPolicy)
def test_an_empty_cache_misses(policy: ReplacementPolicy) -> None:
    found = classes(EMPTY + LOAD * 3, [DATA, DATA, DATA + 32], policy)
    assert found == [HitClass.AM, HitClass.AH, HitClass.AM]
    assert classes(EMPTY + PRELOAD + LOAD, [DATA, DATA], policy)[-1] is not HitClass.AM
    assert classes(EMPTY + "str r0, [r1]\n" + LOAD, [DATA, DATA], policy) == [HitClass.AM] * 2


def test_fifo_counts_fills_from_an_empty_cache() -> None:
    found = classes(EMPTY + LOAD * 6, [*ANOTHER[:5], ANOTHER[0]], ReplacementPolicy.FIFO)
    assert found == [HitClass.AM] * 6


def test_a_flush_of_the_prefetch_buffer_leaves_what_was_fetched() -> None:
    """From a cold cache: lines behind the flush may have been fetched before it (rule 8)."""
    flush, flow = "mcr p15, 0, r0, c7, c5, 4\n", "nop\n" * 20
    program = straight(flush + flow, [])
    ahead = replace(hierarchy(48), initial_i=InitialCache(InitialContentsKind.COLD))
    for caches, missing in ((ahead, 2), (replace(ahead, fetch_ahead=0), 3)):
        references = classify(program.graph, program, caches).references[0]
        fetched = [r.l1 for r in references if r.kind is ReferenceKind.FETCH]
        assert fetched.count(HitClass.AM) == missing, (caches.fetch_ahead, fetched)


def test_another_name_of_the_line() -> None:
    """Memory whose translation may change can be the very line, but only one of its set."""
    assert classes(EMPTY + LOAD * 2, [FOREIGN, DATA + 32])[-1] is HitClass.AM
    assert classes(EMPTY + LOAD * 2, [FOREIGN, DATA])[-1] is HitClass.NC


def test_a_state_that_is_given() -> None:
    held = (DATA, DATA + 64)
    loads = LOAD * 3
    addresses: list[int | None] = [DATA, DATA + 32, DATA + 64]
    assert classes(loads, addresses) == [HitClass.NC] * 3
    assert classes(loads, addresses, held=held) == [HitClass.AH, HitClass.AH, HitClass.NC]
    assert (
        classes(loads, addresses, contents=InitialContentsKind.CLEAN, held=held)[2] is HitClass.NC
    )
    assert classes(loads, addresses, contents=InitialContentsKind.COLD, held=held) == [
        HitClass.AH, HitClass.AH, HitClass.AM,
    ]  # fmt: skip
    # A held line may be the next to go.
    assert (
        classes(LOAD * 2, [DATA + WAY, DATA], ReplacementPolicy.LRU, held=(DATA, DATA + 32))[1]
        is HitClass.NC
    )


def test_stores_that_allocate() -> None:
    store = "str r0, [r1]\n"
    assert classes(store + LOAD, [DATA, DATA]) == [HitClass.NC, HitClass.NC]
    assert classes(store + LOAD, [DATA, DATA], write_allocate=True) == [HitClass.NC, HitClass.AH]
    assert classes(store * 2, [DATA, DATA], write_allocate=True) == [HitClass.NC, HitClass.AH]
    # They evict as loads do.
    evicted = LOAD + store + LOAD
    assert classes(evicted, [DATA, DATA + WAY, DATA])[-1] is HitClass.AH
    assert classes(evicted, [DATA, DATA + WAY, DATA], write_allocate=True)[-1] is HitClass.NC


def test_what_stores_cost() -> None:
    program = straight("ldr r0, [r1]\nstr r0, [r1]\n", [ValueSet.of(DATA)] * 2)
    references = classify(program.graph, program, hierarchy(0)).references[0]
    hit = next(r for r in references if r.kind is ReferenceKind.STORE)
    assert hit.l1 is HitClass.AH
    through = replace(LATENCIES, write_through=True, dirty_l1_victims=False)
    pays = replace(LATENCIES, stores_pay=True)
    assert [due_cycles(hit, m) for m in (LATENCIES, through, pays)] == [0, 32, 32]
    assert LATENCIES.load_miss(None) - pays.load_miss(None) == LATENCIES.write_back
