"""Options of loop bounding: budget, workers, checker, results store."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from loopbounds.budgets.budget import Budget
from loopbounds.proof.bound import EITHER
from quoll.results.results_store import NOWHERE, ResultsStore

__all__ = ["BoundOptions"]


@dataclass(frozen=True, slots=True)
class BoundOptions:
    """Options of loop bounding."""

    budget: Budget = field(default_factory=Budget)
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)  # 0: in this process
    store: ResultsStore = NOWHERE  # of proofs and bounds of graphs
    models: Path | None = None  # folder to write the SMV models to
    checker: str = EITHER  # one of ``CHECKERS``, or ``EITHER``
    prove_stated: bool = False  # also try to prove the loops that facts count
    s1: bool = True  # rule 1: stores of unknown address spare live stack frames
