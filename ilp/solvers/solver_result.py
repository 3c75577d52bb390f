"""The interface of a solver, and its result before certification."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Protocol

from ilp.solvers.integer_program import IntegerProgram

__all__ = [
    "DIRECT",
    "GRACE",
    "Figure",
    "Proposal",
    "SimplexBasis",
    "Solver",
    "SolverResult",
    "SolverStatus",
]

Figure = float | Fraction  # a solver's; fractions where it computes exactly

DIRECT = ("cbc", "highs")  # the solvers that are called without PuLP

GRACE = 10.0  # seconds that a solver may take beyond its limit, for reading and cleaning up


class SolverStatus(Enum):
    """How a solver ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"  # time limit


@dataclass(frozen=True, slots=True)
class SimplexBasis:
    """Where the simplex method may begin: rows that hold with equality, and as many variables.

    Those rows decide these variables; every other one is 0, or the most that it may be. Nothing of
    it is believed: from elsewhere the same maximum is found, only later.
    """

    variables: frozenset[int]
    rows: frozenset[int]


@dataclass(frozen=True, slots=True)
class SolverResult:
    """The result of a solver, without the model's constant."""

    status: SolverStatus
    values: tuple[Figure, ...] | None  # per variable; None: no solution found
    bound: float | None  # no solution exceeds it: the dual bound; None: nothing proved
    duals: tuple[Figure, ...] | None  # per row, >= 0 on <= rows; of the relaxation only
    basis: SimplexBasis | None = None  # of the relaxation, if the solver tells


@dataclass(frozen=True, slots=True)
class Proposal:
    """Counts per variable, and dual values of the first rows; the other dual values are 0.
    Everything is checked.
    """

    values: tuple[int, ...]
    duals: tuple[int, ...]
    name: str  # of what proposes it
    basis: SimplexBasis | None = None


class Solver(Protocol):
    """A program that maximises a model."""

    @property
    def preferred(self) -> bool:
        """Whether it runs even where a proposal would decide."""

    @property
    def name(self) -> str:
        """Name and version."""

    def solve(
        self,
        model: IntegerProgram,
        *,
        relaxed: bool,
        seconds: float | None,
        start: SimplexBasis | None = None,
    ) -> SolverResult:
        """Maximise, variables being real numbers if ``relaxed``; gaps are 0.

        ``seconds`` limits the wall time; None: no limit. A relaxation may begin at ``start``.
        Raises SolverError if the solver is missing, was killed, or answers something that is none
        of ``SolverStatus``.
        """
