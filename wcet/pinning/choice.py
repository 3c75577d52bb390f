"""The choice of pinned lines: solving and choosing take turns.

Each round reads the worst paths under the lines chosen so far, proposes the lines that cost most
there, and solves with them. Where a proposal does not lower the sum of the bounds, the next one has
half as many lines; after a success, twice as many. A single line that does not lower it is not
proposed again until another proposal succeeds. The choice ends when no exchange of one line that
the worst paths suggest lowers the sum, or when the time or the number of attempts is over.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wcet.pinning.bounds import EntryWithPins, PinnedBounds
from wcet.pinning.pins import NO_PINS, PinnedLine, Pins, set_of

__all__ = ["Choice", "choose"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Pinned lines and the entries with them; ``complete``: no limit has ended the choice."""

    pins: Pins
    entries: tuple[EntryWithPins, ...]
    complete: bool

    @property
    def cycles(self) -> int:
        """The sum of the bounds."""
        return total(self.entries)


@dataclass(frozen=True, slots=True, order=True)
class Exchange:
    """A line to pin instead of another one, or in a free way; ``gain``: estimated cycles."""

    gain: int
    line: PinnedLine
    instead: PinnedLine | None = field(compare=False)

    def applied(self, pins: Pins) -> Pins:
        """``pins`` after it."""
        return frozenset(one for one in pins if one != self.instead) | {self.line}


def choose(
    bounds: PinnedBounds,
    seconds: float,
    report: Callable[[int, int], None],
    unpinned: Sequence[EntryWithPins] = (),
    start: Pins = NO_PINS,
    attempts: int | None = None,
) -> Choice:
    """The best lines that are found within ``seconds`` and ``attempts``, from ``start`` on.

    An attempt solves once; their number, unlike the time, makes the choice the same each time.
    ``report`` gets the number of pinned lines and the sum of the bounds after each success.
    ``unpinned``: the bounds without pins, if they are known. Raises UnboundedLoop.
    """
    end = time.monotonic() + seconds
    pins, entries = start, bounds.solved(start, NO_PINS, unpinned)
    saved: Counter[PinnedLine] = Counter()
    failed: set[tuple[PinnedLine, PinnedLine | None]] = set()
    most, tried = len(bounds.accessed), 0
    while True:
        proposed = [
            one
            for one in _exchanges(bounds, pins, entries, saved)
            if (one.line, one.instead) not in failed
        ][:most]
        if not proposed or tried == attempts or time.monotonic() > end:
            return Choice(pins, entries, complete=not proposed)
        tried += 1
        changed = pins
        for one in proposed:
            changed = one.applied(changed)
        found = bounds.solved(changed, pins, entries)
        if total(found) < total(entries):
            saved.update({one.line: one.gain for one in proposed})
            pins, entries = changed, found
            failed.clear()
            most *= 2
            report(len(pins), total(found))
        elif len(proposed) == 1:
            failed.add((proposed[0].line, proposed[0].instead))
        else:
            most = len(proposed) // 2


def total(entries: Sequence[EntryWithPins]) -> int:
    """The sum of the bounds in cycles."""
    return sum(entry.result.cycles for entry in entries)


def _exchanges(
    bounds: PinnedBounds,
    pins: Pins,
    entries: Sequence[EntryWithPins],
    saved: Mapping[PinnedLine, int],
) -> list[Exchange]:
    """For each set its best exchange, the largest gain first."""
    misses: Counter[PinnedLine] = Counter()
    for entry in entries:
        misses.update(entry.misses)
    hierarchy = bounds.run.platform.hierarchy
    pinned: dict[tuple[str, int], list[PinnedLine]] = {}
    for line in pins:
        pinned.setdefault(set_of(hierarchy, line), []).append(line)
    best: dict[tuple[str, int], Exchange] = {}
    for line, cycles in misses.items():
        own = set_of(hierarchy, line)
        for one in _in_set(line, cycles, pinned.get(own, []), saved, bounds.ways):
            best[own] = max(one, best.get(own, one))
    return sorted(best.values(), reverse=True)


def _in_set(
    line: PinnedLine,
    cycles: int,
    pinned: Sequence[PinnedLine],
    saved: Mapping[PinnedLine, int],
    ways: int,
) -> Iterator[Exchange]:
    """The exchange of ``line`` for the pinned line of its set that saved least."""
    if line in pinned:
        return
    if len(pinned) < ways:
        yield Exchange(cycles, line, None)
        return
    least = min(pinned, key=lambda one: (saved.get(one, 0), one))
    if cycles > saved.get(least, 0):
        yield Exchange(cycles - saved.get(least, 0), line, least)
