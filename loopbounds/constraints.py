"""What a model takes of what is known where a loop is entered: ranges and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Set

from loopbounds import rewrite, terms
from loopbounds.terms import TRUE, Term, const
from quoll.valueset import ANY, ValueSet

__all__ = ["relevant", "says_all", "within"]

FACTS = 40  # conditions that a model takes
SMALL = 2000  # terms in one of them


def within(term: Term, values: ValueSet) -> list[Term]:
    """Membership in a strided interval, as far as bounds and powers of two express it."""
    if values == ANY or term.constant is not None or term.width != 32:
        return []
    if values.exact is not None:
        return [terms.eq(term, const(values.low, 32))]
    found = [terms.ule(const(values.low, 32), term), terms.ule(term, const(values.high, 32))]
    step = values.stride & -values.stride
    if step > 1:
        offset = terms.operation("and", term, const(step - 1, 32))
        found.append(terms.eq(offset, const(values.low & (step - 1), 32)))
    return [c for c in found if c is not TRUE]


def relevant(conditions: list[Term], wanted: set[Term]) -> list[Term]:
    """Conditions that share symbols with ``wanted``, or with each other in a chain to it."""
    wanted = set(wanted)
    kept: list[Term] = []
    small = [c for whole in conditions for c in terms.conjuncts(whole)]
    left = [c for c in small if c.constant is None and rewrite.size(c) <= SMALL]
    for _ in range(2):
        for c in list(left):
            used = rewrite.symbols([c])
            if used & wanted and len(kept) < FACTS:
                kept.append(c)
                left.remove(c)
                wanted |= used
    return kept


def says_all(
    constraints: Set[Term], way_in: Iterable[Term], parameters: Set[Term], loaded: Set[Term]
) -> bool:
    """Whether ``constraints`` are all that the way into a loop says of the ``parameters``.

    Of words ``loaded`` from memory it says more where there are several: they may be one.
    """
    parts = {c for condition in way_in for c in terms.conjuncts(condition)}
    if any(rewrite.symbols([c]) & parameters for c in parts - constraints):
        return False
    return not parameters & loaded or len((rewrite.symbols(parts) | parameters) & loaded) == 1
