"""The steps of a compiled basic block: runs of evaluators, and points where control forks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quoll.abstract_domain.evaluators import Evaluator

__all__ = [
    "CompiledBlock",
    "ExitStep",
    "ForkStep",
    "JoinStep",
    "Micro",
    "Step",
    "StraightStep",
    "SwitchStep",
    "TrapStep",
]

Micro = tuple[Evaluator, int, int, int, Any]  # function, slots of the result and inputs, extra


@dataclass(frozen=True, slots=True)
class StraightStep:
    """Evaluators one after another."""

    micros: tuple[Micro, ...]


@dataclass(frozen=True, slots=True)
class ForkStep:
    """To ``label`` if the truth value in slot ``condition`` holds (None: always)."""

    label: int
    condition: int | None


@dataclass(frozen=True, slots=True)
class JoinStep:
    """``label``: control arrives from the steps that name it; ``unset`` temporaries are void."""

    label: int
    unset: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SwitchStep:
    """Continue with the control that waits at ``label``; the current control waits instead."""

    label: int


@dataclass(frozen=True, slots=True)
class ExitStep:
    """GOTO: control leaves the block to the address in slot ``target``.

    The address still contains the bits that select the instruction set; slot ``thumb`` decides.
    """

    target: int
    thumb: int


@dataclass(frozen=True, slots=True)
class TrapStep:
    """TRAP: the next code is unknown, and so is the state after it."""


Step = StraightStep | ForkStep | JoinStep | SwitchStep | ExitStep | TrapStep


@dataclass(frozen=True, slots=True)
class CompiledBlock:
    """Compiled steps; ``tail`` holds the initial values of the slots after the registers."""

    steps: tuple[Step, ...]
    tail: tuple[Any, ...]
