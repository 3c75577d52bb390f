"""HiGHS without a process for each run: the same solutions, for thousands of runs in less time."""

from __future__ import annotations

from dataclasses import dataclass

from ilp.solvers.highs import Highs
from ilp.solvers.highs_library import ModelVectors, solved
from ilp.solvers.integer_program import IntegerProgram
from ilp.solvers.solver_result import SimplexBasis, SolverResult

__all__ = ["InProcess"]


@dataclass(frozen=True, slots=True)
class InProcess(Highs):
    """For many small models; ``tests/ilp/solvers/test_solve.py`` is about the process."""

    def solve(
        self,
        model: IntegerProgram,
        *,
        relaxed: bool,
        seconds: float | None,
        start: SimplexBasis | None = None,
    ) -> SolverResult:
        """See ``ilp.solvers.solver_result.Solver``."""
        return solved(ModelVectors.of(model, relaxed=relaxed, start=start), seconds)
