"""Words of which only a range is known, and the results of ops on them.

A range has integers ``low, low + stride, ..., high``; the word is one of them modulo the size of
the word. So a range may hold -1 and 0. An op is applied to the ends of its operands, as unsigned or
as signed words. A result that may wrap in several ways is any word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from quoll.intervals.strided_interval import REMEMBERED
from quoll.semantics.ops import OpCode

__all__ = ["BOUNDING", "WordRange", "hull", "narrow", "of_ranges", "range_of", "word_of"]

WIDEST = 1 << 16  # steps from end to end of a hull: beyond, the words are data and no counts
WORD_SIZE = 4


@dataclass(frozen=True, slots=True)
class WordRange:
    """The integers from ``low`` to ``high`` in steps of ``stride``; at least two."""

    low: int
    high: int
    stride: int = 1

    def unsigned(self, size: int) -> WordRange:
        """The range of the unsigned word of ``size`` bytes."""
        return self._from(0, size)

    def signed(self, size: int) -> WordRange:
        """The range of the signed word of ``size`` bytes."""
        return self._from(-1 << 8 * size - 1, size)

    def _from(self, least: int, size: int) -> WordRange:
        modulus = 1 << 8 * size
        turn = (self.low - least) // modulus
        if (self.high - least) // modulus != turn:
            return WordRange(least, least + modulus - 1)
        away = turn * modulus
        return WordRange(self.low - away, self.high - away, self.stride) if away else self

    def within(self, limit: WordRange) -> int | WordRange:
        """The range without words outside of ``limit``, if a word is in both and they are few.

        ``limit`` is unsigned; so is the result, of words of four bytes.
        """
        best: WordRange = self
        for view in (WordRange.unsigned, WordRange.signed):
            this, limits = view(self, WORD_SIZE), view(limit, WORD_SIZE)
            low, high = max(this.low, limits.low), min(this.high, limits.high)
            low += (this.low - low) % this.stride
            high -= (high - this.low) % this.stride
            if low == high:
                return low % (1 << 8 * WORD_SIZE)
            if low < high and high - low < best.high - best.low:
                best = WordRange(low, high, this.stride)
        return best


Word = int | WordRange | None


@lru_cache(REMEMBERED)
def of_ranges(
    code: OpCode, values: tuple[object, ...], sizes: tuple[int, ...], out_size: int
) -> Word:
    """The result of an op on known words, ranges, and words that are not known (None).

    ``sizes``: of the operands, as ``out_size`` in bytes. The result is unsigned if it is known.
    """
    rule = RULES.get(code)
    if rule is None:
        return None
    operands = [range_of(value, size) for value, size in zip(values, sizes, strict=False)]
    known = [operand for operand in operands if operand is not None]
    return rule(known, sizes, out_size) if len(known) == len(operands) else None


def narrow(value: object) -> bool:
    """Whether a word is known, or one of few."""
    return isinstance(value, int) or (
        isinstance(value, WordRange) and value.high - value.low <= WIDEST * value.stride
    )


@lru_cache(REMEMBERED)
def hull(a: object, b: object) -> Word:
    """A narrow range of a word in a register that holds ``a`` or ``b``; None: any word."""
    one, other = range_of(a, WORD_SIZE), range_of(b, WORD_SIZE)
    if a is None or b is None or one is None or other is None:
        return None
    best: WordRange | None = None
    for view in (WordRange.unsigned, WordRange.signed):
        x, y = view(one, WORD_SIZE), view(other, WORD_SIZE)
        low, high = min(x.low, y.low), max(x.high, y.high)
        stride = gcd(x.stride, y.stride, x.low - y.low)
        if high - low > WIDEST * stride:
            continue
        if best is None or high - low < best.high - best.low:
            best = WordRange(low, high, stride)
    return best


def range_of(value: object, size: int) -> WordRange | None:
    """The range of an operand; None if it is of another kind."""
    if isinstance(value, WordRange):
        return value
    if isinstance(value, int):
        return WordRange(value, value, 0)
    return WordRange(0, (1 << 8 * size) - 1) if value is None else None


def word_of(low: int, high: int, stride: int, size: int) -> Word:
    """The word of ``size`` bytes that is one of these integers."""
    modulus = 1 << 8 * size
    if low == high:
        return low % modulus
    if high - low >= modulus - 1:
        return None
    away = 0 if -modulus // 2 <= low < modulus else low // modulus * modulus
    return WordRange(low - away, high - away, stride)


Operands = list[WordRange]
Rule = Callable[[Operands, Sequence[int], int], Word]


def _sum(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of
    return word_of(a.low + b.low, a.high + b.high, gcd(a.stride, b.stride), out)


def _difference(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of
    return word_of(a.low - b.high, a.high - b.low, gcd(a.stride, b.stride), out)


def _opposite(of: Operands, sizes: Sequence[int], out: int) -> Word:
    [a] = of
    return word_of(-a.high, -a.low, a.stride, out)


def _inverse(of: Operands, sizes: Sequence[int], out: int) -> Word:
    [a] = of
    return word_of(-a.high - 1, -a.low - 1, a.stride, out)


def _product(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    stride = gcd(a.stride * b.low, b.stride * a.low, a.stride * b.stride)
    return word_of(min(corners), max(corners), stride, out)


def _and(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = (one.unsigned(out) for one in of)
    if a.low == a.high:
        a, b = b, a
    if b.low == b.high:
        mask, cleared = b.low, (1 << 8 * out) - 1 - b.low
        if cleared & cleared + 1 == 0:  # the lowest bits
            step = a.stride if a.stride % (cleared + 1) == 0 else cleared + 1
            return word_of(a.low & mask, a.high & mask, step, out)
        if mask & mask + 1 == 0 and a.high <= mask:
            return word_of(a.low, a.high, a.stride, out)
    return word_of(0, min(a.high, b.high), 1, out)


def _or(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = (one.unsigned(out) for one in of)
    return word_of(max(a.low, b.low), (1 << (a.high | b.high).bit_length()) - 1, 1, out)


def _xor(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = (one.unsigned(out) for one in of)
    return word_of(0, (1 << (a.high | b.high).bit_length()) - 1, 1, out)


def _left(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, amount = of
    if amount.low != amount.high:
        return None
    n = amount.low
    return 0 if n >= 8 * out else word_of(a.low << n, a.high << n, a.stride << n, out)


def _right(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, amount = of[0].unsigned(sizes[0]), of[1].unsigned(sizes[1])
    n = amount.low
    exact = n == amount.high and a.stride % (1 << n) == 0 if n < 64 else False
    return word_of(
        _shifted(a.low, amount.high), _shifted(a.high, n), a.stride >> n if exact else 1, out
    )


def _right_signed(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, amount = of[0].signed(sizes[0]), of[1].unsigned(sizes[1])
    n = amount.low
    return word_of(_shifted(a.low, n), _shifted(a.high, n), 1, out) if n == amount.high else None


def _shifted(word: int, by: int) -> int:
    return word >> min(by, 64)


def _quotient(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of[0].unsigned(sizes[0]), of[1].unsigned(sizes[1])
    return (
        word_of(a.low // b.high, a.high // b.low, 1, out) if b.low else word_of(0, a.high, 1, out)
    )


def _rest(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of[0].unsigned(sizes[0]), of[1].unsigned(sizes[1])
    if not b.low:
        return None
    return (
        word_of(a.low, a.high, a.stride, out) if a.high < b.low else word_of(0, b.high - 1, 1, out)
    )


def _rest_signed(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of[0].signed(sizes[0]), of[1].signed(sizes[1])
    if b.low <= 0:
        return None
    if -b.low < a.low and a.high < b.low:
        return word_of(a.low, a.high, a.stride, out)
    low, high = 0 if a.low >= 0 else 1 - b.high, 0 if a.high <= 0 else b.high - 1
    return word_of(low, high, 1, out)


def _copy(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a = of[0].unsigned(sizes[0])
    return word_of(a.low, a.high, a.stride, out)


def _extended(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a = of[0].signed(sizes[0])
    return word_of(a.low, a.high, a.stride, out)


def _part(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, n = of[0].unsigned(sizes[0]), 8 * of[1].low
    exact = a.stride % (1 << n) == 0
    return word_of(a.low >> n, a.high >> n, a.stride >> n if exact else 1, out)


def _leading_zeros(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a = of[0].unsigned(sizes[0])
    width = 8 * sizes[0]
    return word_of(width - a.high.bit_length(), width - a.low.bit_length(), 1, out)


def _equal(of: Operands, sizes: Sequence[int], out: int) -> Word:
    for view in (WordRange.unsigned, WordRange.signed):
        a, b = view(of[0], sizes[0]), view(of[1], sizes[1])
        if a.high < b.low or b.high < a.low:
            return 0
    return None


def _unequal(of: Operands, sizes: Sequence[int], out: int) -> Word:
    return 1 if _equal(of, sizes, out) == 0 else None


def _truth(surely: bool, surely_not: bool) -> Word:
    return 1 if surely else 0 if surely_not else None


def _compared(view: Callable[[WordRange, int], WordRange], gap: int) -> Rule:
    """``a + gap <= b``."""

    def rule(of: Operands, sizes: Sequence[int], out: int) -> Word:
        a, b = view(of[0], sizes[0]), view(of[1], sizes[1])
        return _truth(a.high + gap <= b.low, a.low + gap > b.high)

    return rule


def _carry(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of[0].unsigned(sizes[0]), of[1].unsigned(sizes[1])
    modulus = 1 << 8 * sizes[0]
    return _truth(a.low + b.low >= modulus, a.high + b.high < modulus)


def _overflow(low: int, high: int, size: int) -> Word:
    most = 1 << 8 * size - 1
    return _truth(low >= most or high < -most, -most <= low and high < most)


def _signed_carry(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of[0].signed(sizes[0]), of[1].signed(sizes[1])
    return _overflow(a.low + b.low, a.high + b.high, sizes[0])


def _signed_borrow(of: Operands, sizes: Sequence[int], out: int) -> Word:
    a, b = of[0].signed(sizes[0]), of[1].signed(sizes[1])
    return _overflow(a.low - b.high, a.high - b.low, sizes[0])


RULES: dict[OpCode, Rule] = {
    OpCode.COPY: _copy,
    OpCode.INT_ADD: _sum,
    OpCode.INT_SUB: _difference,
    OpCode.INT_2COMP: _opposite,
    OpCode.INT_NEGATE: _inverse,
    OpCode.INT_MULT: _product,
    OpCode.INT_AND: _and,
    OpCode.INT_OR: _or,
    OpCode.INT_XOR: _xor,
    OpCode.INT_LEFT: _left,
    OpCode.INT_RIGHT: _right,
    OpCode.INT_SRIGHT: _right_signed,
    OpCode.INT_DIV: _quotient,
    OpCode.INT_REM: _rest,
    OpCode.INT_SREM: _rest_signed,
    OpCode.INT_ZEXT: _copy,
    OpCode.INT_SEXT: _extended,
    OpCode.SUBPIECE: _part,
    OpCode.LZCOUNT: _leading_zeros,
    OpCode.INT_EQUAL: _equal,
    OpCode.INT_NOTEQUAL: _unequal,
    OpCode.INT_LESS: _compared(WordRange.unsigned, 1),
    OpCode.INT_LESSEQUAL: _compared(WordRange.unsigned, 0),
    OpCode.INT_SLESS: _compared(WordRange.signed, 1),
    OpCode.INT_SLESSEQUAL: _compared(WordRange.signed, 0),
    OpCode.INT_CARRY: _carry,
    OpCode.INT_SCARRY: _signed_carry,
    OpCode.INT_SBORROW: _signed_borrow,
}
# Ops whose result may be a range, or known, although an operand is any word.
BOUNDING = frozenset(
    (OpCode.INT_AND, OpCode.INT_RIGHT, OpCode.INT_SRIGHT, OpCode.INT_DIV, OpCode.INT_REM,
     OpCode.INT_SREM, OpCode.INT_ZEXT, OpCode.INT_SEXT, OpCode.LZCOUNT)
)  # fmt: skip
