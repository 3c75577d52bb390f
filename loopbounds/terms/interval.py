"""Intervals of the unsigned values of terms, which distinguish addresses."""

from __future__ import annotations

from collections.abc import Mapping

from loopbounds.terms.bit_vectors import Term, mask
from loopbounds.terms.rewrite import parts

__all__ = ["interval"]

Interval = tuple[int, int]


def interval(
    term: Term,
    ranges: Mapping[Term, Interval] | None = None,
    found: dict[Term, Interval] | None = None,
) -> Interval:
    """Lowest and highest value of ``term``, with symbols in ``ranges`` (others: any word).

    ``found``: known intervals under the same ranges, to which the subterms' are added.
    """
    ranges, found = ranges or {}, {} if found is None else found
    if term.op == "linear" and any(t.op == "sym" and t not in ranges for t in term.args):
        return 0, mask(term.width)
    for t in (term,) if all(a in found for a in term.args) else parts(term):
        if t not in found:
            found[t] = ranges.get(t) or _apply(t, [found[a] for a in t.args])
    return found[term]


def _apply(term: Term, args: list[Interval]) -> Interval:
    everything = (0, mask(term.width))
    if term.op == "const":
        return term.value, term.value
    if term.op == "linear":
        return _sum(term, args)
    if term.op == "zext":
        return args[0]
    if term.op == "sext":
        return args[0] if args[0][1] <= mask(term.args[0].width) >> 1 else everything
    if term.op == "ite":
        return min(args[1][0], args[2][0]), max(args[1][1], args[2][1])
    if term.op == "and":
        return 0, min(high for _, high in args)
    if term.op in ("or", "xor"):
        return 0, mask(max(args[0][1].bit_length(), args[1][1].bit_length()))
    if term.op == "lshr" and args[1][0] == args[1][1] < term.width:
        return args[0][0] >> args[1][0], args[0][1] >> args[1][0]
    if term.op in ("lshr", "urem"):
        return 0, args[0][1]
    if term.op == "extract":
        if args[0][1] >> term.value <= mask(term.width):
            return args[0][0] >> term.value, args[0][1] >> term.value
        return everything
    if term.op in ("clz", "popcount"):
        return 0, term.width
    return everything


def _sum(term: Term, args: list[Interval]) -> Interval:
    """The interval of a sum, exact if no member wraps or all wrap equally often."""
    half, size = 1 << (term.width - 1), 1 << term.width
    low = high = term.value
    for factor, (first, last) in zip(term.factors, args, strict=True):
        if factor >= half:
            factor -= size
            first, last = last, first
        low += factor * first
        high += factor * last
    if low // size != high // size:
        return 0, size - 1
    return low % size, high % size
