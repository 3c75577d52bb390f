"""Constructors of bit-vector terms, which simplify.

Each function makes a term (``loopbounds.terms.term``) in its simplest form. Sums have a linear
normal form: a constant plus multiples of other terms, modulo 2**width. So ``(p + 8) - 4 - p`` is
the constant 4. Comparisons are built from equal, unsigned less and signed less; Boolean operators
from and, not, xor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from loopbounds.terms import arithmetic
from loopbounds.terms.term import FALSE, TRUE, Term, const, make, mask, sym

__all__ = [
    "FALSE",
    "TRUE",
    "Term",
    "add",
    "both",
    "carry",
    "combine",
    "concat",
    "conjuncts",
    "const",
    "either",
    "eq",
    "extract",
    "ite",
    "mask",
    "neg",
    "negate",
    "operation",
    "scale",
    "sext",
    "shl",
    "sle",
    "slt",
    "sub",
    "sym",
    "ule",
    "ult",
    "zext",
]


REMEMBERED = 1 << 16  # memoised results of functions that are often called with the same terms


def summands_of(term: Term) -> tuple[dict[Term, int], int]:
    """The members of a sum with their factors, and its constant."""
    if term.op == "const":
        return {}, term.value
    if term.op == "linear":
        return dict(zip(term.args, term.factors, strict=True)), term.value
    return {term: 1}, 0


def sum_of(width: int, parts: Mapping[Term, int], value: int) -> Term:
    """The sum of ``value`` and of the terms in ``parts``, each times its factor."""
    limit = mask(width)
    nonzero = [(a, f) for a, c in parts.items() if (f := c & limit)]
    value &= limit
    if not nonzero:
        return const(value, width)
    if len(nonzero) == 1:
        [(atom, factor)] = nonzero
        if value == 0 and factor == 1:
            return atom
        return make("linear", width, (atom,), value, (factor,))
    nonzero.sort(key=lambda part: part[0].serial)
    return make(
        "linear", width, tuple([a for a, _ in nonzero]), value, tuple([c for _, c in nonzero])
    )


def combine(width: int, value: int, factors: Iterable[int], args: Iterable[Term]) -> Term:
    """``value + sum(c * a for c, a in zip(factors, args))`` modulo 2**width."""
    parts: dict[Term, int] = {}
    for factor, arg in zip(factors, args, strict=True):
        more, constant = summands_of(arg)
        value += factor * constant
        for atom, times in more.items():
            parts[atom] = parts.get(atom, 0) + factor * times
    return sum_of(width, parts, value)


def add(a: Term, b: Term) -> Term:
    """Sum modulo 2**width."""
    parts, value = summands_of(a)
    more, constant = summands_of(b)
    for atom, factor in more.items():
        parts[atom] = parts.get(atom, 0) + factor
    return sum_of(a.width, parts, value + constant)


def scale(a: Term, factor: int) -> Term:
    """A constant multiple."""
    parts, value = summands_of(a)
    return sum_of(a.width, {t: c * factor for t, c in parts.items()}, value * factor)


def neg(a: Term) -> Term:
    """Two's complement."""
    return scale(a, -1)


@lru_cache(REMEMBERED)
def sub(a: Term, b: Term) -> Term:
    """Difference modulo 2**width."""
    return combine(a.width, 0, (1, -1), (a, b))


def zext(a: Term, width: int) -> Term:
    """Zero extension."""
    if width == a.width:
        return a
    if a.constant is not None:
        return const(a.value, width)
    if a.op == "zext":
        return zext(a.args[0], width)
    return make("zext", width, (a,))


def sext(a: Term, width: int) -> Term:
    """Sign extension."""
    if width == a.width:
        return a
    if a.constant is not None:
        return const(arithmetic.signed(a.value, a.width), width)
    if a.op == "zext":
        return zext(a, width)
    return make("sext", width, (a,))


