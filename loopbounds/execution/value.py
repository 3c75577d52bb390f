"""Words of an execution that may be unknown, and the results of ops on them.

A word is known, or its low bytes, or a range of it, or an address at a known distance from sp at
the entry, or it is unknown. An op with an operand that is not known gives an unknown word, except
for sums, differences, moves, products with zero, comparisons of addresses in one stack, ops on
ranges, and ops whose low bytes depend on low bytes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopbounds.execution.word_range import BOUNDING, WordRange, hull, of_ranges
from quoll.semantics.operations import evaluate
from quoll.semantics.ops import OpCode

__all__ = [
    "ABSORBED",
    "NEAR",
    "WORD",
    "ConcreteValue",
    "LowBytes",
    "StackAddress",
    "Undecided",
    "WordRange",
    "joined",
    "mixed",
]

WORD = 0xFFFFFFFF
WORD_SIZE = 4
SIGN = 0x80000000
NEAR = 1 << 20  # bytes on both sides of sp at the entry, which do not include address 0 (S5)
# Low bytes of these results depend only on the same bytes of the operands.
BYTES_UP = frozenset(
    (OpCode.INT_ADD, OpCode.INT_SUB, OpCode.INT_MULT, OpCode.INT_AND, OpCode.INT_OR,
     OpCode.INT_XOR, OpCode.INT_2COMP, OpCode.INT_NEGATE)
)  # fmt: skip
ABSORBED = frozenset((OpCode.INT_AND, OpCode.BOOL_AND, OpCode.INT_MULT))  # by zero


@dataclass(frozen=True, slots=True)
class StackAddress:
    """The address ``offset`` bytes above sp at the entry; signed, of 32 bits."""

    offset: int

    def moved(self, by: int) -> StackAddress:
        """The address ``by`` bytes further on; addresses wrap."""
        return StackAddress((self.offset + by + SIGN & WORD) - SIGN)

    @property
    def near(self) -> bool:
        """Whether S5 says that no address from here to sp at the entry is 0."""
        return -NEAR <= self.offset < NEAR


@dataclass(frozen=True, slots=True)
class LowBytes:
    """A word of which only the lowest ``count`` bytes are known: ``value``."""

    count: int
    value: int


ConcreteValue = int | StackAddress | LowBytes | WordRange | None
"""Unsigned; None: any word."""


class Undecided(Exception):
    """An unknown word decides the next instruction, or the content of memory."""


def joined(a: ConcreteValue, b: ConcreteValue) -> ConcreteValue:
    """A word of a register that is ``a`` or ``b``."""
    if a is None or b is None:
        return None
    return a if a == b else hull(a, b)


def mixed(
    code: OpCode,
    values: Sequence[ConcreteValue],
    out_size: int,
    sizes: Sequence[int] = (WORD_SIZE, WORD_SIZE),
) -> ConcreteValue:
    """The result of an op on ``values`` that are not all known; ``sizes`` of them in bytes.

    Meanings of ops: ``quoll.semantics.operations``.
    """
    if 0 in values and code in ABSORBED:
        return 0
    if code is OpCode.BOOL_OR and 1 in values:
        return 1
    if None in values and code not in BOUNDING:
        return None
    if code is OpCode.COPY:
        return values[0]
    for value in values:
        if type(value) is StackAddress or type(value) is LowBytes:
            break
    else:
        return of_ranges(code, tuple(values), tuple(sizes), out_size)
    if any(isinstance(value, LowBytes) for value in values):
        return _of_low_bytes(code, values, out_size)
    if len(values) < 2:
        return None
    a, b = values
    if isinstance(a, StackAddress) and isinstance(b, StackAddress):
        return _of_addresses(code, a, b)
    if isinstance(a, StackAddress) and isinstance(b, int):
        return _of_address(code, a, b, out_size)
    if isinstance(a, int) and isinstance(b, StackAddress):
        return _of_address(MIRRORED[code], b, a, out_size) if code in MIRRORED else None
    return None


def _of_low_bytes(code: OpCode, values: Sequence[ConcreteValue], out_size: int) -> ConcreteValue:
    """The result of an op on words and low bytes of words."""
    known = [value for value in values if isinstance(value, int | LowBytes)]
    if len(known) < len(values):
        return None
    words = [value.value if isinstance(value, LowBytes) else value for value in known]
    count = min(value.count for value in known if isinstance(value, LowBytes))
    if code is OpCode.SUBPIECE and words[1] == 0 and out_size <= count:
        return words[0] & (1 << 8 * out_size) - 1
    if code not in BYTES_UP or out_size != WORD_SIZE:
        return None
    low = evaluate(code, words, [WORD_SIZE] * len(words), out_size) & (1 << 8 * count) - 1
    masks = [value for value in known if isinstance(value, int)]
    if code is OpCode.INT_AND and masks and masks[0] >> 8 * count == 0:
        return low
    return LowBytes(count, low)


MIRRORED = {code: code for code in (OpCode.INT_ADD, OpCode.INT_EQUAL, OpCode.INT_NOTEQUAL)}


def _of_address(code: OpCode, a: StackAddress, b: int, out_size: int) -> ConcreteValue:
    """The result of an op on an address and a known word."""
    if code is OpCode.INT_ADD:
        return a.moved(b)
    if code is OpCode.INT_SUB:
        return a.moved(-b)
    if out_size == 1 and b == 0 and a.near and code in (OpCode.INT_EQUAL, OpCode.INT_NOTEQUAL):
        return int(code is OpCode.INT_NOTEQUAL)
    return None


def _of_addresses(code: OpCode, a: StackAddress, b: StackAddress) -> ConcreteValue:
    """The result of an op on two addresses, ordered by distance unless 0 is between (S5)."""
    if code is OpCode.INT_SUB:
        return a.offset - b.offset & WORD
    if code in (OpCode.INT_EQUAL, OpCode.INT_NOTEQUAL):
        return int((a == b) is (code is OpCode.INT_EQUAL))
    if not (a.near and b.near):
        return None
    if code is OpCode.INT_LESS:
        return int(a.offset < b.offset)
    if code is OpCode.INT_LESSEQUAL:
        return int(a.offset <= b.offset)
    return None
