"""Limits of one query and of one search.

Steps and queries limit first: their numbers are the same on any machine, so that no bound depends
on its speed. The limits on processor time and memory are several times the need of so many steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from loopbounds.budgets import table

__all__ = ["Budget", "ProcessLimits", "SolverLimits", "StepLimits"]


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one query to a solver that runs as a child process.

    The process is ended after these seconds, or after ``PATIENCE`` times as many by the clock, but
    not before ``LEAST``; sooner if it sleeps for so many seconds.
    """

    seconds: int = 20  # of processor time
    memory: int = 1 << 30  # bytes of address space


@dataclass(frozen=True, slots=True)
class StepLimits:
    """Limits of one query to the solver in this process.

    A step is one call of the solver's termination callback; a query takes equally many on any
    machine. The other limits are several times the need of so many steps.
    """

    steps: int = 60_000
    seconds: int = 60  # of processor time
    memory: int = 1 << 30  # bytes beyond the memory in use at the start


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """Limits of one query, by kind of back end."""

    process: ProcessLimits = field(default_factory=ProcessLimits)
    steps: StepLimits = field(default_factory=StepLimits)

    def within(self, seconds: int) -> SolverLimits:
        """The same limits, with at most ``seconds`` of processor time."""
        process = replace(self.process, seconds=min(self.process.seconds, seconds))
        return SolverLimits(process, replace(self.steps, seconds=min(self.steps.seconds, seconds)))


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one loop for each of its models: ``queries`` to the solvers, and ``steps``.

    The limits on processor time are several times the need of proofs, so that neither the speed nor
    the load of the machine changes a bound.
    """

    seconds: int = 60
    queries: int = 48
    steps: int = 120_000  # of the SMT solver in the search, in all
    limits: SolverLimits = field(default_factory=SolverLimits)  # of each query

    @property
    def to_lower(self) -> Budget:
        """The share that may go into lowering a known bound."""
        return replace(
            self,
            seconds=max(1, self.seconds // table.LOWERING_SECONDS_SHARE),
            queries=max(1, self.queries // table.LOWERING_SHARE),
            steps=max(1, self.steps // table.LOWERING_SHARE),
        )
