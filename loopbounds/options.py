"""How hard to try to bound a loop, and where what is found is kept."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from loopbounds.nusmv import Limits

__all__ = ["BoundOptions", "Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What one loop may use: seconds of processor time for each of its models, and per query.

    Not by the clock: what else the machine does must not change a bound.
    """

    seconds: int = 40
    query: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class BoundOptions:
    """How hard to try, and where results are kept."""

    budget: Budget = field(default_factory=Budget)
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    cache: Path | None = None  # folder of proofs
    models: Path | None = None  # folder to write the SMV models to
    s1: bool = True  # rule 1: stores of unknown address spare live stack frames
