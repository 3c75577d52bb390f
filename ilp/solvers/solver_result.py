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

Figure = float | Fraction  # of a solver; fractions from exact arithmetic

DIRECT = ("cbc", "highs")  # solvers called without PuLP

GRACE = 10.0  # seconds beyond a solver's limit, for reading and cleaning up


class SolverStatus(Enum):
    """The outcome of a solver's run."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"  # time limit


@dataclass(frozen=True, slots=True)
class SimplexBasis:
    """A start of the simplex method: rows that hold with equality, and as many basic variables.

    The rows determine these variables; every other variable is at 0 or at its upper limit. It is a
    hint only: any other start leads to the same maximum, more slowly.
    """

    variables: frozenset[int]
    rows: frozenset[int]


@dataclass(frozen=True, slots=True)
class SolverResult:
    """The result of a solver, without the model's constant."""

    status: SolverStatus
    values: tuple[Figure, ...] | None  # per variable; None: no solution found
    bound: float | None  # the dual bound, which no solution exceeds; None: none proved
    duals: tuple[Figure, ...] | None  # per row, >= 0 on <= rows; of the relaxation only
    basis: SimplexBasis | None = None  # of the relaxation, if the solver gives one


@dataclass(frozen=True, slots=True)
class Proposal:
    """Counts per variable, and dual values of the first rows; the other dual values are 0.

    All of them are checked before use.
    """

    values: tuple[int, ...]
    duals: tuple[int, ...]
    name: str  # of the method that proposes it
    basis: SimplexBasis | None = None


class Solver(Protocol):
    """A program that maximises a model."""

    @property
    def preferred(self) -> bool:
        """Whether the solver runs even where a proposal would decide."""

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
        """The result of maximising ``model``, over real variables if ``relaxed``; gaps are 0.

        ``seconds`` limits the wall time; None: no limit. A relaxation may begin at ``start``.
        Raises SolverError if the solver is missing, was killed, or ended with no ``SolverStatus``.
        """
