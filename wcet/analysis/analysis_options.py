"""The options of an analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from loopbounds.proof.options import BoundOptions
from quoll.inlining.sharing import NEVER, SummarySettings
from quoll.inlining.vivu import FULL, VivuSettings
from quoll.results.results_store import NOWHERE, ResultsStore
from wcet.analysis.raw_memory import NOTHING, LoadedMemory

__all__ = ["AnalysisOptions"]


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """The options of an analysis; see ``wcet analyse --help``."""

    entries: tuple[str, ...]
    platform: str | None = None
    l2: bool | None = None
    facts: tuple[Path, ...] = ()
    neighbouring_facts: bool = True
    exits: tuple[str, ...] = ()
    solver: str = ""
    time_limit: float = 60.0  # seconds
    bounds: BoundOptions = field(default_factory=BoundOptions)
    parameters: Mapping[str, int] = field(default_factory=dict)  # values of loop parameters
    store: ResultsStore = NOWHERE  # results of earlier runs
    tlb: str | None = None  # the charge for translations, if not the platform's
    data_index: str | None = None  # "virtual", if not the platform's
    vivu: VivuSettings = FULL
    loaded_memory: LoadedMemory = NOTHING  # memory loaded beside the ELF
    summary_settings: SummarySettings = field(default_factory=SummarySettings)
    interrupts: int = 1  # number that may be pending at once, for the latency
    force_core: bool = False  # accept a binary built for another processor
    programs: bool = False  # write the integer programs, which solves each one
    sources: Path = Path()  # the compiler's folder: comments in the sources may be facts

    @property
    def showing_tests(self) -> AnalysisOptions:
        """The same without summaries of functions that test for interrupts."""
        settings = replace(self.summary_settings, preemptible=NEVER.contexts)
        return replace(self, summary_settings=settings)
