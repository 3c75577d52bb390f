"""The pure operations of p-code, a row each: inputs, result, concrete meaning, strided intervals.

The table serves constant folding, the interpreter, value analysis and concrete execution. The same
operations as bit-vector terms are in ``loopbounds.slicing.op_terms``. A test walks all operations
and all columns, and compares each column with the concrete one.

In an expression ``a`` and ``b`` are the inputs, ``A`` is the width of ``a`` in bits, ``S`` its sign
bit, ``B`` the width of ``b``, and ``M`` the mask of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import NamedTuple

from quoll.intervals import interval_arithmetic
from quoll.intervals.interval_comparison import ComparisonOperator, holds
from quoll.intervals.strided_interval import ValueSet
from quoll.semantics.ops import OpCode

__all__ = [
    "NAMESPACE",
    "OPERATIONS",
    "PureOperation",
    "ResultSize",
    "evaluate",
    "expression",
]

Intervals = Callable[[ValueSet, ValueSet, int, int], ValueSet]
"""The results for members of two sets; the bits of the first one, and of the result."""


class ResultSize(Enum):
    """The size of the result of an operation."""

    SAME = "as large as the first input"
    TRUTH = "one byte, 0 or 1"
    ANY = "as large as the output says"


class PureOperation(NamedTuple):
    """One row. With one input, ``intervals`` ignores the second one.

    ``relation``: the relation of a comparison. ``on_truths``: inputs are bytes, 0 or 1.
    """

    inputs: int
    result: ResultSize
    expression: str
    intervals: Intervals
    relation: ComparisonOperator | None = None
    on_truths: bool = False


def _one(operation: Callable[[ValueSet, int], ValueSet]) -> Intervals:
    return lambda a, b, bits, out: operation(a, bits)


def _two(operation: Callable[[ValueSet, ValueSet, int], ValueSet]) -> Intervals:
    return lambda a, b, bits, out: operation(a, b, bits)


def _word(inputs: int, expression: str, intervals: Intervals) -> PureOperation:
    return PureOperation(inputs, ResultSize.SAME, expression, intervals)


def _comparison(relation: ComparisonOperator, expression: str) -> PureOperation:
    def intervals(a: ValueSet, b: ValueSet, bits: int, out: int) -> ValueSet:
        known = holds(relation, a, b, bits)
        return TRUTHS if known is None else ValueSet.of(int(known))

    return PureOperation(2, ResultSize.TRUTH, expression, intervals, relation)


def _overflow(expression: str) -> PureOperation:
    return PureOperation(2, ResultSize.TRUTH, expression, lambda a, b, bits, out: TRUTHS)


def _logical(inputs: int, expression: str, intervals: Intervals) -> PureOperation:
    return PureOperation(inputs, ResultSize.TRUTH, expression, intervals, on_truths=True)


def _resized(inputs: int, expression: str, intervals: Intervals) -> PureOperation:
    return PureOperation(inputs, ResultSize.ANY, expression, intervals)


def _concatenated(a: ValueSet, b: ValueSet, bits: int, out: int) -> ValueSet:
    high = interval_arithmetic.shift_left(a, ValueSet.of(out - bits), out)
    return interval_arithmetic.add(high, b, out)


def _low_part(a: ValueSet, b: ValueSet, bits: int, out: int) -> ValueSet:
    start = b.exact
    return (
        interval_arithmetic.any_word(out)
        if start is None
        else interval_arithmetic.subpiece(a, 8 * start, out)
    )


TRUTHS = ValueSet(0, 1, 1)
OPERATIONS = {
    OpCode.COPY: _word(1, "a", lambda a, b, bits, out: a),
    OpCode.INT_EQUAL: _comparison(ComparisonOperator.EQ, "int(a == b)"),
    OpCode.INT_NOTEQUAL: _comparison(ComparisonOperator.NE, "int(a != b)"),
    OpCode.INT_LESS: _comparison(ComparisonOperator.ULT, "int(a < b)"),
    OpCode.INT_LESSEQUAL: _comparison(ComparisonOperator.ULE, "int(a <= b)"),
    OpCode.INT_SLESS: _comparison(ComparisonOperator.SLT, "int((a ^ S) < (b ^ S))"),
    OpCode.INT_SLESSEQUAL: _comparison(ComparisonOperator.SLE, "int((a ^ S) <= (b ^ S))"),
    OpCode.INT_ZEXT: _resized(1, "a", lambda a, b, bits, out: a),
    OpCode.INT_SEXT: _resized(
        1,
        "((a ^ S) - S) & M",
        lambda a, b, bits, out: interval_arithmetic.sign_extend(a, bits, out),
    ),
    OpCode.INT_ADD: _word(2, "(a + b) & M", _two(interval_arithmetic.add)),
    OpCode.INT_SUB: _word(2, "(a - b) & M", _two(interval_arithmetic.subtract)),
    OpCode.INT_CARRY: _overflow("(a + b) >> A"),
    OpCode.INT_SCARRY: _overflow("((a ^ (a + b)) & (b ^ (a + b)) & S) >> (A - 1)"),
    OpCode.INT_SBORROW: _overflow("((a ^ b) & (a ^ (a - b)) & S) >> (A - 1)"),
    OpCode.INT_2COMP: _word(1, "-a & M", _one(interval_arithmetic.negate)),
    OpCode.INT_NEGATE: _word(1, "a ^ M", _one(interval_arithmetic.bit_not)),
    OpCode.INT_XOR: _word(2, "a ^ b", _two(interval_arithmetic.bit_xor)),
    OpCode.INT_AND: _word(2, "a & b", _two(interval_arithmetic.bit_and)),
    OpCode.INT_OR: _word(2, "a | b", _two(interval_arithmetic.bit_or)),
    OpCode.INT_LEFT: _word(2, "(a << b) & M if b < A else 0", _two(interval_arithmetic.some_left)),
    OpCode.INT_RIGHT: _word(2, "a >> b", _two(interval_arithmetic.some_right)),
    OpCode.INT_SRIGHT: _word(
        2, "(((a ^ S) - S) >> b) & M", _two(interval_arithmetic.some_right_signed)
    ),
    OpCode.INT_MULT: _word(2, "(a * b) & M", _two(interval_arithmetic.multiply)),
    OpCode.INT_DIV: _word(2, "a // b if b else 0", _two(interval_arithmetic.divide)),
    OpCode.INT_SDIV: _word(
        2, "_quotient(a, b, S) & M", lambda a, b, bits, out: interval_arithmetic.any_word(bits)
    ),
    OpCode.INT_REM: _word(2, "a % b if b else a", _two(interval_arithmetic.remainder)),
    OpCode.INT_SREM: _word(
        2,
        "(((a ^ S) - S) - _quotient(a, b, S) * ((b ^ S) - S)) & M",
        _two(interval_arithmetic.remainder_signed),
    ),
    OpCode.BOOL_NEGATE: _logical(
        1, "a ^ 1", lambda a, b, bits, out: interval_arithmetic.bit_xor(a, ValueSet.of(1), bits)
    ),
    OpCode.BOOL_XOR: _logical(2, "a ^ b", _two(interval_arithmetic.bit_xor)),
    OpCode.BOOL_AND: _logical(2, "a & b", _two(interval_arithmetic.bit_and)),
    OpCode.BOOL_OR: _logical(2, "a | b", _two(interval_arithmetic.bit_or)),
    OpCode.PIECE: _resized(2, "a << B | b", _concatenated),
    OpCode.SUBPIECE: _resized(2, "a >> 8 * b & M", _low_part),
    OpCode.POPCOUNT: _resized(1, "a.bit_count()", _one(interval_arithmetic.count_ones)),
    OpCode.LZCOUNT: _resized(1, "A - a.bit_length()", _one(interval_arithmetic.leading_zeros)),
}


def _quotient(a: int, b: int, sign: int) -> int:
    """Signed division, rounding towards zero; 0 when dividing by 0."""
    x, y = (a ^ sign) - sign, (b ^ sign) - sign
    if y == 0:
        return 0
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


NAMESPACE: dict[str, object] = {"_quotient": _quotient}  # names in expressions


def expression(code: OpCode, inputs: list[str], sizes: list[int], out_size: int) -> str:
    """The expression for ``code`` over the texts ``inputs``; sizes are in bytes."""
    names = dict(zip("ab", inputs, strict=False))
    width = 8 * sizes[0]
    names["A"], names["S"] = str(width), f"{1 << width - 1:#x}"
    names["B"] = str(8 * sizes[1]) if len(sizes) > 1 else ""
    names["M"] = f"{(1 << 8 * out_size) - 1:#x}"
    words = _tokens(OPERATIONS[code].expression)
    return "(" + "".join(names.get(word, word) for word in words) + ")"


@cache
def _tokens(text: str) -> tuple[str, ...]:
    words, word = [], ""
    for char in text:
        if char.isalnum() or char == "_":
            word += char
            continue
        words += [word, char]
        word = ""
    return (*words, word)


def evaluate(code: OpCode, values: list[int], sizes: list[int], out_size: int) -> int:
    """The value of a pure op on unsigned ``values``."""
    return _compiled(code, tuple(sizes), out_size)(*values)


@cache
def _compiled(code: OpCode, sizes: tuple[int, ...], out_size: int) -> Callable[..., int]:
    names = ["x", "y"][: len(sizes)]
    body = expression(code, names, list(sizes), out_size)
    function: Callable[..., int] = eval(f"lambda {', '.join(names)}: {body}", dict(NAMESPACE))
    return function
