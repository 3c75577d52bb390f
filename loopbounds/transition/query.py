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
    UNKNOWN = "unknown"  # neither; the SMT back end gives a failed induction step as the trace
    EXPIRED = "out of time"  # of the processor
    FAILED = "solver failed"  # killed, crashed, stuck, out of memory, or not understood


@dataclass(frozen=True, slots=True)
class InvariantResult:
    """The verdict on one query; ``trace`` lists states, inputs of a step under the new state."""

    verdict: InvariantVerdict
    trace: tuple[State, ...] = field(default=())
    reason: str = ""  # of EXPIRED and FAILED
