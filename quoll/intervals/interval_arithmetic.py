"""Arithmetic on value sets: each function contains the result for all members, modulo 2**bits.

Shift amounts of the width of a word or more shift everything out, as in p-code.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from quoll.intervals.strided_interval import ANY, ValueSet, join, meet, progression, wrap

__all__ = [
    "add",
    "any_word",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_xor",
    "count_ones",
    "divide",
    "halves",
    "has_bits",
    "known_bits",
    "leading_zeros",
    "multiply",
    "negate",
    "preserves_bits",
    "remainder",
    "remainder_signed",
    "shift_left",
    "shift_right",
    "shift_right_signed",
    "sign_extend",
    "some_left",
    "some_right",
    "some_right_signed",
    "subpiece",
    "subtract",
]

AMOUNTS = 8  # most shift amounts that are tried one by one


def add(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x + y}."""
    return wrap(a.low + b.low, a.high + b.high, gcd(a.stride, b.stride), bits)


def subtract(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x - y}."""
    return wrap(a.low - b.high, a.high - b.low, gcd(a.stride, b.stride), bits)


def negate(a: ValueSet, bits: int = 32) -> ValueSet:
    """{-x}."""
    return wrap(-a.high, -a.low, a.stride, bits)


def bit_not(a: ValueSet, bits: int = 32) -> ValueSet:
    """{~x}."""
    ones = (1 << bits) - 1
    return ValueSet(ones - a.high, ones - a.low, a.stride)


def multiply(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x * y}."""
    stride = gcd(gcd(a.stride * b.low, b.stride * a.low), a.stride * b.stride)
    return wrap(a.low * b.low, a.high * b.high, stride, bits)


def bit_and(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x & y}."""
    if a.stride == 0:
        a, b = b, a
    if b.stride == 0:
        aligned = _clear_low_bits(a, b.low, bits)
        if aligned is not None:
            return aligned
    (ones_a, free_a), (ones_b, free_b) = known_bits(a, bits), known_bits(b, bits)
    may = (ones_a | free_a) & (ones_b | free_b)
    result = _from_bits(ones_a & ones_b, may)
    return _at_most(result, min(a.high, b.high))


def bit_or(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x | y}."""
    (ones_a, free_a), (ones_b, free_b) = known_bits(a, bits), known_bits(b, bits)
    must = ones_a | ones_b
    result = _from_bits(must, must | free_a | free_b)
    return _at_least(result, max(a.low, b.low))


def preserves_bits(a: ValueSet, mask: int, bits: int = 32) -> bool:
    """Whether x & mask == x is proved for every member."""
    ones, free = known_bits(a, bits)
    return (ones | free) & ~mask == 0


def has_bits(a: ValueSet, mask: int, bits: int = 32) -> bool:
    """Whether x | mask == x is proved for every member."""
    return mask & ~known_bits(a, bits)[0] == 0


