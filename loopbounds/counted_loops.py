"""Bounds of loops in which a kernel tests for interrupts every N-th time (rule 54)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loopbounds.proof.bound import CountedTests, LoopBound
from quoll.image.image import Image
from quoll.preemption.counters import TestCounter, iterations_of
from quoll.preemption.segments import PendingSegment

__all__ = ["CounterLimit", "by_counters", "counter_limits"]

CounterLimit = tuple[int, TestCounter]  # most executions of a header per entry, and the word


def counter_limits(segments: Sequence[PendingSegment]) -> dict[int, tuple[CounterLimit, ...]]:
    """By loop of the whole graph, the limit that counters give in each segment with this loop.

    Without the loops that no counter limits in one of them.
    """
    limits: dict[int, list[CounterLimit]] = {}
    without = set[int]()
    for segment in segments if any(segment.counters for segment in segments) else ():
        by_word = {one.address: one for one in segment.counters}
        for number, old in enumerate(segment.loops):
            found = iterations_of(segment.graph, segment.graph.loops[number])
            if found is None:
                without.add(old)
            else:
                limits.setdefault(old, []).append((found[0], by_word[found[1].counter]))
    return {loop: tuple(found) for loop, found in limits.items() if loop not in without}


def by_counters(
    image: Image, bound: LoopBound, limits: Mapping[int, Sequence[CounterLimit]]
) -> LoopBound:
    """``bound``, or the smaller one of ``counter_limits``."""
    if bound.loop not in limits:
        return bound
    most, counter = max(limits[bound.loop], key=lambda limit: limit[0])
    if bound.bound is not None and bound.bound <= most:
        return bound
    assumed = {a: None for _, one in limits[bound.loop] for a in one.assumed}
    return replace(
        bound,
        bound=most,
        exact=None,
        method="pending",
        evidence=CountedTests(image.place(counter.address), counter.most),
        reason=None,
        total=None,
        around=None,
        assumes=None,
        assumed=tuple(assumed),
        unanswered="",
    )
