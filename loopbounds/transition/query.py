"""Queries about invariants of a model, and their results: the same for every back end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

__all__ = [
    "InvariantQuery",
    "InvariantResult",
    "InvariantVerdict",
    "ProcessLimits",
    "SolverLimits",
    "State",
    "StepLimits",
]

State = Mapping[str, int]
"""The words of one state, by the names of their symbols."""


@dataclass(frozen=True, slots=True)
class InvariantQuery:
    """Whether the property ``name`` holds in all reachable states, by induction of ``depth``."""

    name: str
    depth: int = 1


class InvariantVerdict(Enum):
    """The verdict of a back end on one invariant."""

    TRUE = "true"
    FALSE = "false"  # violated; the trace starts in an initial state
    UNKNOWN = "unknown"  # neither; the SMT back end gives a failed induction step as the trace
    EXPIRED = "out of time"  # of the processor
    FAILED = "solver failed"  # killed, crashed, stuck, out of memory, or not understood


@dataclass(frozen=True, slots=True)
class InvariantResult:
    """The verdict on one query; ``trace`` lists states, inputs of a step under the new state."""

    verdict: InvariantVerdict
    trace: tuple[State, ...] = field(default=())
    reason: str = ""  # of EXPIRED and FAILED


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
    question of the solver whether to go on, of which there are equally many on any machine.
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
