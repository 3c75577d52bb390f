"""Queries about invariants of a model, and their results: the same for every back end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "InvariantQuery",
    "InvariantResult",
    "InvariantVerdict",
    "State",
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
    UNKNOWN = "unknown"  # undecided; the SMT back end's trace is a failed induction step
    EXPIRED = "out of time"  # processor time
    FAILED = "solver failed"  # killed, crashed, stuck, out of memory, or not understood


@dataclass(frozen=True, slots=True)
class InvariantResult:
    """The verdict on a query; ``trace`` lists states, each with the inputs of the step into it."""

    verdict: InvariantVerdict
    trace: tuple[State, ...] = field(default=())
    reason: str = ""  # for EXPIRED and FAILED
