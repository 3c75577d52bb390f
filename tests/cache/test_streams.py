"""Loads that a loop advances: misses per line, and code that prevents the claim."""

from __future__ import annotations

from itertools import product

import pytest

from cache.classify import classify
from cache.reference import AccessStream, HitClass, Reference, ReferenceKind
from pipeline.charge import due_cycles, entry_cycles
from quoll.abstract_domain.terms import RIGID
from quoll.cfg.cfg import Block, EdgeKind
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperLoop, SuperNode
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import SymbolicAddress
from tests.testing.cache.graphs import CODE, Program, at, pool
from tests.testing.cache.walks import LATENCIES, hierarchy

POINTER = RIGID
WORD = 4
MISS = LATENCIES.load_miss(None)


def loop(text: str, origins: dict[int, SymbolicAddress], step: int, rounds: int) -> list[Reference]:
    """The loads of a loop of one block, in memory that may be uncached, and the entry's."""
    insns = [*pool(text), *pool("beq .\n")]
    body = Block(0, tuple(at(insn, CODE + 4 * i) for i, insn in enumerate(insns)))
    graph = Supergraph(
        (Context(None, None, CODE),), (SuperNode(0, body),), (SuperEdge(0, 0, EdgeKind.TAKEN),),
        ((0,),), ((0,),), 0, (0,), (SuperLoop(0, 0, (), (0,), frozenset([0]), None),),
    )  # fmt: skip
    values: dict[tuple[int, int], ValueSet | None] = {
        (0, i): None for i, insn in enumerate(insns) if insn.memory
    }
    images = {0: {POINTER: POINTER << 32 | step & 0xFFFFFFFF}}
    program = Program(graph, values, {(0, i): o for i, o in origins.items()}, images)
    classes = classify(graph, program, hierarchy(0)).counted({0: rounds})
    found = [r for r in classes.references[0] if r.kind is ReferenceKind.LOAD]
    assert {r.kind for r in classes.start_misses} >= (
        {ReferenceKind.LOAD} if found[0].stream else set()
    )
    return found


@pytest.mark.parametrize("step", [4, -4, 8, 0])
def test_a_pointer_that_advances(step: int) -> None:
    (load,) = loop("ldr r3, [r4]\n", {0: SymbolicAddress(POINTER, 12)}, step, 100)
    assert load.l1 is HitClass.PL
    assert load.stream == AccessStream(0, 32, abs(step), 4, (0,), 100)


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        (
            "ldr r3, [r4]\nldr r3, [r4]\n",
            {0: SymbolicAddress(POINTER, 0), 1: SymbolicAddress(POINTER + 1, 0)},
        ),
        (
            "ldr r3, [r4]\nldr r3, [r4]\n",
            {0: SymbolicAddress(POINTER, 0), 1: SymbolicAddress(POINTER, 4096)},
        ),
        ("ldrne r3, [r4]\n", {0: SymbolicAddress(POINTER, 0)}),
        ("ldr r3, [r4]\nmcr p15, 0, r0, c7, c6, 0\n", {0: SymbolicAddress(POINTER, 0)}),
        ("ldr r3, [r4]\nmcr p15, 0, r0, c13, c0, 1\n", {0: SymbolicAddress(POINTER, 0)}),
        ("ldm r4, {r0-r3, r5-r9}\n", {0: SymbolicAddress(POINTER, 0)}),
    ],
)
def test_what_is_no_stream(text: str, origins: dict[int, SymbolicAddress]) -> None:
    """Another pointer's fill, a line a way apart, no certain load, maintenance, two lines."""
    assert all(load.l1 is HitClass.NC for load in loop(text, origins, 4, 100))


def test_neighbours_do_not_spoil_it() -> None:
    text = "ldr r3, [r4]\nstr r3, [r4]\nldr r3, [r4]\n"
    origins = {
        0: SymbolicAddress(POINTER, 0),
        1: SymbolicAddress(POINTER + 1, 0),
        2: SymbolicAddress(POINTER, 64),
    }
    assert [load.l1 for load in loop(text, origins, 4, 100)] == [HitClass.PL, HitClass.PL]


def test_a_step_of_a_line_gains_nothing() -> None:
    (load,) = loop("ldr r3, [r4]\n", {0: SymbolicAddress(POINTER, 0)}, 32, 100)
    assert load.l1 is HitClass.NC


@pytest.mark.parametrize("rounds", [1, 2, 50])
def test_short_loops_are_charged_a_miss_each_time(rounds: int) -> None:
    (load,) = loop("ldr r3, [r4]\n", {0: SymbolicAddress(POINTER, 0)}, 4, rounds)
    total = rounds * due_cycles(load, LATENCIES) + entry_cycles(load, LATENCIES)
    assert total <= rounds * MISS
    assert (total < rounds * MISS) is (rounds == 50)


def test_shares_cover_every_line_that_is_passed() -> None:
    """All strides, widths and places of the first access, in both directions."""
    for stride, width, first in product(range(32), (1, 2, 4, 8, 32), range(32)):
        stream = AccessStream(0, 32, stride, width, (0,))
        for sign in (1, -1):
            lines = set[int]()
            for n in range(1, 40):
                low = 4096 + first + sign * (n - 1) * stride
                if low // 32 != (low + width - 1) // 32:
                    break  # such a load is none of one line
                lines.add(low // 32)
                assert len(lines) * MISS <= n * stream.share(MISS) + stream.first(MISS)


def test_shares_cover_lines_that_are_not_cached() -> None:
    """Any choice of which lines are cached; a word past the caches costs a quarter of a miss."""
    past = MISS // 4
    for stride, first, cached in product((1, 2, 4, 8, 16), range(0, 32, 4), range(16)):
        stream = AccessStream(0, 32, stride, 4, (0,))
        if stride < WORD and first % 32 + WORD > 32:
            continue
        spent, before = 0, -1
        each = max(past, stream.share(MISS))
        for n in range(1, 130):
            line = (first + (n - 1) * stride) // 32
            if line > 3:
                break
            is_cached = cached >> line & 1
            spent += (MISS * (line != before)) if is_cached else past
            before = line
            assert spent <= n * each + stream.first(MISS)


def test_rounds_of_nested_loops_multiply() -> None:
    """Where one of them is not known, neither is their product."""
    stream = AccessStream(0, 32, 4, 4, (2, 0))
    assert stream.counted({0: 3, 1: 7, 2: 5}).iterations == 15
    assert stream.counted({0: 3}).iterations is None
    assert stream.counted({}).iterations is None
