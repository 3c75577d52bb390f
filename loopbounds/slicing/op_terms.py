"""The pure operations of p-code as bit-vector terms, one row each, as in ``semantics.operations``.

A row takes both inputs, which are equal if there is only one, and the width of the result in bits.
It gives the term, or None where no term expresses the result, which is then any word.
"""

from __future__ import annotations

from collections.abc import Callable

from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, both, const, either, ite, negate
from quoll.semantics.ops import OpCode

__all__ = ["OP_TERMS"]

Row = Callable[[Term, Term, int], Term | None]


def _word(operation: Callable[[Term, Term], Term]) -> Row:
    return lambda a, b, width: operation(a, b)


def _truth(operation: Callable[[Term, Term], Term]) -> Row:
    """A row for a predicate, whose bit becomes a byte."""
    return lambda a, b, width: terms.zext(operation(a, b), width)


def _logical(operation: Callable[[Term, Term], Term]) -> Row:
    """A row for an operation on the lowest bits of both inputs."""
    return _truth(lambda a, b: operation(terms.extract(a, 0, 1), terms.extract(b, 0, 1)))


def _operator(name: str) -> Callable[[Term, Term], Term]:
    return lambda a, b: terms.operation(name, a, b)


def _shifted(shift: Callable[[Term, Term], Term]) -> Row:
    return lambda a, b, width: shift(a, _amount(b, a.width))


def _amount(amount: Term, width: int) -> Term:
    """A shift amount in the width of the shifted word; too large stays too large."""
    if amount.width <= width:
        return terms.zext(amount, width)
    low = terms.extract(amount, 0, width)
    beyond = terms.extract(amount, width, amount.width - width)
    return ite(terms.eq(beyond, const(0, beyond.width)), low, const(-1, width))


def _divided(name: str) -> Row:
    """A row for a division by a constant; NuSMV divides by no variable."""
    return lambda a, b, width: terms.operation(name, a, b) if b.constant else None


def _rest_signed(a: Term, b: Term, width: int) -> Term | None:
    """The remainder of a signed word by a constant; its sign is the one of the word."""
    if not b.constant:
        return None
    size = b.value if b.value < 1 << b.width - 1 else (1 << b.width) - b.value
    negative = terms.slt(a, const(0, a.width))
    rest = terms.operation("urem", ite(negative, terms.neg(a), a), const(size, b.width))
    return ite(negative, terms.neg(rest), rest)


def _part(a: Term, b: Term, width: int) -> Term | None:
    if b.constant is None:
        return None
    left = min(width, a.width - 8 * b.value)
    return terms.zext(terms.extract(a, 8 * b.value, left), width) if left > 0 else None


def _count(name: str) -> Row:
    def counted(a: Term, b: Term, width: int) -> Term:
        found = terms.operation(name, a)
        return found if a.width == width else terms.extract(terms.zext(found, 64), 0, width)

    return counted


def _any_word(a: Term, b: Term, width: int) -> None:
    return None


OP_TERMS: dict[OpCode, Row] = {
    OpCode.COPY: lambda a, b, width: a,
    OpCode.INT_EQUAL: _truth(terms.eq),
    OpCode.INT_NOTEQUAL: _truth(lambda a, b: negate(terms.eq(a, b))),
    OpCode.INT_LESS: _truth(terms.ult),
    OpCode.INT_LESSEQUAL: _truth(terms.ule),
    OpCode.INT_SLESS: _truth(terms.slt),
    OpCode.INT_SLESSEQUAL: _truth(terms.sle),
    OpCode.INT_ZEXT: lambda a, b, width: terms.zext(a, width),
    OpCode.INT_SEXT: lambda a, b, width: terms.sext(a, width),
    OpCode.INT_ADD: _word(terms.add),
    OpCode.INT_SUB: _word(terms.sub),
    OpCode.INT_CARRY: _truth(terms.carry),
    OpCode.INT_SCARRY: _truth(_operator("scarry")),
    OpCode.INT_SBORROW: _truth(_operator("sborrow")),
    OpCode.INT_2COMP: lambda a, b, width: terms.neg(a),
    OpCode.INT_NEGATE: lambda a, b, width: negate(a),
    OpCode.INT_XOR: _word(_operator("xor")),
    OpCode.INT_AND: _word(_operator("and")),
    OpCode.INT_OR: _word(_operator("or")),
    OpCode.INT_LEFT: _shifted(terms.shl),
    OpCode.INT_RIGHT: _shifted(_operator("lshr")),
    OpCode.INT_SRIGHT: _shifted(_operator("ashr")),
    OpCode.INT_MULT: _word(_operator("mul")),
    OpCode.INT_DIV: _divided("udiv"),
    OpCode.INT_SDIV: _any_word,
    OpCode.INT_REM: _divided("urem"),
    OpCode.INT_SREM: _rest_signed,
    OpCode.BOOL_NEGATE: _logical(lambda a, b: negate(a)),
    OpCode.BOOL_XOR: _logical(_operator("xor")),
    OpCode.BOOL_AND: _logical(both),
    OpCode.BOOL_OR: _logical(either),
    OpCode.PIECE: _word(terms.concat),
    OpCode.SUBPIECE: _part,
    OpCode.POPCOUNT: _count("popcount"),
    OpCode.LZCOUNT: _count("clz"),
}
