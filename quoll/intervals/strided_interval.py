"""Sets of 32-bit words: strided intervals, the values of registers and addresses.

``ValueSet(low, high, stride)`` is {low, low+stride, ..., high} of unsigned words; low <= high,
(high - low) % stride == 0, and stride == 0 exactly when low == high. ``ANY`` is every word.
Arithmetic that may wrap around gives a set that contains every wrapped result.

This module holds the lattice; ``quoll.intervals.interval_arithmetic`` computes with these sets and
``quoll.intervals.interval_comparison`` refines them. None represents the empty set where a function
may return it. Operations that depend on the word width take ``bits``, so that tests can enumerate
small words.

Source: Reps, Balakrishnan, Lim: "Intermediate-Representation Recovery from Low-Level Code",
PEPM 2006, section 4 (strided intervals).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

__all__ = ["ANY", "WORD", "ValueSet", "join", "leq", "meet", "progression", "widen", "wrap"]

WORD = 1 << 32
REMEMBERED = 1 << 14  # cached results per function


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

    @property
    def size(self) -> int:
        """The number of members."""
        return (self.high - self.low) // self.stride + 1 if self.stride else 1

    def __contains__(self, value: int) -> bool:
        if not self.low <= value <= self.high:
            return False
        return self.stride == 0 or (value - self.low) % self.stride == 0

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1, self.stride or 1))

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:#x}"
        if self == ANY:
            return "any"
        step = f" step {self.stride:#x}" if self.stride != 1 else ""
        return f"{self.low:#x}..{self.high:#x}{step}"


ANY = ValueSet(0, WORD - 1, 1)


def progression(low: int, high: int, stride: int) -> ValueSet:
    """The canonical set {low, low+stride, ...} up to ``high``, which need not be a member."""
    if stride:
        high -= (high - low) % stride
    return ValueSet(low, high, stride if high > low else 0)


def wrap(low: int, high: int, stride: int, bits: int = 32) -> ValueSet:
    """The progression over the integers ``low`` to ``high``, each reduced modulo 2**bits.

    If the interval crosses a multiple of 2**bits, the stride becomes its largest power of two.
    """
    modulus = 1 << bits
    if low >> bits == high >> bits:
        return progression(low % modulus, high % modulus, stride)
    stride = gcd(stride, modulus)
    if stride == 1 and bits == 32:
        return ANY
    return progression(low % stride, modulus - 1, stride)


def leq(a: ValueSet, b: ValueSet) -> bool:
    """Whether every member of ``a`` is a member of ``b``."""
    if a.low < b.low or a.high > b.high:
        return False
    if b.stride == 0:
        return True
    return (a.low - b.low) % b.stride == 0 and a.stride % b.stride == 0


def join(a: ValueSet, b: ValueSet) -> ValueSet:
    """The least strided interval that contains both."""
    if a is ANY or b is ANY:
        return ANY
    stride = gcd(a.stride, b.stride, a.low - b.low)
    low = a.low if a.low < b.low else b.low
    high = a.high if a.high > b.high else b.high
    return ANY if stride == 1 and high - low == WORD - 1 else ValueSet(low, high, stride)


def meet(a: ValueSet, b: ValueSet) -> ValueSet | None:
    """The intersection, exactly; None if it is empty."""
    low, high = max(a.low, b.low), min(a.high, b.high)
    if low > high:
        return None
    if a.stride == 0 or b.stride == 0:
        value, other = (a.low, b) if a.stride == 0 else (b.low, a)
        return ValueSet(value, value, 0) if value in other else None
    common = gcd(a.stride, b.stride)
    if (b.low - a.low) % common:
        return None
    # x = a.low + a.stride * k with x = b.low modulo b.stride
    step = b.stride // common
    k = (b.low - a.low) // common * pow(a.stride // common, -1, step) % step if step > 1 else 0
    stride = a.stride * step
    first = a.low + a.stride * k
    first += -((first - low) // stride) * stride
    return progression(first, high, stride) if first <= high else None


def widen(old: ValueSet, new: ValueSet, thresholds: Sequence[int], bits: int = 32) -> ValueSet:
    """A superset of both; an end that moved goes to the next of the sorted ``thresholds``.

    Chains are finite: ends move only outwards through the thresholds, strides only to divisors.
    """
    both = join(old, new)
    low, high = both.low, both.high
    if low < old.low:
        at = bisect_right(thresholds, low)
        low = thresholds[at - 1] if at else 0
    if high > old.high:
        at = bisect_left(thresholds, high)
        high = thresholds[at] if at < len(thresholds) else (1 << bits) - 1
    if both.stride == 0:
        return both
    if both.stride == 1 and low == 0 and high == WORD - 1:
        return ANY
    return progression(both.low - (both.low - low) // both.stride * both.stride, high, both.stride)
