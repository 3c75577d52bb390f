"""Sums as terms: a constant plus multiples of other terms, modulo 2**width.

So ``(p + 8) - 4 - p`` is the constant 4 without further ado.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loopbounds.terms.term import Term, const, make, mask

__all__ = ["add", "combine", "neg", "parts_of", "scale", "sub", "sum_of"]


def parts_of(term: Term) -> tuple[dict[Term, int], int]:
    """What a sum consists of: the other terms with their factors, and the constant."""
    if term.op == "const":
        return {}, term.value
    if term.op == "linear":
        return dict(zip(term.args, term.factors, strict=True)), term.value
    return {term: 1}, 0


def sum_of(width: int, parts: Mapping[Term, int], value: int) -> Term:
    """``value`` and the members of ``parts``, each times its factor."""
    limit = mask(width)
    kept = [(a, f) for a, c in parts.items() if (f := c & limit)]
    value &= limit
    if not kept:
        return const(value, width)
    if len(kept) == 1:
        [(atom, factor)] = kept
        if value == 0 and factor == 1:
            return atom
        return make("linear", width, (atom,), value, (factor,))
    kept.sort(key=lambda part: part[0].serial)
    return make("linear", width, tuple([a for a, _ in kept]), value, tuple([c for _, c in kept]))


def combine(width: int, value: int, factors: Iterable[int], args: Iterable[Term]) -> Term:
    """``value + sum(c * a for c, a in zip(factors, args))`` modulo 2**width."""
    parts: dict[Term, int] = {}
    for factor, arg in zip(factors, args, strict=True):
        more, constant = parts_of(arg)
        value += factor * constant
        for atom, times in more.items():
            parts[atom] = parts.get(atom, 0) + factor * times
    return sum_of(width, parts, value)


def add(a: Term, b: Term) -> Term:
    """Sum modulo 2**width."""
    parts, value = parts_of(a)
    more, constant = parts_of(b)
    for atom, factor in more.items():
        parts[atom] = parts.get(atom, 0) + factor
    return sum_of(a.width, parts, value + constant)


def scale(a: Term, factor: int) -> Term:
    """A constant multiple."""
    parts, value = parts_of(a)
    return sum_of(a.width, {t: c * factor for t, c in parts.items()}, value * factor)


def neg(a: Term) -> Term:
    """Two's complement."""
    return scale(a, -1)


def sub(a: Term, b: Term) -> Term:
    """Difference modulo 2**width."""
    return combine(a.width, 0, (1, -1), (a, b))
