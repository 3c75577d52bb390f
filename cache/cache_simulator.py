"""Concrete caches, access by access: the twin of ``cache.must``.

``SimulatedCache`` is one L1 cache: a miss fills an invalid way first, else the policy chooses a
victim. Reads allocate; writes allocate if the geometry says so, and make lines dirty unless the
cache is written through. Round-robin uses one counter for all sets (ARM1136JF-S TRM, DDI 0211,
chapter 7); LRU and FIFO keep an order per set. Locked lines stand in ways of their own: nothing
evicts them, but an invalidation drops them for good. With one way, all policies behave as the
direct-mapped cache of the "one-way" model.

``FetchUnit`` runs ahead of execution by a number of bytes that its caller chooses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy

__all__ = ["CacheOutcome", "FetchUnit", "SimulatedCache"]


@dataclass(frozen=True, slots=True)
class CacheOutcome:
    """The outcome of a load or fetch: whether it hit, and the dirty line written back, or None."""

    hit: bool
    victim: int | None = None


@dataclass(slots=True)
class _Way:
    line: int | None = None
    dirty: bool = False
    used: int = 0  # when, by LRU's and FIFO's clock


class SimulatedCache:
    """One cache. Lines are numbered as ``CacheGeometry.line`` does."""

    def __init__(
        self,
        geometry: CacheGeometry,
        policy: ReplacementPolicy,
        random: Random,
        locked: Iterable[int] = (),
    ) -> None:
        self.geometry = geometry
        self._policy = policy
        self._random = random
        self._counter = random.randrange(geometry.free_ways)
        self._clock = 0
        self._sets = [[_Way() for _ in range(geometry.free_ways)] for _ in range(geometry.sets)]
        self._locked = {line: _Way(line) for line in locked}

    def pollute(self, lines: list[int], fraction: float = 0.9, *, dirty: bool = True) -> None:
        """Fill ways at random with lines drawn from ``lines``: most of them dirty, or none."""
        of_set: dict[int, list[int]] = {}
        for line in lines:
            of_set.setdefault(self.geometry.set_of(line), []).append(line)
        for at, ways in enumerate(self._sets):
            choice = [n for n in dict.fromkeys(of_set.get(at, [])) if n not in self._locked]
            self._random.shuffle(choice)
            for way, line in zip(ways, choice, strict=False):
                if self._random.random() < fraction:
                    way.line, way.dirty = line, dirty and self._random.random() < 0.7
                    way.used = self._tick()

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    @property
    def policy(self) -> ReplacementPolicy:
        """The policy that chooses victims."""
        return self._policy

    @property
    def counter(self) -> int:
        """The way replaced last in round-robin."""
        return self._counter

    @property
    def always_hits(self) -> bool:
        """Whether every access hits; False for a real cache."""
        return False

    def reseed(self, random: Random) -> None:
        """Draw from ``random`` from now on."""
        self._random = random

    def contents(self) -> tuple[list[int], list[int]]:
        """Line in each way, -1 if invalid, and whether it is dirty; by set, then by way."""
        ways = [way for ways in self._sets for way in ways]
        lines = [-1 if way.line is None else way.line for way in ways]
        return lines, [int(way.dirty) for way in ways]

    def uses(self) -> tuple[list[int], int]:
        """When each way was used, by set, then by way, and the clock, of LRU and FIFO."""
        return [way.used for ways in self._sets for way in ways], self._clock

    def _find(self, line: int) -> _Way | None:
        if line in self._locked:
            return self._locked[line]
        for way in self._sets[self.geometry.set_of(line)]:
            if way.line == line:
                return way
        return None

    def resident(self, line: int) -> bool:
        """Whether a load of ``line`` would hit."""
        return self._find(line) is not None

    def load(self, line: int) -> CacheOutcome:
        """A read or fetch; allocates."""
        if self._use(line) is not None:
            return CacheOutcome(hit=True)
        way = self._victim(self._sets[self.geometry.set_of(line)])
        written = way.line if way.dirty else None
        way.line, way.dirty, way.used = line, False, self._tick()
        return CacheOutcome(hit=False, victim=written)

    def _use(self, line: int) -> _Way | None:
        """The way that holds ``line``, or None; LRU records the use."""
        way = self._find(line)
        if way is not None and self._policy is ReplacementPolicy.LRU:
            way.used = self._tick()
        return way

    def _victim(self, ways: list[_Way]) -> _Way:
        for way in ways:
            if way.line is None:
                return way
        if self._policy is ReplacementPolicy.RANDOM:
            return self._random.choice(ways)
        if self._policy in (ReplacementPolicy.LRU, ReplacementPolicy.FIFO):
            return min(ways, key=lambda way: way.used)
        self._counter = (self._counter + 1) % len(ways)
        return ways[self._counter]

    def store(self, line: int) -> CacheOutcome:
        """A write."""
        way = self._use(line)
        outcome = CacheOutcome(hit=way is not None)
        if way is None and self.geometry.write_allocate:
            outcome, way = self.load(line), self._find(line)
        if way is not None:
            way.dirty = not self.geometry.write_through
        return outcome

    def clean(self, line: int) -> bool:
        """Write ``line`` back if it is dirty, and keep it; returns whether it was dirty."""
        way = self._find(line)
        if way is None or not way.dirty:
            return False
        way.dirty = False
        return True

    def clean_any(self) -> bool:
        """Write a dirty line back, drawn among all, or none; returns whether one was written."""
        dirty = [way for ways in self._sets for way in ways if way.dirty]
        if not dirty or not self._random.randrange(2):
            return False
        self._random.choice(dirty).dirty = False
        return True

    def clean_all(self) -> int:
        """Write every dirty line back; returns their number."""
        ways = [way for ways in (*self._sets, self._locked.values()) for way in ways]
        return sum(way.line is not None and self.clean(way.line) for way in ways)

    def invalidate(self, line: int) -> None:
        """Drop ``line``."""
        way = self._find(line)
        self._locked.pop(line, None)
        if way is not None:
            way.line, way.dirty = None, False

    def invalidate_all(self) -> None:
        """Drop everything, locked lines included."""
        self._locked.clear()
        for ways in self._sets:
            for way in ways:
                way.line, way.dirty = None, False


@dataclass(slots=True)
class FetchUnit:
    """Sequential fetch from the target of the last transfer, line by line.

    ``log`` holds, for the current run, the lines fetched and whether each hit.
    """

    cache: SimulatedCache
    until: int = 0  # address up to which the run has been fetched
    log: dict[int, bool] = field(default_factory=dict)
    misses: int = 0

    def redirect(self, addr: int) -> None:
        """A transfer of control to ``addr``, which discards prefetched instructions."""
        self.until = addr
        self.log = {}

    def fetch_to(self, addr: int) -> None:
        """Have everything below ``addr`` fetched."""
        geometry = self.cache.geometry
        while self.until < addr:
            line = geometry.line(self.until)
            if line not in self.log:
                hit = self.cache.load(line).hit
                self.log[line] = hit
                self.misses += not hit
            self.until = min(addr, (line + 1) * geometry.line_bytes)
