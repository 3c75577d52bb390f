"""Sets of 32-bit words: strided intervals, the values of registers and addresses.

``ValueSet(low, high, stride)`` is {low, low+stride, ..., high} of unsigned words; low <= high,
(high - low) % stride == 0, and stride == 0 exactly when low == high. ``ANY`` is every word.
Arithmetic that may wrap around gives a set that contains every wrapped result.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ANY", "ValueSet"]

WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A strided interval of unsigned 32-bit words, both ends included."""

    low: int
    high: int
    stride: int

    @staticmethod
    def of(value: int) -> ValueSet:
        """The set of one word."""
        return ValueSet(value % WORD, value % WORD, 0)

    @property
    def exact(self) -> int | None:
        """The only member, or None if there are several."""
        return self.low if self.low == self.high else None

    def __contains__(self, value: int) -> bool:
        if not self.low <= value <= self.high:
            return False
        return self.stride == 0 or (value - self.low) % self.stride == 0


ANY = ValueSet(0, WORD - 1, 1)
