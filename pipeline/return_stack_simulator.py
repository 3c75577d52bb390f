"""The return stack of the ARM1136 as the twin of ``quoll.arm.return_stack`` has it.

A circular buffer of three entries. The manual leaves open whether an entry that was popped is gone,
so that a stack with nothing left predicts nothing, or stays behind the others: it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from quoll.arm.return_stack import ENTRIES, ReturnAddress

__all__ = ["SimulatedReturnStack"]


class SimulatedReturnStack:
    """``addresses``: those that other programs, or this one, may have left in it."""

    def __init__(self, random: Random, addresses: Sequence[ReturnAddress] = ()) -> None:
        self._counts = random.random() < 0.5
        self._entries: list[ReturnAddress | None] = [  # the top one last
            random.choice(addresses) if addresses and random.random() < 0.8 else None
            for _ in range(ENTRIES)
        ]

    def copy(self) -> SimulatedReturnStack:
        """One with the same entries."""
        other = SimulatedReturnStack.__new__(SimulatedReturnStack)
        other._counts, other._entries = self._counts, list(self._entries)
        return other

    def push(self, address: ReturnAddress) -> None:
        """Overwrite the oldest entry."""
        self._entries = [*self._entries[1:], address]

    def pop(self) -> ReturnAddress | None:
        """The address that predicts a return; None if there is none."""
        top = self._entries[-1]
        self._entries = [None if self._counts else top, *self._entries[:-1]]
        return top
