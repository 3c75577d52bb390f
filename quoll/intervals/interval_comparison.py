"""Comparisons of value sets: verdicts for all members, and refinement by a comparison."""

from __future__ import annotations

from enum import Enum

from quoll.intervals.interval_arithmetic import halves
from quoll.intervals.strided_interval import ValueSet, join, meet, progression

__all__ = ["ComparisonOperator", "holds", "refine"]

Pair = tuple[ValueSet, ValueSet]


class ComparisonOperator(Enum):
    """Relations between two words; the others exchange the operands or negate the result."""

    EQ = "=="
    NE = "!="
    ULT = "<u"
    ULE = "<=u"
    SLT = "<s"
    SLE = "<=s"

    __hash__ = object.__hash__  # in C: members are keys


def refine(relation: ComparisonOperator, a: ValueSet, b: ValueSet, bits: int = 32) -> Pair | None:
    """Supersets of the x in a and y in b with x ``relation`` y; None if there are none."""
    if relation is ComparisonOperator.EQ:
        both = meet(a, b)
        return None if both is None else (both, both)
    if relation is ComparisonOperator.NE:
        return _refine_unequal(a, b)
    if relation is ComparisonOperator.ULT:
        return _refine_less(a, b, 1)
    if relation is ComparisonOperator.ULE:
        return _refine_less(a, b, 0)
    return _refine_signed(a, b, 1 if relation is ComparisonOperator.SLT else 0, bits)


def holds(relation: ComparisonOperator, a: ValueSet, b: ValueSet, bits: int = 32) -> bool | None:
    """Whether x ``relation`` y for all members, for none (False), or neither (None)."""
    if refine(relation, a, b, bits) is None:
        return False
    negation, swapped = _NEGATION[relation]
    left, right = (b, a) if swapped else (a, b)
    return True if refine(negation, left, right, bits) is None else None


# not (a R b) is (b R' a) when swapped, else (a R' b)
_NEGATION = {
    ComparisonOperator.EQ: (ComparisonOperator.NE, False),
    ComparisonOperator.NE: (ComparisonOperator.EQ, False),
    ComparisonOperator.ULT: (ComparisonOperator.ULE, True),
    ComparisonOperator.ULE: (ComparisonOperator.ULT, True),
    ComparisonOperator.SLT: (ComparisonOperator.SLE, True),
    ComparisonOperator.SLE: (ComparisonOperator.SLT, True),
}


def _refine_unequal(a: ValueSet, b: ValueSet) -> Pair | None:
    left = _without(a, b.low) if b.stride == 0 else a
    right = _without(b, a.low) if a.stride == 0 else b
    return None if left is None or right is None else (left, right)


def _without(a: ValueSet, value: int) -> ValueSet | None:
    """``a`` without an end point; an inner member stays."""
    if a.stride == 0:
        return None if a.low == value else a
    if a.low == value:
        return progression(a.low + a.stride, a.high, a.stride)
    if a.high == value:
        return progression(a.low, a.high - a.stride, a.stride)
    return a


def _refine_less(a: ValueSet, b: ValueSet, gap: int) -> Pair | None:
    """Refine by x + gap <= y over the integers."""
    high, low = min(a.high, b.high - gap), max(b.low, a.low + gap)
    if high < a.low or low > b.high:
        return None
    left = progression(a.low, high, a.stride)
    if b.stride:
        low = b.low - (b.low - low) // b.stride * b.stride
    return left, progression(low, b.high, b.stride)


def _refine_signed(a: ValueSet, b: ValueSet, gap: int, bits: int) -> Pair | None:
    (a_positive, a_negative), (b_positive, b_negative) = halves(a, bits), halves(b, bits)
    cases: list[Pair] = []
    if a_negative and b_positive:
        cases.append((a_negative, b_positive))
    for left, right in ((a_positive, b_positive), (a_negative, b_negative)):
        case = _refine_less(left, right, gap) if left and right else None
        if case is not None:
            cases.append(case)
    if not cases:
        return None
    low, high = cases[0]
    for left, right in cases[1:]:
        low, high = join(low, left), join(high, right)
    return low, high
