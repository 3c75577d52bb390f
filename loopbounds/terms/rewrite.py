"""Traversal of terms: their subterms and symbols, and substitution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, reduce
from operator import attrgetter, is_

from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term

__all__ = ["parts", "rebuild", "size", "substitute", "symbols", "symbols_of", "walk"]


def walk(roots: Iterable[Term]) -> list[Term]:
    """Every subterm of ``roots``, arguments before the terms that use them."""
    return sorted(_below(roots), key=attrgetter("serial"))


def _below(roots: Iterable[Term]) -> set[Term]:
    seen = set(roots)
    stack = list(seen)
    while stack:
        for part in stack.pop().args:
            if part not in seen:
                seen.add(part)
                stack.append(part)
    return seen


def symbols(roots: Iterable[Term]) -> set[Term]:
    """The symbols in ``roots``."""
    return set().union(*map(symbols_of, roots))


@cache
def symbols_of(term: Term) -> tuple[Term, ...]:
    """The symbols in one term, in the order of their creation."""
    return tuple(t for t in walk([term]) if t.op == "sym")


def substitute(term: Term, replacement: Mapping[Term, Term]) -> Term:
    """``term`` with symbols replaced, simplified again."""
    if not term.args:
        return replacement.get(term, term)
    if replacement.keys().isdisjoint(symbols_of(term)):
        return term
    done: dict[Term, Term] = {}
    for t in parts(term):
        done[t] = rebuild(t, [done[a] for a in t.args]) if t.args else replacement.get(t, t)
    return done[term]


@lru_cache(1 << 14)
def parts(term: Term) -> tuple[Term, ...]:
    """Every subterm of a term, the term itself last."""
    return tuple(walk([term]))


def rebuild(term: Term, args: list[Term]) -> Term:
    """The operator of ``term`` on other arguments of the same widths."""
    if all(map(is_, term.args, args)):
        return term
    if term.op == "linear":
        return terms.combine(term.width, term.value, term.factors, args)
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


@cache
def size(*roots: Term) -> int:
    """The number of distinct subterms."""
    return len(_below(roots))
