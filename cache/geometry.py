"""Sizes of caches: which line and set an address belongs to.

A line is numbered by ``address // line_bytes``; set ``s`` holds the lines equal to ``s`` modulo
the number of sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cache.initial import UNKNOWN_CONTENTS, InitialCache
from cache.locked import NOT_LOCKED, LockedLines
from cache.policy import ReplacementPolicy
from cache.reference import HitClass
from quoll.arm.branch_prediction import BranchPrediction
from quoll.image.memory_map import MemoryMap

__all__ = ["CacheGeometry", "CacheHierarchy"]


@dataclass(frozen=True, slots=True)
class CacheGeometry:
    """A set-associative cache. ``size`` and ``line_bytes`` in bytes, powers of two.

    The index may have bits above the page offset, of a virtual or a physical address. If the
    platform does not say of which, only lines of different page offsets are surely in different
    sets: ``index_sets`` is then less than ``sets``. Lines of equal offset may share a set, so
    conclusions for the larger sets hold for the real ones. Misses never fill the ``locked_ways`` of
    a set, which are fewer than ``ways``.
    """

    size: int
    ways: int
    line_bytes: int
    locked_ways: int = 0
    write_allocate: bool = False  # data caches: a store that misses fills its line
    write_through: bool = False  # every store writes to memory, and no line is dirty
    index_bytes: int | None = None  # an address modulo this gives its set; None: the whole address

    @property
    def free_ways(self) -> int:
        """Ways of a set that misses may fill."""
        return self.ways - self.locked_ways

    @property
    def sets(self) -> int:
        """Sets of the cache; the one-way model has as many, with one way each."""
        return self.size // (self.ways * self.line_bytes)

    @property
    def index_sets(self) -> int:
        """Sets that the known bits of the index distinguish."""
        known = self.sets if self.index_bytes is None else self.index_bytes // self.line_bytes
        return min(self.sets, known)

    def line(self, addr: int) -> int:
        """Number of the line that holds ``addr``."""
        return addr // self.line_bytes

    def set_of(self, line: int) -> int:
        """The set that ``line`` competes in."""
        return line % self.sets

    def index_set_of(self, line: int) -> int:
        """The set that ``line`` competes in, as far as the index is known."""
        return line % self.index_sets

    def lines(self, addr: int, size: int) -> range:
        """Lines that hold the ``size`` bytes at ``addr``."""
        return range(addr // self.line_bytes, (addr + size - 1) // self.line_bytes + 1)


@dataclass(frozen=True, slots=True)
class CacheHierarchy:
    """Caches between core and memory, and the memory map."""

    l1i: CacheGeometry
    l1d: CacheGeometry
    l2: CacheGeometry | None  # None: absent or off
    memory: MemoryMap
    fetch_ahead: int  # bytes that may be fetched past a transfer of control (rule 8)
    aligned: bool  # assumption: every data access is aligned to its size
    policy: ReplacementPolicy = ReplacementPolicy.ONE_WAY  # of both L1 caches
    locked: LockedLines = NOT_LOCKED  # in L2
    locked_i: LockedLines = NOT_LOCKED  # in the locked ways of L1
    locked_d: LockedLines = NOT_LOCKED
    initial_i: InitialCache = UNKNOWN_CONTENTS  # of L1, where the entry is reached
    initial_d: InitialCache = UNKNOWN_CONTENTS
    prediction: BranchPrediction = BranchPrediction.OFF  # of the branches that fetch meets

    @property
    def from_anywhere(self) -> CacheHierarchy:
        """The same hierarchy with unknown contents at the start."""
        return replace(self, initial_i=UNKNOWN_CONTENTS, initial_d=UNKNOWN_CONTENTS)

    def beyond_l1(self, low: int | None, high: int | None) -> HitClass | None:
        """The class in L2 of an access to bytes from ``low`` to ``high``; None: unknown.

        None if there is no L2. Only locked lines ever surely hit.
        """
        if self.l2 is None:
            return None
        if low is None or high is None:
            return HitClass.NC
        return HitClass.AH if self.locked.holds(low, high) else HitClass.NC