def extract(a: Term, low: int, width: int) -> Term:
    """Bits ``low`` to ``low + width - 1``."""
    if low == 0 and width == a.width:
        return a
    if a.constant is not None:
        return const(a.value >> low, width)
    if a.op == "extract":
        return extract(a.args[0], a.value + low, width)
    if a.op in ("zext", "sext") and low + width <= a.args[0].width:
        return extract(a.args[0], low, width)
    if a.op == "zext" and low >= a.args[0].width:
        return const(0, width)
    if a.op == "zext" and low == 0:
        return zext(a.args[0], width)
    if a.op == "concat":
        high_part, low_part = a.args
        if low + width <= low_part.width:
            return extract(low_part, low, width)
        if low >= low_part.width:
            return extract(high_part, low - low_part.width, width)
    return make("extract", width, (a,), low)


def concat(high: Term, low: Term) -> Term:
    """``high`` above ``low``."""
    width = high.width + low.width
    if high.constant == 0:
        return zext(low, width)
    if high.constant is not None and low.constant is not None:
        return const(high.value << low.width | low.value, width)
    adjacent = high.op == low.op == "extract" and high.args == low.args
    if adjacent and high.value == low.value + low.width:
        return extract(low.args[0], low.value, width)
    return make("concat", width, (high, low))


def shl(a: Term, amount: Term) -> Term:
    """Shift left; an amount of the width or more gives 0."""
    if amount.constant is not None:
        return scale(a, 1 << amount.value) if amount.value < a.width else const(0, a.width)
    return make("shl", a.width, (a, amount))


def ite(condition: Term, a: Term, b: Term) -> Term:
    """``a`` where ``condition`` holds, else ``b``."""
    if a is b or condition is TRUE:
        return a
    if condition is FALSE:
        return b
    if condition.op == "not":
        return ite(condition.args[0], b, a)
    if a.op == "ite" and a.args[0] is condition:
        return ite(condition, a.args[1], b)
    if b.op == "ite" and b.args[0] is condition:
        return ite(condition, a, b.args[2])
    if a.width > 1 and (narrow := _same_extension(a, b)):
        return zext(ite(condition, *narrow), a.width)
    if a.width == 1:
        a, b = _where(a, condition, TRUE), _where(b, condition, FALSE)
        if a.constant is not None:
            return either(condition, b) if a is TRUE else both(negate(condition), b)
        if b.constant is not None:
            return either(negate(condition), a) if b is TRUE else both(condition, a)
    return make("ite", a.width, (condition, a, b))


def _where(a: Term, condition: Term, known: Term) -> Term:
    """``a`` simplified by ``condition`` being ``known``, TRUE or FALSE."""
    if a is condition:
        return known
    return negate(known) if a is negate(condition) else a


def _same_extension(a: Term, b: Term) -> tuple[Term, Term] | None:
    """The two operands of equal zero extensions; None for other terms."""
    bits = []
    for t in (a, b):
        if t.op == "zext" and t.args[0].width == 1:
            bits.append(t.args[0])
        elif t.constant in (0, 1):
            bits.append(const(t.value, 1))
    if len(bits) < 2 or (a.constant is not None and b.constant is not None):
        return None
    return bits[0], bits[1]


@lru_cache(REMEMBERED)
def negate(a: Term) -> Term:
    """Boolean or bitwise complement."""
    if a.constant is not None:
        return const(~a.value, a.width)
    if a.op == "not":
        return a.args[0]
    if a.width > 1:
        return add(neg(a), const(-1, a.width))
    return make("not", 1, (a,))


def conjuncts(a: Term) -> tuple[Term, ...]:
    """The conjuncts of ``a``; none for TRUE."""
    if a is TRUE:
        return ()
    return a.args if a.op == "and" and a.width == 1 else (a,)


@lru_cache(REMEMBERED)
def both(a: Term, b: Term) -> Term:
    """Conjunction; nested ones are flattened."""
    parts = list(conjuncts(a))
    for new in conjuncts(b):
        parts = _conjoin(parts, new)
    if FALSE in parts:
        return FALSE
    return _all(parts)


