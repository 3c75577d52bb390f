"""Tests of kernels that test for interrupts every third time: all arrivals (rule 54).

Whatever the word held before, and whenever the interrupt arrives, the execution from the last start
on is a path of a segment, it counts as seldom as the segment says, and loops are as short.
"""

from __future__ import annotations

from itertools import product

import pytest

from quoll.cfg.cfg import EdgeKind
from quoll.inlining.supergraph import SuperEdge, Supergraph
from quoll.preemption import counters
from quoll.preemption.counters import counted_in, iterations_of
from quoll.preemption.segments import PendingSegment
from tests.testing.harness.cases import spread
from tests.testing.values.preemption_points import (
    COUNTING,
    REMEMBERING,
    SHAPES,
    Subject,
    executions,
    paths,
)

EVERY = 3
PLAIN = "ldr r0, [r5]\n bx lr"
KEPT = REMEMBERING["in conditional instructions"]
WORDS = (0, 2, 1 << 31, (1 << 32) - 1)
OPERATIONS = ("a loop", "nested, and one after the other")
COUNTED = {"chunk", "outer", "again"}


def kernel(name: str, shape: str, *, remembered: bool, work: int = 0) -> Subject:
    """A kernel that counts, and tests a register, or also a word that remembers its number."""
    test = COUNTING[name].replace("TEST", KEPT if remembered else PLAIN)
    if remembered:
        return Subject.remembering(test, SHAPES[shape], 255, work)
    return Subject.of("pl190", test, SHAPES[shape], work)


def limits(subject: Subject, segment: PendingSegment) -> dict[str, int]:
    """The most iterations of the loops at labels of a segment."""
    at = {symbol.addr: name for name in COUNTED if (symbol := subject.image.symbol(name))}
    graph, found = segment.graph, {}
    for loop in graph.loops:
        name, limit = at.get(graph.nodes[loop.header].block.addr), iterations_of(graph, loop)
        if name is not None:
            assert limit is not None, name
            found[name] = limit[0]
    return found


@pytest.mark.parametrize("remembered", [False, True])
@pytest.mark.parametrize(("name", "shape"), tuple(product(COUNTING, OPERATIONS)))
def test_a_loop_that_tests_every_third_time_iterates_four_times(
    name: str, shape: str, remembered: bool
) -> None:
    subject = kernel(name, shape, remembered=remembered)
    assert subject.segments
    for segment in subject.segments:
        assert set(limits(subject, segment).values()) <= {EVERY + 1}
        assert all(one.most >= EVERY for one in segment.graph.counted)
        assert any(one.most == EVERY for one in segment.graph.counted)
    assert limits(subject, subject.segments[0])


@pytest.mark.slow("all executions of a kernel for each word")
@pytest.mark.parametrize(
    ("name", "shape", "work"),
    spread(
        (
            (name, OPERATIONS[number % 2], work)
            for number, (work, name) in enumerate(product(WORDS, COUNTING))
        ),
        5,
    ),
)
def test_every_arrival_is_on_a_path_that_counts_as_seldom(name: str, shape: str, work: int) -> None:
    subject = kernel(name, shape, remembered=work % 2 == 0, work=work)
    counts = {"most": 0, "never": 0, "later": 0}
    for ran in executions(subject, (5,), (2, 4)):
        if ran.before is None:
            counts["never"] += 1
            continue
        found = list(paths(subject, ran))
        assert found, ran
        for segment, edges in found:
            counts["later"] += segment.start is not None
            for one in segment.graph.counted:
                taken = sum(e in one.counted for e in edges)
                assert taken <= one.most * (1 + sum(e in one.reset for e in edges))
                counts["most"] = max(counts["most"], taken)
            check_loops(segment, edges)
    assert counts["never"] == 2
    assert counts["most"] >= EVERY - 1
    assert counts["later"] > 0


def check_loops(segment: PendingSegment, edges: list[int]) -> None:
    """No loop iterates more often than its limit per entry."""
    graph = segment.graph
    for loop in graph.loops:
        limit, executed = iterations_of(graph, loop), 0
        for e in edges:
            if graph.edges[e].dst == loop.header:
                executed = 1 if e in loop.entries else executed + 1
                assert limit is None or executed <= limit[0]


REFUSED = {
    "compared for equality": ("cmp r2, #2\n bhi due", "cmp r2, #3\n beq due"),
    "two at a time": ("add r2, r2, #1", "add r2, r2, #2"),
    "signed": ("bhi due", "bgt due"),
    "stored where it is not counted": ("mov r0, #0\n str r2, [r1]", "mov r0, #0\n str r0, [r1]"),
}


@pytest.mark.parametrize(("old", "new"), REFUSED.values(), ids=REFUSED.keys())
def test_a_word_that_may_never_reach_the_number_is_no_counter(old: str, new: str) -> None:
    """From some word on, such a loop goes round for very long, or for ever."""
    code = COUNTING["a store in each branch"]
    assert old in code
    test = code.replace(old, new).replace("TEST", PLAIN)
    subject = Subject.of("pl190", test, SHAPES["a loop"])
    for segment in subject.segments:
        assert not segment.graph.counted


def test_only_a_reset_between_two_counts_lets_a_path_count_again() -> None:
    """A path of six edges: before the first count and behind the last, nothing is separated."""
    edges = tuple(SuperEdge(n, n + 1, EdgeKind.FALLTHROUGH) for n in range(6))
    whole = Supergraph((), (), edges, (), (), 0, (), ())
    counter = counters.TestCounter(
        0x1000, EVERY, frozenset({1, 4}), frozenset({0, 2, 3, 5}), frozenset(), ()
    )
    (one,) = counted_in([counter], whole, edges, range(7), [0] * 7)
    assert one.counted == {1, 4}
    assert one.reset == {2, 3}
    (first, second) = counted_in([counter], whole, edges, range(7), [0, 0, 0, 0, 1, 1, 1])
    assert [found.counted for found in (first, second)] == [{1}, {4}]
    assert not first.reset
    assert not second.reset
