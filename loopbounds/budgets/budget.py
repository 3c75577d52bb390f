"""Limits of one query and of one search. How fast the machine is must change no bound.

So steps and queries, which are the same on any machine, come first; seconds of processor time and
bytes of memory are several times the need of so many.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

__all__ = ["Budget", "ProcessLimits", "SolverLimits", "StepLimits"]


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one query to a solver that runs as a child process.

    It is ended when it is idle for these seconds, and after several times as many by the clock.
    """

    seconds: int = 20  # of processor time
    memory: int = 1 << 30  # bytes of address space


@dataclass(frozen=True, slots=True)
class StepLimits:
    """Limits of one query to the solver in this process.

    Steps come first: the other limits are several times the need of so many steps. A step is one
    call of the termination callback, of which there are equally many on any machine.
    """

    steps: int = 60_000
    seconds: int = 60  # of processor time
    memory: int = 1 << 30  # bytes more than the process has


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """Limits of one query, by the kind of back end that answers it."""

    process: ProcessLimits = field(default_factory=ProcessLimits)
    steps: StepLimits = field(default_factory=StepLimits)

    def within(self, seconds: int) -> SolverLimits:
        """The same limits, with at most so many ``seconds`` of processor time."""
        process = replace(self.process, seconds=min(self.process.seconds, seconds))
        return SolverLimits(process, replace(self.steps, seconds=min(self.steps.seconds, seconds)))


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one loop for each of its models: ``queries`` to the solvers, and ``steps``.

    Seconds of processor time, for all of them and for each, are several times what proofs need:
    how fast the machine is, and what else it does, must not change a bound.
    """

    seconds: int = 60
    queries: int = 48
    steps: int = 120_000  # of the SMT solver in the search, in all
    limits: SolverLimits = field(default_factory=SolverLimits)  # of each query
