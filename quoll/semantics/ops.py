"""The operations an instruction is lifted to: a small, exact register-transfer language.

The opcodes are the part of p-code (Ghidra's ``docs/languages/html/pcoderef.html``) that integer
instructions need, with control flow and unknown results made explicit. Values are unsigned words
of 1 to 8 bytes; a flag is one byte, 0 or 1. Every variable is read and written as a whole: an
offset always goes with one size.

A branch inside an instruction targets the index of an op in its tuple; the length of the tuple is
the end of the instruction, after which the next one in memory follows.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import NamedTuple

__all__ = [
    "BANKED",
    "FLAGS",
    "GE",
    "UNKNOWN_CODES",
    "C",
    "N",
    "Op",
    "OpCode",
    "Q",
    "Space",
    "V",
    "Var",
    "Z",
    "const",
    "general",
    "temp",
]


class Space(IntEnum):
    """The location of a variable."""

    CONST = 0  # offset is the value
    REG = 1  # 0..14 general registers (4 bytes), 16.. flags (1 byte); never 15
    TEMP = 2  # lives within one instruction; offset is a number


class Var(NamedTuple):
    """A constant, register or temporary of ``size`` bytes."""

    space: Space
    offset: int
    size: int

    def __str__(self) -> str:
        if self.space is Space.CONST:
            return f"{self.offset:#x}"
        if self.space is Space.TEMP:
            return f"t{self.offset}:{self.size}"
        return f"r{self.offset}" if self.offset < 16 else FLAG_NAMES[self.offset - 16]


class OpCode(IntEnum):
    """The operation of an op; ``a`` and ``b`` are its inputs, of their variables' sizes."""

    COPY = auto()
    LOAD = auto()  # out = memory at a, little-endian
    STORE = auto()  # memory at a = b
    DISCARD = auto()  # any bytes in the aligned line (LINE bytes) of address a: stores are lost
    RETRANSLATE = auto()  # addresses whose translation is not fixed may name other memory
    BRANCH = auto()  # to op number a
    CBRANCH = auto()  # to op number a if b
    GOTO = auto()  # leave to address a, in Thumb state if b; address bits below alignment ignored
    TRAP = auto()  # an exception is taken here; nothing after it is executed
    UNKNOWN = auto()  # out = any value; it may depend on the inputs
    BANK = auto()  # out = register a of the bank of mode b & 31; unknown if that is another mode
    INT_EQUAL = auto()
    INT_NOTEQUAL = auto()
    INT_LESS = auto()
    INT_LESSEQUAL = auto()
    INT_SLESS = auto()
    INT_SLESSEQUAL = auto()
    INT_ZEXT = auto()
    INT_SEXT = auto()
    INT_ADD = auto()
    INT_SUB = auto()
    INT_CARRY = auto()  # unsigned overflow of a + b
    INT_SCARRY = auto()  # signed overflow of a + b
    INT_SBORROW = auto()  # signed overflow of a - b
    INT_2COMP = auto()
    INT_NEGATE = auto()  # bitwise
    INT_XOR = auto()
    INT_AND = auto()
    INT_OR = auto()
    INT_LEFT = auto()  # shifts by the width or more give 0 (INT_SRIGHT: the sign)
    INT_RIGHT = auto()
    INT_SRIGHT = auto()
    INT_MULT = auto()
    INT_DIV = auto()  # by zero gives 0, as ARM's udiv and sdiv do (A8.8.165, A8.8.248)
    INT_SDIV = auto()
    INT_REM = auto()  # by zero gives a
    INT_SREM = auto()
    BOOL_NEGATE = auto()
    BOOL_XOR = auto()
    BOOL_AND = auto()
    BOOL_OR = auto()
    PIECE = auto()  # a above b
    SUBPIECE = auto()  # a without its low b bytes, truncated
    POPCOUNT = auto()
    LZCOUNT = auto()


UNKNOWN_CODES = frozenset([OpCode.UNKNOWN, OpCode.BANK])  # any value, for an analysis without modes


class Op(NamedTuple):
    """One operation: ``out = code(ins)``; ``out`` is None for stores and control."""

    code: OpCode
    out: Var | None
    ins: tuple[Var, ...]

    def __str__(self) -> str:
        inputs = ", ".join(map(str, self.ins))
        call = f"{self.code.name.lower()}({inputs})"
        return f"{self.out} = {call}" if self.out else call


def const(value: int, size: int = 4) -> Var:
    """The constant ``value``, wrapped to ``size`` bytes."""
    return Var(Space.CONST, value & (1 << 8 * size) - 1, size)


def temp(number: int, size: int = 4) -> Var:
    """Temporary ``number``."""
    return Var(Space.TEMP, number, size)


def general(number: int) -> Var:
    """General register ``number``, 0 to 14."""
    return _GENERAL[number]


_GENERAL = tuple(Var(Space.REG, number, 4) for number in range(15))
FLAG_NAMES = ("N", "Z", "C", "V", "Q", "GE0", "GE1", "GE2", "GE3")
N, Z, C, V, Q = (Var(Space.REG, 16 + n, 1) for n in range(5))
GE = tuple(Var(Space.REG, 21 + n, 1) for n in range(4))
FLAGS = (N, Z, C, V)
BANKED = tuple(range(8, 15))  # a mode change may replace these: r13, r14; with FIQ r8 to r12 too
