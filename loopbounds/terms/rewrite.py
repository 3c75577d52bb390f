"""Traversal of terms: their subterms and symbols, and substitution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, reduce
from operator import attrgetter, is_

from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term

__all__ = [
    "Substitution",
    "parts",
    "rebuild",
    "size",
    "substitute",
    "symbols",
    "symbols_of",
    "walk",
]


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


class Substitution:
    """Replaces symbols in terms, which are simplified again; each common subterm once."""

    def __init__(self, replacement: Mapping[Term, Term]) -> None:
        self._replacement, self._done = replacement, dict[Term, Term]()

    def __call__(self, term: Term) -> Term:
        """``term`` with symbols replaced."""
        if not term.args:
            return self._replacement.get(term, term)
        known = self._done.get(term)
        if known is not None:
            return known
        if self._replacement.keys().isdisjoint(symbols_of(term)):
            return term
        for t in self._new(term):
            self._done[t] = (
                rebuild(t, [self._done[a] for a in t.args])
                if t.args
                else self._replacement.get(t, t)
            )
        return self._done[term]

    def _new(self, term: Term) -> list[Term]:
        """The subterms that no earlier term had, arguments first."""
        seen, stack = {term}, [term]
        while stack:
            for part in stack.pop().args:
                if part not in seen and part not in self._done:
                    seen.add(part)
                    stack.append(part)
        return sorted(seen, key=attrgetter("serial"))


def substitute(term: Term, replacement: Mapping[Term, Term]) -> Term:
    """``term`` with symbols replaced, simplified again."""
    return Substitution(replacement)(term)


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
