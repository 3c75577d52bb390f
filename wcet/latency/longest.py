"""The longest stretches, each of another operation: the next one is the longest without it.

The first stretch is the longest one of all entries and starts. Then the target of its decision is
excluded everywhere, and the longest remaining one is the second, and so on. A path that no branch
avoids is left out together with its start.
"""

from __future__ import annotations

from dataclasses import dataclass

from wcet.analysis.result import EntryResult
from wcet.latency.starts import PathStarts
from wcet.latency.stretch import Stretch, stretch_of

__all__ = ["RankedStretch", "longest_stretches"]


@dataclass(frozen=True, slots=True)
class RankedStretch:
    """A stretch, and the bound of the longest one without it and without the longer ones.

    ``excluded``: the address that then never executes; None if every path from its start is as
    long, and that start is left out. ``remaining``: None if no path remains.
    """

    stretch: Stretch
    excluded: int | None
    remaining: EntryResult | None


def longest_stretches(starts: PathStarts, most: int) -> tuple[RankedStretch, ...]:
    """At most ``most`` stretches of different operations, the longest first."""
    tests = starts.tests
    found: list[RankedStretch] = []
    longest = starts.longest()
    while longest is not None and len(found) < most:
        assert longest.worst is not None
        stretch = stretch_of(longest.worst, tests)
        place = None if stretch.place in starts.excluded else stretch.place
        starts = starts.without_start(longest) if place is None else starts.without(place)
        longest = starts.longest()
        remaining = None if longest is None else longest.worst
        found.append(RankedStretch(stretch, place, remaining))
    return tuple(found)
