"""HiGHS, a solver for linear and integer programs.

It runs in a process of its own, which is ended when it does not keep its limit, or with this one;
if it crashes, that is an error as any other. Its library is loaded with the first question.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ilp.solvers import highs_library
from ilp.solvers.answer import GRACE, Answer, Basis, Status
from ilp.solvers.model import Model
from quoll.errors import SolverError
from quoll.processes.children import Died, TimedOut, apart

__all__ = ["Highs"]


@dataclass(frozen=True, slots=True)
class Highs:
    """The solver of the ``highspy`` wheel; ``asked_first`` as in ``ilp.solvers.answer.Solver``."""

    asked_first: bool = True

    @property
    def name(self) -> str:
        """Name and version."""
        return f"HiGHS {highs_library.version()}"

    def solve(
        self, model: Model, *, relaxed: bool, seconds: float | None, start: Basis | None = None
    ) -> Answer:
        """See ``ilp.solvers.answer.Solver``."""
        highs_library.loaded()  # loaded here, and not in each process
        given = highs_library.ModelVectors.of(model, relaxed=relaxed, start=start)
        work = partial(highs_library.solved, given, seconds)
        limit = None if seconds is None else seconds + GRACE
        try:
            return apart(work, limit)
        except TimedOut:
            return Answer(Status.STOPPED, None, None, None)
        except Died as death:
            raise SolverError(
                f"HiGHS failed: {death}",
                hint="if memory ran out, analyse fewer entries at a time, or use --solver cbc",
            ) from death
