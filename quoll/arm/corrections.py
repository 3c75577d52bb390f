"""Where the SLEIGH specification is wrong, and what is used instead. Each row has its test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quoll.arm.insn import Insn
from quoll.arm.ops import Op

__all__ = ["CORRECTIONS", "Correction"]


@dataclass(frozen=True, slots=True)
class Correction:
    """``ops`` replaces the specification for instructions for which ``applies`` holds."""

    what: str
    applies: Callable[[Insn], bool]
    ops: Callable[[Insn], list[Op]]


CORRECTIONS: tuple[Correction, ...] = ()
