"""How hard to try to bound a loop, and where what is found is kept."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from loopbounds.proof.bound import EITHER
from loopbounds.transition.query import SolverLimits
from quoll.kept.store import NOWHERE, Store

__all__ = ["BoundOptions", "Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What one loop may use for each of its models: ``queries`` of the solvers, of these ``steps``.

    Seconds of processor time, for all of them and for each, are several times what proofs need:
    how fast the machine is, and what else it does, must not change a bound.
    """

    seconds: int = 60
    queries: int = 48
    steps: int = 120_000  # of the SMT solver in the search, in all
    limits: SolverLimits = field(default_factory=SolverLimits)  # of each query


@dataclass(frozen=True, slots=True)
class BoundOptions:
    """How hard to try, and where results are kept."""

    budget: Budget = field(default_factory=Budget)
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)  # 0: in this process
    store: Store = NOWHERE  # of proofs and answers
    models: Path | None = None  # folder to write the SMV models to
    checker: str = EITHER  # who proves: one of ``CHECKERS``, or that
    prove_stated: bool = False  # try a proof of loops, too, whose bounds facts state
    s1: bool = True  # rule 1: stores of unknown address spare live stack frames
