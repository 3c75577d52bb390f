"""What a compiled basic block consists of: runs of evaluators, and points where control parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quoll.domain.evaluators import Evaluator

__all__ = ["CompiledBlock", "Exit", "Fork", "Meet", "Micro", "Step", "Stop", "Straight", "Swap"]

Micro = tuple[Evaluator, int, int, int, Any]  # function, slots of the result and inputs, extra


@dataclass(frozen=True, slots=True)
class Straight:
    """Evaluators one after another."""

    micros: tuple[Micro, ...]


@dataclass(frozen=True, slots=True)
class Fork:
    """To ``label`` if the truth value in slot ``condition`` holds (None: always)."""

    label: int
    condition: int | None


@dataclass(frozen=True, slots=True)
class Meet:
    """``label``: control arrives from the parts that name it; ``unset`` temporaries are void."""

    label: int
    unset: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Swap:
    """What follows concerns the control that waits at ``label``; the present one waits instead."""

    label: int


@dataclass(frozen=True, slots=True)
class Exit:
    """GOTO: control leaves the block to the address in slot ``target``.

    Bits that say no more than the instruction set are still in it; slot ``thumb`` decides.
    """

    target: int
    thumb: int


@dataclass(frozen=True, slots=True)
class Stop:
    """TRAP: what runs next is not known, nor what it leaves behind."""


Step = Straight | Fork | Meet | Swap | Exit | Stop


@dataclass(frozen=True, slots=True)
class CompiledBlock:
    """``tail`` are the initial values of the slots after the registers."""

    steps: tuple[Step, ...]
    tail: tuple[Any, ...]