def bit_xor(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x ^ y}."""
    (ones_a, free_a), (ones_b, free_b) = known_bits(a, bits), known_bits(b, bits)
    free = free_a | free_b
    must = (ones_a ^ ones_b) & ~free
    return _from_bits(must, must | free)


def shift_left(a: ValueSet, amount: ValueSet, bits: int = 32) -> ValueSet:
    """{x << n}."""
    return _over_amounts(amount, bits, lambda n: wrap(a.low << n, a.high << n, a.stride << n, bits))


def shift_right(a: ValueSet, amount: ValueSet, bits: int = 32) -> ValueSet:
    """{x >> n}, zeros shifted in."""
    return _over_amounts(amount, bits, lambda n: _shift_down(a.low, a.high, a.stride, n))


def shift_right_signed(a: ValueSet, amount: ValueSet, bits: int = 32) -> ValueSet:
    """{x >> n}, copies of the sign bit shifted in."""
    return _over_amounts(amount, bits, lambda n: _shift_signed(a, n, bits))


def some_left(a: ValueSet, amount: ValueSet, bits: int = 32) -> ValueSet:
    """{x << n}; any word for more than ``AMOUNTS`` amounts."""
    return any_word(bits) if amount.size > AMOUNTS else shift_left(a, amount, bits)


def some_right(a: ValueSet, amount: ValueSet, bits: int = 32) -> ValueSet:
    """{x >> n}; only its range for more than ``AMOUNTS`` amounts."""
    if amount.size > AMOUNTS:
        return progression(0, a.high >> min(amount.low, bits), 1)
    return shift_right(a, amount, bits)


def some_right_signed(a: ValueSet, amount: ValueSet, bits: int = 32) -> ValueSet:
    """{x >> n} with the sign; any word for more than ``AMOUNTS`` amounts."""
    return any_word(bits) if amount.size > AMOUNTS else shift_right_signed(a, amount, bits)


def divide(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x // y}, and 0 for y = 0."""
    low = a.low // b.high if b.low else 0
    return progression(low, a.high // max(b.low, 1), 1)


def remainder(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x % y}, and x for y = 0."""
    return progression(0, min(a.high, b.high - 1) if b.low else a.high, 1)


def remainder_signed(a: ValueSet, b: ValueSet, bits: int = 32) -> ValueSet:
    """{x % y} of signed words, with the sign of x; x for y = 0."""
    sign = 1 << bits - 1
    return remainder(a, b, bits) if max(a.high, b.high) < sign else any_word(bits)


def sign_extend(a: ValueSet, source: int, bits: int = 32) -> ValueSet:
    """Members of ``source`` bits, sign-extended to ``bits``."""
    offset = (1 << bits) - (1 << source)
    positive, negative = halves(a, source)
    if negative is None:
        return a
    moved = ValueSet(negative.low + offset, negative.high + offset, negative.stride)
    return moved if positive is None else join(positive, moved)


def subpiece(a: ValueSet, low_bit: int, bits: int) -> ValueSet:
    """{bits ``low_bit`` to ``low_bit + bits - 1`` of x}."""
    piece = _shift_down(a.low, a.high, a.stride, low_bit)
    return wrap(piece.low, piece.high, piece.stride, bits)


def leading_zeros(a: ValueSet, bits: int = 32) -> ValueSet:
    """{number of zeros above the highest one of x}."""
    return progression(bits - a.high.bit_length(), bits - a.low.bit_length(), 1)


def count_ones(a: ValueSet, bits: int = 32) -> ValueSet:
    """{number of ones in x}."""
    return progression(0, a.high.bit_length(), 1)


def any_word(bits: int) -> ValueSet:
    """All words."""
    return ANY if bits == 32 else ValueSet(0, (1 << bits) - 1, 1)


def halves(a: ValueSet, bits: int = 32) -> tuple[ValueSet | None, ValueSet | None]:
    """The members without and with the sign bit."""
    sign = 1 << (bits - 1)
    return meet(a, ValueSet(0, sign - 1, 1)), meet(a, ValueSet(sign, 2 * sign - 1, 1))


def _over_amounts(amount: ValueSet, bits: int, shift: Callable[[int], ValueSet]) -> ValueSet:
    result: ValueSet | None = None
    for n in amount:
        shifted = shift(min(n, bits))
        result = shifted if result is None else join(result, shifted)
        if n >= bits:
            break
    assert result is not None
    return result


def _shift_down(low: int, high: int, stride: int, n: int) -> ValueSet:
    """{x >> n} of integers; the stride survives if the bits shifted out are all equal."""
    return progression(low >> n, high >> n, stride >> n if stride % (1 << n) == 0 else 1)


def _shift_signed(a: ValueSet, n: int, bits: int) -> ValueSet:
    positive, negative = halves(a, bits)
    modulus = 1 << bits
    shifted_halves = []
    if positive is not None:
        shifted_halves.append(_shift_down(positive.low, positive.high, positive.stride, n))
    if negative is not None:
        down = _shift_down(negative.low - modulus, negative.high - modulus, negative.stride, n)
        shifted_halves.append(wrap(down.low, down.high, down.stride, bits))
    return (
        shifted_halves[0]
        if len(shifted_halves) == 1
        else join(shifted_halves[0], shifted_halves[1])
    )


def known_bits(a: ValueSet, bits: int) -> tuple[int, int]:
    """Bits that are one in all members, and bits that differ between members.

    All bits above the highest differing bit of the ends are common, and so are all bits below the
    lowest one of the stride.
    """
    if a.stride == 0:
        return a.low, 0
    free = (1 << (a.low ^ a.high).bit_length()) - (a.stride & -a.stride)
    return a.low & ~free, free


def _from_bits(must: int, may: int) -> ValueSet:
    """The set of words with all ones of ``must`` and no ones outside ``may``."""
    free = may & ~must
    return ValueSet(must, may, free & -free)


def _at_most(a: ValueSet, bound: int) -> ValueSet:
    return progression(a.low, min(a.high, bound), a.stride)


def _at_least(a: ValueSet, bound: int) -> ValueSet:
    if bound <= a.low or a.stride == 0:
        return a
    return progression(a.low - (a.low - bound) // a.stride * a.stride, a.high, a.stride)


def _clear_low_bits(a: ValueSet, mask: int, bits: int) -> ValueSet | None:
    """a & mask for a mask that clears only the lowest bits: monotone, so the ends map."""
    cleared = (1 << bits) - mask
    if mask == 0 or cleared & (cleared - 1):
        return None
    stride = a.stride if a.stride % cleared == 0 else cleared
    return progression(a.low & mask, a.high & mask, stride)
