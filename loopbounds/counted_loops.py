"""Bounds of loops in which a kernel tests for interrupts every N-th time (rule 54)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopbounds.proof.bound import CountedTests, LoopBound
from quoll.image.image import Image
from quoll.preemption.counters import iterations_of
from quoll.preemption.segments import PendingSegment

__all__ = ["by_counters"]


def by_counters(image: Image, bound: LoopBound, segments: Sequence[PendingSegment]) -> LoopBound:
    """``bound``, or the smaller one that counters give in all segments with this loop."""
    limits = []
    for segment in segments:
        for number, old in enumerate(segment.loops):
            if old == bound.loop:
                found = iterations_of(segment.graph, segment.graph.loops[number])
                if found is None:
                    return bound
                by_word = {one.address: one for one in segment.counters}
                limits.append((found[0], by_word[found[1].counter]))
    if not limits:
        return bound
    most, counter = max(limits, key=lambda limit: limit[0])
    if bound.bound is not None and bound.bound <= most:
        return bound
    assumed = {a: None for _, one in limits for a in one.assumed}
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
