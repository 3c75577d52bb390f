"""What the user asks of an analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loopbounds.proof.options import BoundOptions
from quoll.inlining.sharing import Sharing
from quoll.inlining.vivu import FULL, Vivu
from quoll.kept.store import NOWHERE, Store
from wcet.analysis.raw_memory import NOTHING, Extra

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for; see ``wcet analyse --help``."""

    entries: tuple[str, ...]
    platform: str | None
    l2: bool | None
    facts: tuple[Path, ...]
    neighbouring_facts: bool
    ends: tuple[str, ...]
    solver: str
    time_limit: float
    bounds: BoundOptions
    parameters: Mapping[str, int] = field(default_factory=dict)  # values of loop parameters
    store: Store = NOWHERE  # of what earlier runs found out
    tlb: str | None = None  # how translations are charged, if not as the platform says
    data_index: str | None = None  # "virtual", if not as the platform says
    vivu: Vivu = FULL
    extra: Extra = NOTHING  # what is loaded beside the ELF
    sharing: Sharing = field(default_factory=Sharing)
    interrupts: int = 1  # how many may be pending at once, for the latency
    force_core: bool = False  # bound a binary that is built for another processor
    programs: bool = False  # the integer programs are written, and so each is solved
    sources: Path = Path()  # where the compiler ran: comments in the sources may be facts
