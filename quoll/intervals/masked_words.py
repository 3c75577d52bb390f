"""Sets of words by some of their bits: fields of device registers.

``MaskedWords(mask, members)`` is every word x with x & mask in ``members``: the other bits may be
anything. A strided interval cannot say that bit 3 is set, or that a field of ten bits is not all
ones. ``masked`` gives an interval where all bits are in the mask.

Operations contain the results for all members, and take ``bits``, like the
functions of ``quoll.intervals.interval_arithmetic``.

Source: the tristate numbers of Linux's verifier (Vishwanathan, Shachnai, Narayana, Nagarakatte:
"Sound, Precise, and Fast Abstract Interpretation with Tristate Numbers", CGO 2022), with an
interval in the place of known bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from quoll.intervals import interval_arithmetic as intervals
from quoll.intervals.strided_interval import ValueSet, join, leq, meet, progression

__all__ = [
    "MaskedWords",
    "Words",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_xor",
    "covers",
    "hull",
    "join_words",
    "masked",
    "shift_left",
    "shift_right",
    "with_field",
]


TRIMMED = 64  # impossible members at the ends of a set, which masks with gaps leave


@dataclass(frozen=True, slots=True)
class MaskedWords:
    """The words whose bits of ``mask`` form one of ``members``; ``masked`` makes them."""

    mask: int
    members: ValueSet

    def __contains__(self, value: int) -> bool:
        return value & self.mask in self.members

    def __str__(self) -> str:
        return f"{self.members} under {self.mask:#x}"


Words = ValueSet | MaskedWords


def masked(mask: int, members: ValueSet, bits: int = 32) -> Words:
    """The words whose bits of ``mask`` form one of ``members``; there must be one."""
    lowest = mask & -mask
    within = meet(members, progression(0, mask, lowest))
    assert within is not None, (mask, members)
    within = _possible(within, mask)
    tight = intervals.bit_and(within, ValueSet.of(mask), bits)
    within = tight if leq(tight, within) else within
    if within == progression(0, mask, lowest):
        return intervals.any_word(bits)
    return within if mask == (1 << bits) - 1 else MaskedWords(mask, within)


def _possible(members: ValueSet, mask: int) -> ValueSet:
    """``members`` less those at the ends that have bits outside ``mask``, of a few."""
    low, high, stride = members.low, members.high, members.stride
    for _ in range(TRIMMED):
        if low & ~mask and low < high:
            low += stride
        elif high & ~mask and low < high:
            high -= stride
        else:
            break
    return progression(low, high, stride)


def hull(a: Words, bits: int = 32) -> ValueSet:
    """An interval that contains the set."""
    if isinstance(a, ValueSet):
        return a
    free = (1 << bits) - 1 - a.mask
    return progression(a.members.low, a.members.high + free, gcd(free & -free, a.members.stride))


def covers(a: Words, b: Words, bits: int = 32) -> bool:
    """Whether every member of ``b`` is seen to be one of ``a``."""
    if isinstance(a, ValueSet):
        return leq(hull(b, bits), a)
    if a.mask == _mask(b, bits):
        return leq(_members(b), a.members)
    if not a.mask & ~_mask(b, bits) and leq(_under(b, a.mask, bits), a.members):
        return True
    return isinstance(b, MaskedWords) and leq(_under(hull(b, bits), a.mask, bits), a.members)


def join_words(a: Words, b: Words, bits: int = 32) -> Words:
    """A set that contains both."""
    plain = join(hull(a, bits), hull(b, bits))
    mask = _mask(a, bits) & _mask(b, bits)
    both = masked(mask, join(_under(a, mask, bits), _under(b, mask, bits)), bits)
    seen = leq(hull(both, bits), plain) and all(covers(both, one, bits) for one in (a, b))
    return both if seen else plain


def bit_and(a: Words, b: Words, bits: int = 32) -> Words:
    """{x & y}: by the field of ``a`` where ``b`` is a constant, else by known bits."""
    constant = _exact(b)
    if constant is not None:
        zeros = (1 << bits) - 1 - constant
        return masked(_mask(a, bits) | zeros, _under(a, constant, bits), bits)
    if _exact(a) is not None:
        return bit_and(b, a, bits)
    (ones, may), (others, other_may) = _known(a, bits), _known(b, bits)
    return _of_bits(ones & others, may & other_may, bits)


def with_field(a: Words, mask: int, field: int, bits: int = 32) -> Words:
    """{x in ``a`` | x & mask = field}."""
    rest = bit_and(a, ValueSet.of((1 << bits) - 1 & ~mask), bits)
    ways = bit_or(rest, ValueSet.of(field), bits), masked(mask, ValueSet.of(field), bits)
    return min(ways, key=lambda words: _size(words, bits))


def bit_or(a: Words, b: Words, bits: int = 32) -> Words:
    """{x | y}: the field of one where the other has no ones, or is known, or by known bits."""
    (ones, may), (others, other_may) = _known(a, bits), _known(b, bits)
    found = [_of_bits(ones | others, may | other_may, bits)]
    for x, known, elsewhere in ((a, others, other_may), (b, ones, may)):
        field = _under(x, ~elsewhere, bits)
        both = intervals.bit_or(field, ValueSet.of(known), bits) if known else field
        found.append(masked(_mask(x, bits) & ~elsewhere | known, both, bits))
    return min(found, key=lambda words: (_size(words, bits), _lowest(_mask(words, bits))))


def bit_xor(a: Words, b: Words, bits: int = 32) -> Words:
    """{x ^ y}: the field of ``a`` where ``b`` is a constant, else by known bits."""
    constant = _exact(b)
    if constant is not None:
        mask = _mask(a, bits)
        flipped = intervals.bit_xor(_members(a), ValueSet.of(constant & mask), bits)
        return masked(mask, flipped, bits)
    if _exact(a) is not None:
        return bit_xor(b, a, bits)
    (ones, may), (others, other_may) = _known(a, bits), _known(b, bits)
    known = (1 << bits) - 1 & ~(may & ~ones | other_may & ~others)
    return masked(known, ValueSet.of((ones ^ others) & known), bits)


def bit_not(a: Words, bits: int = 32) -> Words:
    """{~x}."""
    mask, members = _mask(a, bits), _members(a)
    return masked(mask, ValueSet(mask - members.high, mask - members.low, members.stride), bits)


def shift_left(a: Words, amount: int, bits: int = 32) -> Words:
    """{x << n}."""
    remaining = (1 << bits) - 1 >> amount
    field = _under(a, _mask(a, bits) & remaining, bits)
    moved = ValueSet(field.low << amount, field.high << amount, field.stride << amount)
    zeros = (1 << min(amount, bits)) - 1
    return masked((_mask(a, bits) & remaining) << amount | zeros, moved, bits)


def shift_right(a: Words, amount: int, bits: int = 32) -> Words:
    """{x >> n}, zeros shifted in."""
    ones = (1 << bits) - 1
    moved = intervals.shift_right(_members(a), ValueSet.of(amount), bits)
    return masked(_mask(a, bits) >> amount | ones & ~(ones >> amount), moved, bits)


def _known(a: Words, bits: int) -> tuple[int, int]:
    """The bits that are one in all members, and the bits that may be one in some."""
    ones, free = intervals.known_bits(_members(a), bits)
    mask = _mask(a, bits)
    return ones & mask, (1 << bits) - 1 & ~mask | (ones | free) & mask


def _of_bits(ones: int, may: int, bits: int) -> Words:
    """The words with all bits of ``ones`` and no others but ``may``."""
    return masked((ones | ~may) & (1 << bits) - 1, ValueSet.of(ones), bits)


def _exact(a: Words) -> int | None:
    return a.exact if isinstance(a, ValueSet) else None


def _mask(a: Words, bits: int) -> int:
    return (1 << bits) - 1 if isinstance(a, ValueSet) else a.mask


def _members(a: Words) -> ValueSet:
    return a if isinstance(a, ValueSet) else a.members


def _under(a: Words, mask: int, bits: int) -> ValueSet:
    """{x & mask} of the known bits of a member."""
    mask &= _mask(a, bits)
    if intervals.preserves_bits(_members(a), mask, bits):
        return _members(a)
    return intervals.bit_and(_members(a), ValueSet.of(mask), bits)


def _lowest(mask: int) -> int:
    return mask & -mask


def _size(a: Words, bits: int) -> int:
    """The number of members, at most."""
    return _members(a).size << (bits - _mask(a, bits).bit_count())
