"""Lines locked in L2: held lines, capacity, and the cost of a hit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.classify import classify
from cache.geometry import CacheGeometry
from cache.locked import LockedLines
from cache.reference import HitClass, ReferenceKind
from cache.unlocked import unlocked_nodes, unlocks_code
from quoll.arm.insn import Insn
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import CODE, DATA, straight
from tests.testing.cache.walks import MEMORY, hierarchy

L2 = CacheGeometry(131072, 8, 32)
RANGES = st.lists(
    st.tuples(st.integers(0, 500), st.integers(1, 90)).map(lambda p: (p[0], p[0] + p[1])),
    max_size=6,
)


@given(RANGES, st.integers(0, 600), st.integers(0, 70))
def test_holds_what_whole_lines_of_the_ranges_hold(
    ranges: list[tuple[int, int]], low: int, more: int
) -> None:
    locked = LockedLines.of(ranges, 32)
    lines = {a // 32 for first, after in ranges for a in range(first, after)}
    assert set(locked.lines()) == lines
    assert locked.holds(low, low + more) is all(
        a // 32 in lines for a in range(low, low + more + 1)
    )


@pytest.mark.parametrize(("ways", "fits"), [(2, False), (3, True)])
def test_ways_are_counted_per_set(ways: int, fits: bool) -> None:
    """Three lines of one set, 16 KiB apart, and neighbours."""
    ranges = [(0xF0010000 + n * 16384, 0xF0010040 + n * 16384) for n in range(3)]
    crowded = LockedLines.of(ranges, 32).crowded(L2.sets, ways, MEMORY)
    assert (crowded is None) is fits


def test_untranslated_lines_may_be_in_any_set_of_their_place_in_a_page() -> None:
    ranges = [(0xFFFF0000, 0xFFFF0020), (0xF0012000, 0xF0012020)]
    locked = LockedLines.of(ranges, 32)
    assert locked.crowded(L2.sets, 1, MEMORY) is not None
    assert locked.crowded(L2.sets, 2, MEMORY) is None
    apart = LockedLines.of([(0xFFFF0000, 0xFFFF0020), (0xF0012020, 0xF0012040)], 32)
    assert apart.crowded(L2.sets, 1, MEMORY) is None


@pytest.mark.parametrize(
    ("text", "value", "hits"),
    [
        ("ldr r0, [r1]", ValueSet.of(DATA + 4), True),
        ("str r0, [r1]", ValueSet.of(DATA + 4), True),
        ("ldrne r0, [r1]", ValueSet(DATA, DATA + 60, 4), True),
        ("ldr r0, [r1]", ValueSet(DATA, DATA + 64, 4), False),
        ("ldr r0, [r1]", None, False),
    ],
)
def test_lines_locked_in_l1_hit(text: str, value: ValueSet | None, hits: bool) -> None:
    """They do not change the state: resident lines of their set stay."""
    other = ValueSet.of(DATA + 4096)
    program = straight(f"ldr r2, [r3]\n{text}\nldr r2, [r3]\n", [other, value, other])
    locked = LockedLines.of([(DATA, DATA + 64)], 32)
    caches = hierarchy(0)
    caches = replace(caches, l1d=replace(caches.l1d, locked_ways=1), locked_d=locked)
    classes = classify(program.graph, program, caches)
    found = [
        r.l1 is HitClass.AH for r in classes.references[0] if r.kind is not ReferenceKind.FETCH
    ]
    assert found == [False, hits, hits]
    assert any("L1D holds" in text for text in map(str, classes.assumptions))


@pytest.mark.parametrize(
    ("operation", "code", "data"),
    [
        ("mcr p15, 0, r0, c7, c5, 1", False, True),  # one instruction line
        ("mcr p15, 0, r0, c7, c6, 0", True, False),  # all of the data cache
        ("mcr p15, 0, r0, c9, c0, 0", False, False),  # lockdown itself
        ("mcr p15, 0, r0, c7, c10, 1", True, True),  # cleaning keeps lines
    ],
)
def test_nothing_is_locked_where_lines_may_be_dropped(
    operation: str, code: bool, data: bool
) -> None:
    program = straight(f"ldr r0, [r1]\n{operation}\n", [ValueSet.of(DATA)])
    ways = replace(hierarchy(0).l1d, locked_ways=1)
    caches = replace(
        hierarchy(0), l1i=ways, l1d=ways,
        locked_i=LockedLines.of([(CODE, CODE + 32)], 32),
        locked_d=LockedLines.of([(DATA, DATA + 32)], 32),
    )  # fmt: skip
    references = classify(program.graph, program, caches).references[0]
    first = {r.kind: r.l1 is HitClass.AH for r in references if r.insn == 0}
    assert first == {ReferenceKind.FETCH: code, ReferenceKind.LOAD: data}


def test_a_block_is_examined_once_for_all_contexts() -> None:
    """Kernels have ten times as many nodes as blocks, and many starts of paths."""
    program = straight("mov r0, #1\nmcr p15, 0, r0, c7, c5, 0\nmov r0, #2\n", [])
    node, asked = program.graph.nodes[0], Counter[int]()
    empty: tuple[tuple[int, ...], ...] = ((),) * 3
    graph = replace(program.graph, nodes=(node,) * 3, successors=empty, predecessors=empty)

    def unlocks(insn: Insn) -> bool:
        asked[insn.addr] += 1
        return unlocks_code(insn)

    assert unlocked_nodes(graph, unlocks) == {0, 1, 2}
    assert max(asked.values()) == 1


def test_only_locked_lines_hit_in_l2() -> None:
    text = "ldr r0, [r1]\nstr r0, [r1]\nldr r0, [r2]\nldr r0, [r3]\nmcr p15, 0, r0, c7, c5, 1\n"
    inside, outside = ValueSet.of(DATA + 4), ValueSet.of(DATA + 64)
    crossing = ValueSet(DATA, DATA + 64, 4)
    program = straight(text, [inside, inside, outside, crossing])
    locked = LockedLines.of([(DATA, DATA + 64), (CODE, CODE + 256)], 32)
    caches = replace(hierarchy(0), l2=L2, locked=locked)
    classes = classify(program.graph, program, caches)
    found = [(r.kind, r.l2) for r in classes.references[0] if r.kind is not ReferenceKind.FETCH]
    assert found == [
        (ReferenceKind.LOAD, HitClass.AH),
        (ReferenceKind.STORE, HitClass.AH),
        (ReferenceKind.LOAD, HitClass.NC),
        (ReferenceKind.LOAD, HitClass.NC),
        (ReferenceKind.PREFETCH, HitClass.AH),  # whichever line is dropped, it is locked in L2
    ]
    assert {r.l2 for r in classes.references[0] if r.kind is ReferenceKind.FETCH} == {HitClass.AH}
    assert any("locked" in text for text in map(str, classes.assumptions))
    without = classify(program.graph, program, replace(caches, locked=LockedLines((), 32)))
    assert {r.l2 for r in without.references[0]} == {HitClass.NC}
