"""The options of an analysis, and the configuration of a result that follows from them."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from loopbounds.proof.options import BoundOptions
from quoll.inlining.sharing import NEVER, SummarySettings
from quoll.inlining.vivu import FULL, VivuSettings
from quoll.results.results_store import NOWHERE, ResultsStore
from wcet.analysis.raw_memory import NOTHING, LoadedMemory
from wcet.platforms.platform_model import Platform

__all__ = ["AnalysisOptions", "configuration"]

DIGITS = 16  # of the hash of a platform


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


def configuration(options: AnalysisOptions, platform: Platform) -> Mapping[str, str]:
    """The settings of a result besides its kernel and facts, by name.

    For the platform they are the content of its file and its own core. Two results are comparable
    only if their configurations are equal (rule 52). Options for effort, and the folder of results,
    are left out.
    """
    return {
        "platform file": _said(platform),
        "--l2": str(options.l2),
        "--tlb": str(options.tlb),
        "--data-index": str(options.data_index),
        "--set": ", ".join(f"{name}={n}" for name, n in sorted(options.parameters.items())),
        "--unroll": str(options.vivu.unroll),
        "--share": str(options.summary_settings),
        "--from-reset": str(options.loaded_memory.from_reset),
        "--interrupts": str(options.interrupts),
        "--prove-stated": str(options.bounds.prove_stated),
        "S1": str(options.bounds.s1),
    }


def _said(platform: Platform) -> str:
    """A hash of the platform file, which has been read and checked before."""
    file = tomllib.loads(platform.path.read_text("utf-8"))
    said = json.dumps([file, platform.timing.own_rows], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:DIGITS]
