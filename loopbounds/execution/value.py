"""Words of an execution that may be unknown, and the results of ops on them.

A word is known, or an address at a known distance from sp at the entry, or unknown. An op with an
operand that is not known gives an unknown word, except for sums, differences, moves, products with
zero, and comparisons of addresses in one stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quoll.semantics.ops import OpCode

__all__ = ["NEAR", "ConcreteValue", "StackAddress", "Undecided", "mixed"]

WORD = 0xFFFFFFFF
SIGN = 0x80000000
NEAR = 1 << 20  # bytes on both sides of sp at the entry, which do not include address 0 (S5)
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


ConcreteValue = int | StackAddress | None
"""Unsigned; None: any word."""


class Undecided(Exception):
    """An unknown word decides the next instruction, or the content of memory."""


def mixed(code: OpCode, values: Sequence[ConcreteValue], out_size: int) -> ConcreteValue:
    """The result of an op on ``values`` that are not all known; ``out_size`` in bytes.

    Meanings of ops: ``quoll.semantics.operations``.
    """
    if code in ABSORBED and 0 in values:
        return 0
    if code is OpCode.COPY:
        return values[0]
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