def _all(parts: Iterable[Term]) -> Term:
    parts = sorted(set(parts), key=lambda t: t.serial)
    if len(parts) < 2:
        return parts[0] if parts else TRUE
    return make("and", 1, tuple(parts))


def _conjoin(parts: list[Term], new: Term) -> list[Term]:
    """One more conjunct, merged with the others."""
    if new in parts:
        return parts
    opposite = negate(new)
    if opposite in parts:
        return [FALSE]
    for old in parts:
        if old.op == new.op == "not":
            merged = _not_less_and_not_equal(old.args[0], new.args[0]) or (
                _not_less_and_not_equal(new.args[0], old.args[0])
            )
            if merged is not None:
                return _conjoin([p for p in parts if p is not old], merged)
    return [*parts, new]


def _not_less_and_not_equal(less: Term, equal: Term) -> Term | None:
    """not (x < y) and not (x = y) is y < x."""
    if less.op in ("ult", "slt") and equal is _of_equal_sides(less):
        left, right = less.args
        return ult(right, left) if less.op == "ult" else slt(right, left)
    return None


@cache
def _of_equal_sides(comparison: Term) -> Term:
    """The equality of both sides of a comparison; memoised, as conjunctions need it often."""
    return eq(*comparison.args)


@lru_cache(REMEMBERED)
def either(a: Term, b: Term) -> Term:
    """Disjunction; common conjuncts are factored out."""
    first, second = conjuncts(a), conjuncts(b)
    common = set(first) & set(second)
    if common:
        rest = either(_all(set(first) - common), _all(set(second) - common))
        return both(_all(common), rest)
    for x, y in ((first, second), (second, first)):  # x or (not x and z) is x or z
        if len(x) == 1 and negate(x[0]) in y:
            return either(x[0], _all(set(y) - {negate(x[0])}))
    return negate(both(negate(a), negate(b)))


def eq(a: Term, b: Term) -> Term:
    """Equality."""
    if a.width == 1:
        return negate(operation("xor", a, b))
    parts, value = summands_of(sub(a, b))
    half = 1 << (a.width - 1)
    positive = {t: c for t, c in parts.items() if c < half}
    negative = {t: -c for t, c in parts.items() if c >= half}
    if not positive:
        positive, negative, value = negative, positive, -value
    left = sum_of(a.width, positive, 0)
    right = sum_of(a.width, negative, -value)
    if left.constant is not None:
        return TRUE if left is right else FALSE
    if right.constant is not None:
        return _eq_constant(left, right)
    return make("eq", 1, (left, right))


def _eq_constant(a: Term, b: Term) -> Term:
    if a.op == "zext":
        inner = a.args[0]
        if b.value > mask(inner.width):
            return FALSE
        if inner.width == 1:
            return inner if b.value else negate(inner)
        return eq(inner, const(b.value, inner.width))
    if a.op == "ite" and a.args[1].constant is not None and a.args[2].constant is not None:
        return ite(a.args[0], eq(a.args[1], b), eq(a.args[2], b))
    return make("eq", 1, (a, b))


def ult(a: Term, b: Term) -> Term:
    """Unsigned less."""
    if a is b or b.constant == 0 or a.constant == mask(a.width):
        return FALSE
    if a.constant is not None and b.constant is not None:
        return const(a.value < b.value, 1)
    if b.constant == 1:
        return eq(a, const(0, a.width))
    if a.constant == 0:
        return negate(eq(b, a))
    for x, y in ((a, b), (b, a)):
        if x.op == "zext" and x.args[0].width > 1 and y.constant is not None:
            inner = x.args[0]
            if y.value > mask(inner.width):
                return const(x is a, 1)
            small = const(y.value, inner.width)
            return ult(inner, small) if x is a else ult(small, inner)
    return make("ult", 1, (a, b))


