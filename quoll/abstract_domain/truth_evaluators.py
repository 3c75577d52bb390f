"""The abstract meaning of ops whose results are truth values: comparisons, flags, booleans.

Evaluators have the signature described in ``quoll.abstract_domain.evaluators``.
"""

from __future__ import annotations

from typing import Any

from quoll.abstract_domain import condition as cond
from quoll.abstract_domain.abstract_machine import AbstractMachine
from quoll.abstract_domain.condition import SubtractionOverflow, TermComparison
from quoll.abstract_domain.terms import MASK, SIGN, Term
from quoll.intervals.interval_comparison import ComparisonOperator
from quoll.semantics.operations import OPERATIONS
from quoll.semantics.ops import OpCode

__all__ = [
    "BOOLEANS",
    "COMPARISONS",
    "carry",
    "compare",
    "copy_flag",
    "difference_is_zero",
    "equal_truths",
    "overflow",
    "save_operands",
    "unknown_flag",
]


def copy_flag(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """COPY to a flag."""
    m.v[out] = m.condition(m.v[a])


def unknown_flag(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """UNKNOWN of a flag, or of eight bytes."""
    m.v[out] = None


def save_operands(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Keep the operands of an addition, for its flags."""
    p, q = m.v[a], m.v[b]
    if type(p) is not int:
        p = m.term(p, (site, "a"))
    if type(q) is not int:
        q = m.term(q, (site, "b"))
    m.v[out] = (q, p) if p <= MASK else (p, q)


def overflow(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """INT_SBORROW of the operands kept in slot ``a``, whose difference is in slot ``b``.

    INT_SCARRY (``extra[1]``): adding a constant is subtracting its negative, unless it is
    the most negative word.
    """
    p, q = m.v[a]
    result = m.v[b]
    if not extra[1]:
        m.v[out] = _overflow(p, q, result)
    elif q <= MASK and q != SIGN:
        m.v[out] = _overflow(p, -q & MASK, result)
    else:
        m.v[out] = None


def _overflow(p: Term, q: Term, result: Term) -> Any:
    if p <= MASK and q <= MASK:
        return bool((p ^ q) & (p ^ (p - q)) & SIGN)
    return SubtractionOverflow(p, q, result)


def carry(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """INT_CARRY of the operands kept in slot ``a``, whose sum is in slot ``b``."""
    p, q = m.v[a]
    if q == 0:
        m.v[out] = False
    elif q <= MASK:
        m.v[out] = _comparison(ComparisonOperator.ULE, -q & MASK, p)
    else:
        m.v[out] = _comparison(ComparisonOperator.ULT, m.v[b], p)


def difference_is_zero(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """INT_EQUAL of a difference with 0, from the operands kept in slot ``a``."""
    p, q = m.v[a]
    m.v[out] = _comparison(ComparisonOperator.EQ, p, q)


def compare(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """A comparison of words; ``extra`` is the site and the relation."""
    site, relation = extra
    p, q = m.v[a], m.v[b]
    if type(p) is not int:
        p = m.term(p, (site, "a"))
    if type(q) is not int:
        q = m.term(q, (site, "b"))
    m.v[out] = _comparison(relation, p, q)


def _comparison(relation: ComparisonOperator, p: Term, q: Term) -> Any:
    if p <= MASK and q <= MASK:
        return cond.decide(TermComparison(relation, p, q), {}, {})
    return TermComparison(relation, p, q)


def equal_truths(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """INT_EQUAL or INT_NOTEQUAL (``extra[1]``) of single bytes, flags mostly."""
    negated = extra[1]
    p, q = m.v[a], m.v[b]
    if type(p) is int and type(q) is int:
        m.v[out] = _comparison(ComparisonOperator.NE if negated else ComparisonOperator.EQ, p, q)
        return
    result = cond.equivalent(_truth(p), _truth(q))
    m.v[out] = cond.negation(result) if negated else result


def _truth(value: Any) -> cond.Condition:
    """A truth value of a byte that is compared with one: 0 and 1 only."""
    if type(value) is int:
        return bool(value) if value <= 1 else None
    condition: cond.Condition = value
    return condition


def boolean_not(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """BOOL_NEGATE."""
    m.v[out] = cond.negation(m.condition(m.v[a]))


def boolean_and(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """BOOL_AND."""
    m.v[out] = cond.both(m.condition(m.v[a]), m.condition(m.v[b]))


def boolean_or(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """BOOL_OR."""
    m.v[out] = cond.either(m.condition(m.v[a]), m.condition(m.v[b]))


def boolean_xor(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """BOOL_XOR."""
    m.v[out] = cond.negation(cond.equivalent(m.condition(m.v[a]), m.condition(m.v[b])))


BOOLEANS = {
    OpCode.BOOL_NEGATE: boolean_not,
    OpCode.BOOL_XOR: boolean_xor,
    OpCode.BOOL_AND: boolean_and,
    OpCode.BOOL_OR: boolean_or,
}
COMPARISONS = {code: row.relation for code, row in OPERATIONS.items() if row.relation is not None}
