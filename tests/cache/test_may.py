"""Lines that are surely not there, and states that are given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cache.classify import classify
from cache.initial import Contents, Initial
from cache.locked import LockedLines
from cache.policy import Policy
from cache.reference import Hit, Kind
from pipeline.charge import due_cycles
from quoll.words.strided_interval import ValueSet
from tests.testing.cache.graphs import DATA, FOREIGN, straight
from tests.testing.cache.walks import LATENCIES, hierarchy

WAY = 4096
LOAD, EMPTY, PRELOAD = "ldr r0, [r1]\n", "mcr p15, 0, r0, c7, c6, 0\n", "pld [r1]\n"
ANOTHER = tuple(DATA + n * WAY for n in range(8))  # lines of one set


def classes(
    text: str,
    addresses: list[int | None],
    policy: Policy = Policy.ONE_WAY,
    contents: Contents = Contents.UNKNOWN,
    held: tuple[int, int] | None = None,
    **writes: bool,
) -> list[Hit]:
    """Of the loads and stores of one block."""
    program = straight(text, [None if a is None else ValueSet.of(a) for a in addresses])
    lines = LockedLines.of([held] if held else [], 32)
    caches = replace(hierarchy(0), policy=policy, initial_d=Initial(contents, lines))
    caches = replace(caches, l1d=replace(caches.l1d, **writes))
    references = classify(program.graph, program, caches).references[0]
    return [r.l1 for r in references if r.kind in (Kind.LOAD, Kind.STORE)]


def test_four_others_evict_a_line_under_lru() -> None:
    loads = [*ANOTHER[:5], ANOTHER[0]]
    assert classes(LOAD * 6, [*loads], Policy.LRU)[-1] is Hit.AM
    # Four others have been used since the start: whatever was there is gone.
    assert classes(LOAD * 6, [*loads], Policy.LRU)[:5] == [Hit.NC] * 4 + [Hit.AM]
    for policy in (Policy.ONE_WAY, Policy.ROUND_ROBIN, Policy.RANDOM, Policy.FIFO):
        assert classes(LOAD * 6, [*loads], policy) == [Hit.NC] * 6
    assert classes(LOAD * 5, [*ANOTHER[:4], ANOTHER[0]], Policy.LRU)[-1] is Hit.AH


def test_an_unknown_access_may_fill_anything() -> None:
    loads = [*ANOTHER[:4], None, ANOTHER[5]]
    assert classes(LOAD * 6, [*loads], Policy.LRU)[-1] is Hit.NC
    assert classes(EMPTY + LOAD * 2, [None, DATA])[-1] is Hit.NC


@pytest.mark.parametrize("policy", Policy)
def test_an_empty_cache_misses(policy: Policy) -> None:
    found = classes(EMPTY + LOAD * 3, [DATA, DATA, DATA + 32], policy)
    assert found == [Hit.AM, Hit.AH, Hit.AM]
    assert classes(EMPTY + PRELOAD + LOAD, [DATA, DATA], policy)[-1] is not Hit.AM
    assert classes(EMPTY + "str r0, [r1]\n" + LOAD, [DATA, DATA], policy) == [Hit.AM] * 2


def test_fifo_counts_fills_from_an_empty_cache() -> None:
    found = classes(EMPTY + LOAD * 6, [*ANOTHER[:5], ANOTHER[0]], Policy.FIFO)
    assert found == [Hit.AM] * 6


def test_a_flush_of_the_prefetch_buffer_leaves_what_was_fetched() -> None:
    """From a cold cache: lines behind the flush may have been fetched before it (rule 8)."""
    flush, flow = "mcr p15, 0, r0, c7, c5, 4\n", "nop\n" * 20
    program = straight(flush + flow, [])
    ahead = replace(hierarchy(48), initial_i=Initial(Contents.COLD))
    for caches, missing in ((ahead, 2), (replace(ahead, fetch_ahead=0), 3)):
        references = classify(program.graph, program, caches).references[0]
        fetched = [r.l1 for r in references if r.kind is Kind.FETCH]
        assert fetched.count(Hit.AM) == missing, (caches.fetch_ahead, fetched)


def test_another_name_of_the_line() -> None:
    """Memory whose translation may change can be the very line, but only one of its set."""
    assert classes(EMPTY + LOAD * 2, [FOREIGN, DATA + 32])[-1] is Hit.AM
    assert classes(EMPTY + LOAD * 2, [FOREIGN, DATA])[-1] is Hit.NC


def test_a_state_that_is_given() -> None:
    held = (DATA, DATA + 64)
    loads = LOAD * 3
    addresses: list[int | None] = [DATA, DATA + 32, DATA + 64]
    assert classes(loads, addresses) == [Hit.NC] * 3
    assert classes(loads, addresses, held=held) == [Hit.AH, Hit.AH, Hit.NC]
    assert classes(loads, addresses, contents=Contents.CLEAN, held=held)[2] is Hit.NC
    assert classes(loads, addresses, contents=Contents.COLD, held=held) == [
        Hit.AH, Hit.AH, Hit.AM,
    ]  # fmt: skip
    # A held line may be the next to go.
    assert classes(LOAD * 2, [DATA + WAY, DATA], Policy.LRU, held=(DATA, DATA + 32))[1] is Hit.NC


def test_stores_that_allocate() -> None:
    store = "str r0, [r1]\n"
    assert classes(store + LOAD, [DATA, DATA]) == [Hit.NC, Hit.NC]
    assert classes(store + LOAD, [DATA, DATA], write_allocate=True) == [Hit.NC, Hit.AH]
    assert classes(store * 2, [DATA, DATA], write_allocate=True) == [Hit.NC, Hit.AH]
    # They evict as loads do.
    evicted = LOAD + store + LOAD
    assert classes(evicted, [DATA, DATA + WAY, DATA])[-1] is Hit.AH
    assert classes(evicted, [DATA, DATA + WAY, DATA], write_allocate=True)[-1] is Hit.NC


def test_what_stores_cost() -> None:
    program = straight("ldr r0, [r1]\nstr r0, [r1]\n", [ValueSet.of(DATA)] * 2)
    references = classify(program.graph, program, hierarchy(0)).references[0]
    hit = next(r for r in references if r.kind is Kind.STORE)
    assert hit.l1 is Hit.AH
    through = replace(LATENCIES, write_through=True, dirty_l1_victims=False)
    pays = replace(LATENCIES, stores_pay=True)
    assert [due_cycles(hit, m) for m in (LATENCIES, through, pays)] == [0, 32, 32]
    assert LATENCIES.load_miss(None) - pays.load_miss(None) == LATENCIES.write_back
