"""Sets of words that a register may hold: numbers, places on the stack, and anything else.

An element is a number that code made of constants, a distance from sp at the start of the function,
or a sum of a number and an unknown word. Sets are supersets: a register holds a word of one of its
elements. ``OTHER`` stands for every word that is not made of a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple

from quoll.semantics.operations import evaluate
from quoll.semantics.ops import OpCode

__all__ = ["LIMIT", "OTHER", "UNKNOWN", "Element", "ElementKind", "Elements", "combined"]

WORD = 1 << 32
LIMIT = 8  # elements of a set


class ElementKind(IntEnum):
    """The meaning of the value of an element."""

    NUMBER = 0
    PLACE = 1  # distance from sp
    SUM = 2  # a number, to which an unknown word was added
    OTHER = 3


class Element(NamedTuple):
    """``value``: the number, the distance, or the known summand."""

    kind: ElementKind
    value: int


Elements = frozenset[Element]
OTHER = Element(ElementKind.OTHER, 0)
UNKNOWN: Elements = frozenset((OTHER,))
MOVED = (OpCode.COPY, OpCode.INT_ZEXT)
SUMS = (OpCode.INT_ADD, OpCode.INT_SUB)


def combined(
    code: OpCode,
    inputs: list[Element],
    sizes: list[int],
    size: int,
    near: Callable[[int], bool],
    used: Callable[[Iterable[Element]], None],
) -> Elements:
    """The result of an operation on one element each.

    ``near``: whether a number may be the base of an array with another index than 0. ``used`` is
    called with the elements that the operation takes as numbers.
    """
    if all(one.kind is ElementKind.NUMBER for one in inputs):
        value = evaluate(code, [one.value for one in inputs], sizes, size)
        if code not in SUMS and value not in (one.value for one in inputs):
            used(inputs)
        return frozenset((Element(ElementKind.NUMBER, value),))
    if code in MOVED and size == 4:
        return frozenset(inputs)
    if code in SUMS and size == 4:
        return _sum(inputs[0], inputs[1], near, used, minus=code is OpCode.INT_SUB)
    used(inputs)
    return UNKNOWN


def _sum(
    a: Element,
    b: Element,
    near: Callable[[int], bool],
    used: Callable[[Iterable[Element]], None],
    *,
    minus: bool,
) -> Elements:
    if minus:
        if b.kind is not ElementKind.NUMBER:
            used((b,))
            b = OTHER
        else:
            b = Element(ElementKind.NUMBER, -b.value % WORD)
    found: set[Element] = set()
    for one, other in ((a, b), (b, a)):
        if one.kind in (ElementKind.SUM, ElementKind.PLACE):
            if other.kind is ElementKind.NUMBER:
                found.add(Element(one.kind, (one.value + other.value) % WORD))
            elif one.kind is ElementKind.SUM:
                found.add(one)
        if one.kind is ElementKind.NUMBER and near(one.value):
            found.add(Element(ElementKind.SUM, one.value))
    return frozenset(found) or UNKNOWN
