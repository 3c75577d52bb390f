"""Timing parameters of a board: memory, branches, entry and exit.

All figures are cycles of the core. They come from a platform file, each with its source. Only a
core without replays may omit their figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cache.reference import HitClass
from pipeline.tlb_model import TlbModel

__all__ = ["BranchModel", "CoreProfile", "EntryState", "MemoryLatencies", "TimingModel"]


class CoreProfile(Enum):
    """Which column of a core description is used (rule 17)."""

    WCET = "wcet"
    NOMINAL = "nominal"


@dataclass(frozen=True, slots=True)
class MemoryLatencies:
    """Cycles that an access adds to a hit, computed from its parts (rule 9)."""

    access: int  # one external memory access, with the L2 as it is (off or on)
    l2_hit: int | None  # None: no L2, or off
    line_rest: int  # from the first word of a line fill to the last
    dirty_l1_victims: bool  # a data fill may first write a dirty line back
    dirty_l2_victims: bool  # filling the L2 may write a dirty line of it back
    replay: int = 0  # cycles that a full store buffer costs beyond the wait; least load stall
    fetch_restart: int = 0  # cycles from the arrival of missing instructions to their issue
    line_words: int = 8  # of L1 data: what one write-back takes
    write_allocate: bool = False  # of L1 data: a store that misses fills its line
    write_through: bool = False  # every store goes past L1; no line of it is ever dirty
    stores_pay: bool = False  # no line is dirty at the start: stores pay for the write-backs

    def _beyond_l1(self, l2: HitClass | None) -> int:
        if self.l2_hit is not None and l2 is HitClass.AH:
            return self.l2_hit
        victim = self.access if self.l2_hit is not None and self.dirty_l2_victims else 0
        return self.access + victim

    def fetch_miss(self, l2: HitClass | None) -> int:
        """A line of instructions."""
        return self._beyond_l1(l2) + self.line_rest + self.fetch_restart

    def load_miss(self, l2: HitClass | None) -> int:
        """A line of data, and the write-back of the line it replaces, which may miss in L2."""
        charged_here = self.dirty_l1_victims and not self.stores_pay
        victim = self._beyond_l1(HitClass.NC) if charged_here else 0
        return max(self.replay, self._beyond_l1(l2) + self.line_rest + victim)

    def store(self, words: int, l2: HitClass | None) -> int:
        """``words`` of one line that are not known to hit. With ``stores_pay`` the write-back too,
        unless the store does not hit: then nothing gets dirty, but for a line that is filled to be
        written to.
        """
        past = words * self.store_word(l2)
        if self.write_allocate:
            return self.load_miss(l2) + (past if self.write_through else self.made_dirty)
        return max(past, self.made_dirty)

    @property
    def made_dirty(self) -> int:
        """The charge of a store for the line that it makes dirty."""
        return self.write_back if self.stores_pay and self.dirty_l1_victims else 0

    def store_word(self, l2: HitClass | None) -> int:
        """A word written past L1 (rule 14a)."""
        return self._beyond_l1(l2) + self.replay

    @property
    def uncached_word(self) -> int:
        """A word read from or written to uncached memory or a device."""
        return self.access + self.replay

    @property
    def write_back(self) -> int:
        """A dirty L1 line written out, missing in L2."""
        return self._beyond_l1(HitClass.NC)


@dataclass(frozen=True, slots=True)
class BranchModel:
    """Predictor off. ``constant``: every branch, taken or not, costs just this."""

    constant: int | None  # None: by the core's rows and the distance from the flag setter


@dataclass(frozen=True, slots=True)
class EntryState:
    """Accesses outstanding when an exception is taken (rule 15)."""

    load_misses: int
    store_words: int
    fetch_misses: int


@dataclass(frozen=True, slots=True)
class TimingModel:
    """The inputs of the pipeline stage beside the core description."""

    core: str  # name of a file in pipeline/cores, or of the user's own description
    profile: CoreProfile
    memory: MemoryLatencies
    branches: BranchModel
    entry: EntryState
    tlb: TlbModel | None = None  # None: translations are assumed to be there
    own_rows: str | None = None  # text of the user's own description, of the form of those files
