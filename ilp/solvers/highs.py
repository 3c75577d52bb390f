"""HiGHS, a solver for linear and integer programs.

It runs in a process of its own, which is killed at its time limit or when this one exits; a crash
raises SolverError. Its library is loaded with the first query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ilp.solvers import highs_library
from ilp.solvers.integer_program import IntegerProgram
from ilp.solvers.solver_result import GRACE, SimplexBasis, SolverResult, SolverStatus
from quoll.errors import SolverError
from quoll.processes.children import Died, TimedOut, apart

__all__ = ["Highs"]


@dataclass(frozen=True, slots=True)
class Highs:
    """The solver of the ``highspy`` wheel; ``preferred`` as in ``Solver``."""

    preferred: bool = True

    @property
    def name(self) -> str:
        """Name and version."""
        return f"HiGHS {highs_library.version()}"

    def solve(
        self,
        model: IntegerProgram,
        *,
        relaxed: bool,
        seconds: float | None,
        start: SimplexBasis | None = None,
    ) -> SolverResult:
        """See ``ilp.solvers.solver_result.Solver``."""
        highs_library.loaded()  # loaded here, and not in each process
        given = highs_library.ModelVectors.of(model, relaxed=relaxed, start=start)
        work = partial(highs_library.solved, given, seconds)
        limit = None if seconds is None else seconds + GRACE
        try:
            return apart(work, limit)
        except TimedOut:
            return SolverResult(SolverStatus.STOPPED, None, None, None)
        except Died as death:
            raise SolverError(
                f"HiGHS failed: {death}",
                hint="if memory ran out, analyse fewer entries at a time, or use --solver cbc",
            ) from death
