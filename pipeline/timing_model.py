"""Timing parameters of a board: memory, branches, entry and exit.

All figures are cycles of the core, from a platform file that states the source of each. Only a core
without replays may omit the replay figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cache.reference import HitClass
from pipeline.tlb_model import TlbModel
from quoll.arm.branch_prediction import BranchPrediction

__all__ = ["BranchModel", "CoreProfile", "EntryState", "MemoryLatencies", "TimingModel"]


class CoreProfile(Enum):
    """The column of a core description in use (rule 17)."""

    WCET = "wcet"
    NOMINAL = "nominal"


@dataclass(frozen=True, slots=True)
class MemoryLatencies:
    """Cycles that an access adds to a hit, computed from its components (rule 9)."""

    access: int  # one external memory access, with the L2 on or off as configured
    l2_hit: int | None  # None: no L2, or off
    line_rest: int  # from the first word of a line fill to the last
    dirty_l1_victims: bool  # a data fill may first write a dirty line back
    dirty_l2_victims: bool  # an L2 fill may write a dirty L2 line back
    replay: int = 0  # cycles that a full store buffer costs beyond the wait; least load stall
    fetch_restart: int = 0  # cycles from the arrival of missing instructions to their issue
    line_words: int = 8  # words of an L1 data line, the size of one write-back
    write_allocate: bool = False  # L1 data: a store that misses fills its line
    write_through: bool = False  # every store bypasses L1 data, and no line of it is ever dirty
    stores_pay: bool = False  # no line is dirty at the start: stores pay for the write-backs

    def _beyond_l1(self, l2: HitClass | None) -> int:
        if self.l2_hit is not None and l2 is HitClass.AH:
            return self.l2_hit
        victim = self.access if self.l2_hit is not None and self.dirty_l2_victims else 0
        return self.access + victim

    def fetch_miss(self, l2: HitClass | None) -> int:
        """Cycles to fill a line of instructions."""
        return self._beyond_l1(l2) + self.line_rest + self.fetch_restart

    def load_miss(self, l2: HitClass | None) -> int:
        """Cycles to fill a data line and write the replaced line back, which may miss in L2."""
        return max(self.replay, self._beyond_l1(l2) + self.line_rest + self.vacated)

    def store(self, words: int, l2: HitClass | None) -> int:
        """Cycles of storing ``words`` of one line that are not known to hit.

        With ``stores_pay`` they include the write-back of the line made dirty: by a hit, or by a
        store that fills its line.
        """
        past = words * self.store_word(l2)
        if self.write_allocate:
            return self.load_miss(l2) + (past if self.write_through else self.made_dirty)
        return max(past, self.made_dirty)

    @property
    def vacated(self) -> int:
        """The charge of an access for the line that leaves L1 before it, which may be dirty."""
        return self.write_back if self.dirty_l1_victims and not self.stores_pay else 0

    @property
    def made_dirty(self) -> int:
        """The charge of a store for the line that it makes dirty."""
        return self.write_back if self.stores_pay and self.dirty_l1_victims else 0

    def store_word(self, l2: HitClass | None) -> int:
        """Cycles of a word written past L1 (rule 14a)."""
        return self._beyond_l1(l2) + self.replay

    @property
    def uncached_word(self) -> int:
        """Cycles of a word read from or written to uncached memory or a device."""
        return self.access + self.replay

    @property
    def write_back(self) -> int:
        """Cycles to write a dirty L1 line out, missing in L2."""
        return self._beyond_l1(HitClass.NC)


@dataclass(frozen=True, slots=True)
class BranchModel:
    """The time of branches. ``constant``: cycles of every branch, taken or not; none is predicted.

    The state of a predictor is unknown, so each prediction may be wrong.
    """

    constant: int | None  # None: from the core's rows and the distance to the flag setter
    prediction: BranchPrediction = BranchPrediction.OFF


@dataclass(frozen=True, slots=True)
class EntryState:
    """Accesses outstanding when an exception is taken (rule 15)."""

    load_misses: int
    store_words: int
    fetch_misses: int


@dataclass(frozen=True, slots=True)
class TimingModel:
    """The inputs of the pipeline stage besides the core description."""

    core: str  # name of a file in pipeline/cores, or of the user's own description
    profile: CoreProfile
    memory: MemoryLatencies
    branches: BranchModel
    entry: EntryState
    tlb: TlbModel | None = None  # None: translations are assumed to be there
    own_rows: str | None = None  # text of the user's own description, in the same format
