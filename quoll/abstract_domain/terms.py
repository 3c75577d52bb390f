"""Terms: the value of one word in an abstract state, as ``symbol + offset``.

A term is an int, ``symbol << 32 | offset``. Symbol 0 is no symbol: the term is a constant. Two
places that hold terms of one symbol hold words that differ by a known constant; this is how
copies, saved registers and stack addresses are followed, and how a branch on one place refines
the others.

Symbols below ``RIGID`` stand for the same word throughout an analysis: the registers at its
entry, and stacks (``STACKS`` on: a constant loaded into sp). All others are existential: a state
asserts that words exist for its symbols, within its facts.

A fact is the set of words of a symbol: a ``ValueSet``; ``RotatedTerm`` for a set that wraps around
zero, as -4 to 2 does; ``MaskedWords`` for a set of which only some bits are known; ``StatusWord``
for one whose lowest bits are a processor mode; or ``AnchoredTerm(base, set)`` for a rigid base plus
a member of the set.
``AnchoredTerm(TAINT, ANY)`` is any word, possibly computed from a stack address; only words without
that mark are "unknown pointers" in the sense of S1 (rule 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from quoll.intervals import interval_arithmetic, masked_words
from quoll.intervals.masked_words import MaskedWords, Words
from quoll.intervals.strided_interval import (
    ANY,
    REMEMBERED,
    ValueSet,
    join,
    leq,
    progression,
    widen,
)

__all__ = [
    "BIAS",
    "ENTRY_SP",
    "MASK",
    "RIGID",
    "STACKS",
    "TAINT",
    "TAINTED",
    "AnchoredTerm",
    "Fact",
    "Facts",
    "RotatedTerm",
    "StatusWord",
    "Term",
    "add_facts",
    "covers",
    "describe",
    "entry_symbol",
    "exact_term",
    "fewer",
    "is_marked",
    "is_stack",
    "join_facts",
    "known_bits",
    "multiple_fact",
    "on_stack",
    "plain",
    "plus",
    "rotated",
    "scale_fact",
    "shift_fact",
    "subtract_facts",
    "union",
    "widen_facts",
]

Term = int
MASK = (1 << 32) - 1
SIGN = 1 << 31
BIAS = 1 << 31

TAINT = 1  # as a base: an unknown stack address
ENTRY = 2  # ENTRY + r: register r at entry
ENTRY_SP = ENTRY + 13
STACKS = 32  # STACKS + i: the i-th constant that was loaded into sp
RIGID = 1024


@dataclass(frozen=True, slots=True)
class AnchoredTerm:
    """``base`` (a rigid symbol) plus a member of ``offsets``, less ``BIAS``, modulo 2**32.

    With the bias an interval may reach from below the base to above it.
    """

    base: int
    offsets: ValueSet


@dataclass(frozen=True, slots=True)
class RotatedTerm:
    """``origin`` plus a member of ``members``, modulo 2**32: neither all above nor all below 0."""

    origin: int
    members: ValueSet


@dataclass(frozen=True, slots=True)
class StatusWord:
    """The words of ``rest`` whose five lowest bits are ``mode``, a mode without a known number."""

    mode: int
    rest: Words


Fact = ValueSet | AnchoredTerm | RotatedTerm | MaskedWords | StatusWord
Facts = Mapping[int, Fact]  # facts of existential symbols; a symbol without one may be any word
TAINTED = AnchoredTerm(TAINT, ANY)


def entry_symbol(register: int) -> int:
    """The symbol of ``register`` at entry."""
    return ENTRY + register


def is_stack(symbol: int) -> bool:
    """Whether ``symbol`` is an address in a stack: sp at entry, or a constant loaded into sp."""
    return symbol == ENTRY_SP or STACKS <= symbol < RIGID


def plus(term: Term, constant: int) -> Term:
    """The term of the word ``constant`` above ``term``."""
    return term & ~MASK | (term + constant) & MASK


def describe(term: Term, facts: Facts) -> Fact:
    """The words that ``term`` may be."""
    symbol = term >> 32
    return _one_word(term) if symbol < RIGID else shift_fact(facts.get(symbol, ANY), term & MASK)


@lru_cache(maxsize=REMEMBERED)
def _one_word(term: Term) -> Fact:
    """A constant, or a rigid symbol plus a constant."""
    symbol, word = term >> 32, term & MASK
    if symbol == 0:
        return ValueSet(word, word, 0)
    return AnchoredTerm(symbol, ValueSet(word ^ BIAS, word ^ BIAS, 0))


def shift_fact(fact: Fact, offset: int) -> Fact:
    """``fact`` with ``offset`` added to every member."""
    return fact if offset == 0 or fact is ANY or fact is TAINTED else _shifted(fact, offset)


@lru_cache(maxsize=REMEMBERED)
def _shifted(fact: Fact, offset: int) -> Fact:
    if isinstance(fact, AnchoredTerm):
        return AnchoredTerm(fact.base, interval_arithmetic.add(fact.offsets, ValueSet.of(offset)))
    if isinstance(fact, RotatedTerm):
        return rotated(fact.origin + offset & MASK, fact.members)
    return rotated(offset, plain(fact))


def rotated(origin: int, members: ValueSet) -> Fact:
    """{origin + x}, as a ``ValueSet`` if it does not wrap around zero part of the way."""
    if origin + members.low > MASK or origin + members.high <= MASK:
        return interval_arithmetic.add(members, ValueSet(origin, origin, 0))
    return ANY if members == ANY else RotatedTerm(origin, members)


def plain(fact: Fact) -> ValueSet:
    """The words of ``fact`` as a ``ValueSet``; any word if they are relative to a base."""
    if isinstance(fact, ValueSet):
        return fact
    if isinstance(fact, StatusWord):
        return masked_words.hull(fact.rest)
    if isinstance(fact, MaskedWords):
        return masked_words.hull(fact)
    if isinstance(fact, RotatedTerm):
        return interval_arithmetic.add(fact.members, ValueSet(fact.origin, fact.origin, 0))
    return ANY


def add_facts(a: Fact, b: Fact) -> Fact:
    """The sums of two facts without a base."""
    (low, width, stride), (other, other_width, other_stride) = _extent(a), _extent(b)
    if width + other_width > MASK:
        return interval_arithmetic.add(plain(a), plain(b))
    steps = progression(0, width + other_width, gcd(stride, other_stride))
    return rotated(low + other & MASK, steps)


def subtract_facts(a: Fact, b: Fact) -> Fact:
    """The differences of two facts without a base."""
    (low, width, stride), (other, other_width, other_stride) = _extent(a), _extent(b)
    if width + other_width > MASK:
        return interval_arithmetic.subtract(plain(a), plain(b))
    steps = progression(0, width + other_width, gcd(stride, other_stride))
    return rotated(low - other - other_width & MASK, steps)


def scale_fact(a: Fact, shift: int) -> Fact:
    """The members times 2**shift."""
    scaled = multiple_fact(a, 1 << shift, 0)
    if scaled is not None:
        return scaled
    return interval_arithmetic.shift_left(plain(a), ValueSet.of(shift))


def multiple_fact(a: Fact, factor: int, constant: int) -> Fact | None:
    """The members times ``factor`` plus ``constant``; None for a base, or for 2**32 words."""
    if isinstance(a, AnchoredTerm):
        return None
    low, width, stride = _extent(a)
    if width * factor > MASK:
        return None
    steps = progression(0, width * factor, stride * factor)
    return rotated(low * factor + constant & MASK, steps)


def fewer(a: Fact, b: Fact) -> Fact:
    """The one of two facts about one word that has fewer members."""
    if isinstance(b, AnchoredTerm):
        return b
    return a if _members(a) <= _members(b) else b


def _members(fact: Fact) -> int:
    _, width, stride = _extent(fact)
    return width // stride + 1 if stride else 1


def _extent(fact: Fact) -> tuple[int, int, int]:
    """The first member, the distance to the last, and the stride, going up from the first."""
    if isinstance(fact, RotatedTerm):
        members, origin = fact.members, fact.origin
        return origin + members.low & MASK, members.high - members.low, members.stride
    members = plain(fact)
    return members.low, members.high - members.low, members.stride


def exact_term(fact: Fact) -> Term | None:
    """The single member of ``fact``: a constant or a rigid symbol plus a constant; else None."""
    if isinstance(fact, AnchoredTerm):
        offset = fact.offsets.exact
        return None if offset is None else fact.base << 32 | offset ^ BIAS
    return fact.exact if isinstance(fact, ValueSet) else None


def covers(a: Fact, b: Fact) -> bool:
    """Whether ``a`` contains every member of ``b``, with a mark where ``b`` may need one."""
    if isinstance(a, AnchoredTerm):
        if a.base == TAINT:
            return True
        return isinstance(b, AnchoredTerm) and a.base == b.base and leq(b.offsets, a.offsets)
    if isinstance(b, AnchoredTerm):
        return a == ANY and not on_stack(b)
    if isinstance(a, StatusWord):
        same = isinstance(b, StatusWord) and b.mode == a.mode
        return same and masked_words.covers(a.rest, known_bits(b))
    if isinstance(a, RotatedTerm):
        return leq(plain(shift_fact(b, -a.origin & MASK)), a.members)
    if isinstance(a, MaskedWords):
        return masked_words.covers(a, known_bits(b))
    return leq(plain(b), a)


def known_bits(fact: Fact) -> Words:
    """The words of ``fact`` by some of their bits; any word if they are relative to a base."""
    if isinstance(fact, StatusWord):
        return fact.rest
    return fact if isinstance(fact, MaskedWords) else plain(fact)


def union(a: Fact, b: Fact) -> Fact:
    """A fact that covers both."""
    return ANY if a is ANY is b else _joined(a, b)


@lru_cache(maxsize=REMEMBERED)
def _joined(a: Fact, b: Fact) -> Fact:
    if isinstance(a, AnchoredTerm) or isinstance(b, AnchoredTerm):
        if isinstance(a, AnchoredTerm) and isinstance(b, AnchoredTerm) and a.base == b.base:
            return AnchoredTerm(a.base, join(a.offsets, b.offsets))
        return TAINTED if on_stack(a) or on_stack(b) else ANY
    if isinstance(a, StatusWord) and isinstance(b, StatusWord) and a.mode == b.mode:
        return StatusWord(a.mode, masked_words.join_words(a.rest, b.rest))
    if isinstance(a, StatusWord | MaskedWords) or isinstance(b, StatusWord | MaskedWords):
        return masked_words.join_words(known_bits(a), known_bits(b))
    if isinstance(a, RotatedTerm):
        return rotated(a.origin, join(a.members, plain(shift_fact(b, -a.origin & MASK))))
    return union(b, a) if isinstance(b, RotatedTerm) else join(a, b)


def join_facts(a: Fact | None, b: Fact | None) -> Fact:
    """``union`` of facts that may be missing."""
    return union(ANY if a is None else a, ANY if b is None else b)


def widen_facts(old: Fact, new: Fact, thresholds: Sequence[int]) -> Fact:
    """A fact that covers both; chains of it are finite."""
    if isinstance(old, ValueSet) and isinstance(new, ValueSet):
        return widen(old, new, thresholds)
    if isinstance(old, RotatedTerm) and not isinstance(new, AnchoredTerm):
        moved = plain(shift_fact(new, -old.origin & MASK))
        return rotated(old.origin, widen(old.members, moved, ()))
    both = union(old, new)
    if isinstance(both, StatusWord):
        return both if both == old else StatusWord(both.mode, ANY)
    if not isinstance(both, AnchoredTerm) or not isinstance(old, AnchoredTerm):
        if isinstance(both, MaskedWords) or isinstance(old, MaskedWords | StatusWord):
            return both if both == old or isinstance(both, AnchoredTerm) else ANY
        return ANY if isinstance(both, RotatedTerm) else both
    return AnchoredTerm(both.base, widen(old.offsets, both.offsets, thresholds))


def on_stack(fact: Fact) -> bool:
    """Whether the words may be computed from a stack address."""
    return isinstance(fact, AnchoredTerm) and (fact.base == TAINT or is_stack(fact.base))


def is_marked(cell: object, facts: Facts) -> bool:
    """Whether a cell may hold a stack address; a place without a record does not."""
    return type(cell) is int and on_stack(describe(cell, facts))
