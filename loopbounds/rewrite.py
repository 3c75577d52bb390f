"""Going through terms: what they consist of, and the same with parts replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from loopbounds import terms
from loopbounds.terms import Term, const

__all__ = ["rebuild", "size", "substitute", "symbols", "walk"]


def walk(roots: Iterable[Term]) -> list[Term]:
    """Every term that ``roots`` are built from, arguments before what uses them."""
    seen: set[Term] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term not in seen:
            seen.add(term)
            stack.extend(term.args)
    return sorted(seen, key=lambda t: t.serial)


def symbols(roots: Iterable[Term]) -> set[Term]:
    """The symbols in ``roots``."""
    return {t for t in walk(roots) if t.op == "sym"}


def substitute(term: Term, replacement: Mapping[Term, Term]) -> Term:
    """``term`` with symbols replaced, simplified again."""
    done: dict[Term, Term] = {}
    for t in walk([term]):
        done[t] = replacement.get(t, t) if not t.args else rebuild(t, [done[a] for a in t.args])
    return done[term]


def rebuild(term: Term, args: list[Term]) -> Term:
    """The operator of ``term`` on other arguments of the same widths."""
    if all(a is b for a, b in zip(term.args, args, strict=True)):
        return term
    if term.op == "linear":
        total = const(term.value, term.width)
        for factor, a in zip(term.factors, args, strict=True):
            total = terms.add(total, terms.scale(a, factor))
        return total
    if term.op == "extract":
        return terms.extract(args[0], term.value, term.width)
    if term.op in ("zext", "sext"):
        return (terms.zext if term.op == "zext" else terms.sext)(args[0], term.width)
    if term.op == "and" and term.width == 1:
        return reduce(terms.both, args)
    constructor = _CONSTRUCTORS.get(term.op)
    return terms.operation(term.op, *args) if constructor is None else constructor(*args)


_CONSTRUCTORS: dict[str, Callable[..., Term]] = {
    "concat": terms.concat,
    "eq": terms.eq,
    "ite": terms.ite,
    "not": terms.negate,
    "shl": terms.shl,
    "slt": terms.slt,
    "ult": terms.ult,
}


def size(*roots: Term) -> int:
    """How many distinct terms."""
    return len(walk(roots))