def slt(a: Term, b: Term) -> Term:
    """Signed less."""
    if a is b:
        return FALSE
    if a.constant is not None and b.constant is not None:
        width = a.width
        return const(arithmetic.signed(a.value, width) < arithmetic.signed(b.value, width), 1)
    return make("slt", 1, (a, b))


def ule(a: Term, b: Term) -> Term:
    """Unsigned less or equal."""
    return negate(ult(b, a))


def sle(a: Term, b: Term) -> Term:
    """Signed less or equal."""
    return negate(slt(b, a))


def carry(a: Term, b: Term) -> Term:
    """Carry out of ``a + b``."""
    return ult(add(a, b), a)


def operation(op: str, *args: Term) -> Term:
    """An operator of ``loopbounds.terms.arithmetic`` without a constructor of its own here."""
    width = arithmetic.result_width(op, [a.width for a in args])
    if all(a.constant is not None for a in args):
        values = [a.value for a in args]
        return const(arithmetic.apply(op, values, args[0].width), width)
    if op in ("and", "or", "xor"):
        return _bitwise(op, *args)
    if op in ("lshr", "ashr") and args[1].constant == 0:
        return args[0]
    if op == "mul":
        for a, b in (args, args[::-1]):
            if b.constant is not None:
                return scale(a, b.value)
    if op == "sborrow" and args[1].constant == 0:
        return FALSE
    return make(op, width, args)


def _bitwise(op: str, a: Term, b: Term) -> Term:
    if a.width == 1 and op != "xor":
        return both(a, b) if op == "and" else either(a, b)
    if a.constant is not None:
        a, b = b, a
    ones = mask(a.width)
    if a is b:
        return const(0, a.width) if op == "xor" else a
    if b.constant is not None:
        if b.value == 0:
            return b if op == "and" else a
        if b.value == ones:
            return {"and": a, "or": b, "xor": negate(a)}[op]
        if op == "and" and a.op == "and" and a.args[1].constant is not None:
            return _bitwise("and", a.args[0], const(a.args[1].value & b.value, a.width))
        if op == "and" and a.op == "linear" and b.value & (b.value + 1) == 0:
            low = _low_bits(a, b.value)
            if low is not a:
                return operation("and", low, b)
        if (
            op == "and"
            and a.op == "zext"
            and b.value & mask(a.args[0].width) == mask(a.args[0].width)
        ):
            return a
        return make(op, a.width, (a, b))
    if a.width == 1:
        if a.op == "not":
            return negate(_bitwise("xor", a.args[0], b))
        if b.op == "not":
            return negate(_bitwise("xor", a, b.args[0]))
        less = _signed_less(a, b) or _signed_less(b, a)
        if less is not None:
            return less
    first, second = sorted((a, b), key=lambda t: t.serial)
    return make(op, a.width, (first, second))


def _low_bits(a: Term, ones: int) -> Term:
    """A smaller sum with the same low bits, those in ``ones``."""
    args = (
        x.args[0]
        if x.op == "and" and x.args[1].constant is not None and x.args[1].value & ones == ones
        else x
        for x in a.args
    )
    return combine(a.width, a.value & ones, [f & ones for f in a.factors], args)


def _signed_less(negative: Term, overflow: Term) -> Term | None:
    """N xor V after a compare as 'signed less', also for a conditional choice of two compares."""
    if negative.op == overflow.op == "ite" and negative.args[0] is overflow.args[0]:
        first, second = map(_signed_less, negative.args[1:], overflow.args[1:])
        return None if first is None or second is None else ite(negative.args[0], first, second)
    if negative.op != "slt" or negative.args[1].constant != 0:
        return None
    if overflow.op == "sborrow" and negative.args[0] is sub(*overflow.args):
        return slt(*overflow.args)
    if overflow.op == "scarry" and negative.args[0] is add(*overflow.args):
        a, b = overflow.args
        if b.constant is not None and b.value != 1 << (b.width - 1):
            return slt(a, neg(b))
    return None
