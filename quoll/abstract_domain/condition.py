"""Conditions: truth values as comparisons of terms, so that a branch refines its operands.

A condition is True, False, None (unknown), a ``TermComparison``, an ``SubtractionOverflow``, or a
``ConditionPair`` of conditions. "Negative == overflow" of one subtraction is a signed comparison.
This and the other combinations that condition fields test are simplified when they are built, so
that nearly every branch tests one comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from quoll.abstract_domain.terms import (
    BIAS,
    MASK,
    RIGID,
    TAINT,
    AnchoredTerm,
    Fact,
    Facts,
    RotatedTerm,
    StatusWord,
    Term,
    describe,
    join_facts,
    known_bits,
    plain,
    rotated,
)
from quoll.intervals import interval_arithmetic
from quoll.intervals.interval_comparison import ComparisonOperator, holds, refine
from quoll.intervals.masked_words import MaskedWords
from quoll.intervals.strided_interval import ANY, ValueSet, meet

__all__ = [
    "Condition",
    "ConditionPair",
    "Stacks",
    "SubtractionOverflow",
    "TermComparison",
    "assume",
    "both",
    "decide",
    "either",
    "equivalent",
    "negation",
    "restricted",
    "symbols",
    "words",
]

Stacks: TypeAlias = Mapping[int, int]  # rigid symbol of a stack -> its constant base


class TermComparison(NamedTuple):
    """Term ``a`` is in ``relation`` to term ``b``."""

    relation: ComparisonOperator
    a: Term
    b: Term


class SubtractionOverflow(NamedTuple):
    """a - b overflows as a signed subtraction whose result is the term ``result``."""

    a: Term
    b: Term
    result: Term


class ConditionPair(NamedTuple):
    """Both conditions hold, or (``disjunction``) at least one does."""

    disjunction: bool
    p: Condition
    q: Condition


Condition: TypeAlias = bool | TermComparison | SubtractionOverflow | ConditionPair | None

EQ, NE, ULT, ULE, SLT, SLE = ComparisonOperator
ALL_BUT_ONE = ValueSet(0, MASK - 1, 1)
_SAME_OPERANDS = {EQ: NE, NE: EQ}
_EXCHANGED = {ULT: ULE, ULE: ULT, SLT: SLE, SLE: SLT}


def negation(condition: Condition) -> Condition:
    """The opposite of ``condition``; None if that is not expressible."""
    if isinstance(condition, bool):
        return not condition
    if isinstance(condition, TermComparison):
        relation, a, b = condition
        if relation in _SAME_OPERANDS:
            return TermComparison(_SAME_OPERANDS[relation], a, b)
        return TermComparison(_EXCHANGED[relation], b, a)
    if isinstance(condition, ConditionPair):
        return _pair(not condition.disjunction, negation(condition.p), negation(condition.q))
    return None


def both(p: Condition, q: Condition) -> Condition:
    """The condition p and q."""
    return _pair(False, p, q)


def either(p: Condition, q: Condition) -> Condition:
    """The condition p or q."""
    return _pair(True, p, q)


def _pair(disjunction: bool, p: Condition, q: Condition) -> Condition:
    for this, other in ((p, q), (q, p)):
        if isinstance(this, bool):
            return this if this is disjunction else other
    if p is None and q is None:
        return None
    if isinstance(p, TermComparison) and isinstance(q, TermComparison):
        merged = _merge(p, q, disjunction) or _merge(q, p, disjunction)
        if merged is not None:
            return merged
    return ConditionPair(disjunction, p, q)


def _merge(p: TermComparison, q: TermComparison, disjunction: bool) -> TermComparison | None:
    """One comparison for a pair: a < b or a = b; a <= b and a != b."""
    if disjunction:
        if q.relation is not EQ or p.relation not in (ULT, SLT):
            return None
    elif q.relation is not NE or p.relation not in (ULE, SLE):
        return None
    if {p.a, p.b} != {q.a, q.b}:
        return None
    return TermComparison(_EXCHANGED[p.relation], p.a, p.b)


def equivalent(p: Condition, q: Condition) -> Condition:
    """The condition p == q."""
    for this, other in ((p, q), (q, p)):
        if isinstance(this, bool):
            return other if this else negation(other)
        if isinstance(this, SubtractionOverflow) and isinstance(other, TermComparison):
            if other == TermComparison(SLT, this.result, 0):
                return TermComparison(SLE, this.b, this.a)
            if other == TermComparison(SLE, 0, this.result):
                return TermComparison(SLT, this.a, this.b)
    return None


def symbols(condition: Condition) -> tuple[int, ...]:
    """The symbols that ``condition`` mentions."""
    if isinstance(condition, TermComparison):
        return condition.a >> 32, condition.b >> 32
    if isinstance(condition, SubtractionOverflow):
        return condition.a >> 32, condition.b >> 32, condition.result >> 32
    if isinstance(condition, ConditionPair):
        return symbols(condition.p) + symbols(condition.q)
    return ()


def words(fact: Fact, stacks: Stacks) -> ValueSet:
    """The words of ``fact``: plus its base if known; any word if the base is unknown."""
    if not isinstance(fact, AnchoredTerm):
        return plain(fact)
    base = stacks.get(fact.base)
    if base is None:
        return ANY
    return interval_arithmetic.subtract(fact.offsets, ValueSet.of(BIAS - base))


def decide(condition: Condition, facts: Facts, stacks: Stacks) -> bool | None:
    """Whether ``condition`` holds in all, in none (False), or in some of the states (None)."""
    if condition is None or isinstance(condition, bool):
        return condition
    if isinstance(condition, TermComparison):
        return _decide_comparison(condition, facts, stacks)
    if isinstance(condition, ConditionPair):
        p, q = decide(condition.p, facts, stacks), decide(condition.q, facts, stacks)
        if p is condition.disjunction or q is condition.disjunction:
            return condition.disjunction
        return None if p is None or q is None else p
    return None


def _decide_comparison(condition: TermComparison, facts: Facts, stacks: Stacks) -> bool | None:
    relation, a, b = condition
    if a == b:
        return relation in (EQ, ULE, SLE)
    if a >> 32 == b >> 32 and a >> 32:
        return None if relation not in _SAME_OPERANDS else relation is NE
    left, right = describe(a, facts), describe(b, facts)
    if relation in _SAME_OPERANDS and _share_base(left, right):
        assert isinstance(left, AnchoredTerm)
        assert isinstance(right, AnchoredTerm)
        return holds(relation, left.offsets, right.offsets)
    if relation in _SAME_OPERANDS and _differ(left, right):
        return relation is NE
    return holds(relation, words(left, stacks), words(right, stacks))


def _differ(a: Fact, b: Fact) -> bool:
    """Whether one of them is a constant that is no member of the other.

    By known bits, or because the other wraps around zero without it.
    """
    for fact, other in ((a, b), (b, a)):
        if not isinstance(other, ValueSet) or other.exact is None:
            continue
        if isinstance(fact, MaskedWords | StatusWord):
            return other.exact not in known_bits(fact)
        if isinstance(fact, RotatedTerm):
            return other.exact - fact.origin & MASK not in fact.members
    return False


def assume(condition: Condition, facts: Facts, stacks: Stacks) -> Facts | None:
    """The facts when ``condition`` holds; None if it cannot."""
    if condition is None or isinstance(condition, SubtractionOverflow):
        return facts
    if isinstance(condition, bool):
        return facts if condition else None
    if isinstance(condition, TermComparison):
        return _assume_comparison(condition, facts, stacks)
    if condition.disjunction:
        first = assume(condition.p, facts, stacks)
        second = assume(condition.q, facts, stacks)
        if first is None or second is None:
            return second if first is None else first
        return _either_facts(facts, first, second)
    first = assume(condition.p, facts, stacks)
    return None if first is None else assume(condition.q, first, stacks)


def _either_facts(before: Facts, first: Facts, second: Facts) -> Facts:
    """The facts common to both outcomes, each of which refines ``before``."""
    result = dict(before)
    for symbol in first.keys() & second.keys():
        result[symbol] = join_facts(first[symbol], second[symbol])
    return result


def _assume_comparison(condition: TermComparison, facts: Facts, stacks: Stacks) -> Facts | None:
    relation, a, b = condition
    if a >> 32 == b >> 32:
        return None if _decide_comparison(condition, facts, stacks) is False else facts
    left_fact, right_fact = describe(a, facts), describe(b, facts)
    if relation in _SAME_OPERANDS and _share_base(left_fact, right_fact):
        return _assume_offsets(condition, left_fact, right_fact, facts)
    if relation is EQ and _differ(left_fact, right_fact):
        return None
    left, right = words(left_fact, stacks), words(right_fact, stacks)
    refined = refine(relation, left, right)
    if refined is None:
        return None
    after: Facts | None = facts
    for term, before, refined_value in ((a, left, refined[0]), (b, right, refined[1])):
        if after is not None and refined_value != before:
            after = _restrict(term, refined_value, after, stacks)
    if relation is NE and after is facts:
        return _all_but(a, right.exact, _all_but(b, left.exact, facts))
    return after


def _all_but(term: Term, word: int | None, facts: Facts) -> Facts:
    """The facts when the word of ``term``, of which nothing was known, is not ``word``."""
    symbol, offset = term >> 32, term & MASK
    if word is None or symbol < RIGID or facts.get(symbol, ANY) != ANY:
        return facts
    return {**facts, symbol: rotated(word - offset + 1 & MASK, ALL_BUT_ONE)}


def _share_base(a: Fact, b: Fact) -> bool:
    both_anchored = isinstance(a, AnchoredTerm) and isinstance(b, AnchoredTerm)
    return both_anchored and a.base == b.base != TAINT  # type: ignore[union-attr]


def _assume_offsets(condition: TermComparison, a: Fact, b: Fact, facts: Facts) -> Facts | None:
    """Refine two words with a common base by comparing their offsets."""
    assert isinstance(a, AnchoredTerm)
    assert isinstance(b, AnchoredTerm)
    refined = refine(condition.relation, a.offsets, b.offsets)
    if refined is None:
        return None
    after = dict(facts)
    for term, refined_value in ((condition.a, refined[0]), (condition.b, refined[1])):
        symbol = term >> 32
        if symbol >= RIGID:
            offsets = interval_arithmetic.subtract(refined_value, ValueSet.of(term & MASK))
            after[symbol] = AnchoredTerm(a.base, offsets)
    return after


def restricted(term: Term, known: ValueSet, facts: Facts, stacks: Stacks) -> Facts | None:
    """The facts when the word of ``term`` is also in ``known``; None if that is impossible."""
    narrowed = meet(words(describe(term, facts), stacks), known)
    return None if narrowed is None else _restrict(term, narrowed, facts, stacks)


def _restrict(term: Term, narrowed: ValueSet, facts: Facts, stacks: Stacks) -> Facts | None:
    """The facts when the word of ``term`` is in ``narrowed``."""
    symbol, offset = term >> 32, term & MASK
    if symbol < RIGID:
        return facts
    fact = facts.get(symbol, ANY)
    if isinstance(fact, AnchoredTerm):
        base = stacks.get(fact.base)
        if base is None:
            return facts
        moved = interval_arithmetic.subtract(narrowed, ValueSet.of(base + offset - BIAS))
        remaining = meet(fact.offsets, moved)
        restricted: Fact | None = None if remaining is None else AnchoredTerm(fact.base, remaining)
    elif fact == ANY:
        restricted = rotated(-offset & MASK, narrowed)
    elif isinstance(fact, RotatedTerm):
        moved = plain(rotated(-offset - fact.origin & MASK, narrowed))
        remaining = meet(fact.members, moved)
        restricted = None if remaining is None else rotated(fact.origin, remaining)
    elif isinstance(fact, MaskedWords | StatusWord):
        word = None if narrowed.exact is None else narrowed.exact - offset & MASK
        if word is not None and word not in known_bits(fact):
            return None
        restricted = fact if word is None else ValueSet(word, word, 0)
    else:
        restricted = meet(fact, interval_arithmetic.subtract(narrowed, ValueSet(offset, offset, 0)))
    if restricted is None:
        return None
    return {**facts, symbol: restricted}
