"""The most executions of an edge for each entry of a loop, by a word that only the edge changes.

Let T be the condition that an iteration takes the edge, w a word at the header, w' the same word at
the next execution of the header, and v the word when the loop is entered. If

    T implies w' = w + s,    not T implies w' = w,    T implies w != v + n * s

in every iteration, w is v plus s for each iteration so far that took the edge. So no entry of the
loop takes it more than n times: a counter that saturates. If A is a part of T about w alone, and

    T implies not A(w'),    not A(w) implies not A(w')

an entry takes the edge once at most: a bit that is cleared when it is handled, and not set again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, add, conjuncts, const, eq, negate
from wcet.refinement.pass_conditions import HeaderWord, PassConditions
from wcet.refinement.unsatisfiable_core import contradictory

__all__ = ["most_per_entry"]

MOST = 8  # executions of an edge: each more is a query
STEPS = (1, -1)


def most_per_entry(conditions: PassConditions, loop: int, edge: int) -> int | None:
    """The executions of ``edge`` that no entry of ``loop`` exceeds, as far as is proved."""
    taken = conditions.taken_in_iteration(loop, edge)
    if taken is None:
        return None
    never = partial(excluded, conditions, loop)
    found = [
        most
        for word in conditions.header_words(loop, [taken])
        if (most := once(never, taken, word) or counted(never, taken, word)) is not None
    ]
    return min(found, default=None)


def excluded(conditions: PassConditions, loop: int, terms: Sequence[Term]) -> bool:
    """Whether it is proved that ``terms`` do not hold together in an iteration."""
    return contradictory(terms, partial(conditions.ranges, loop))


def once(never: partial[bool], taken: Term, word: HeaderWord) -> int | None:
    """1 if taking the edge makes a part of its condition false for good."""
    for part in conjuncts(taken):
        if rewrite.symbols([part]) != {word.here}:
            continue
        later = rewrite.substitute(part, {word.here: word.later})
        if never([taken, later]) and never([negate(part), later]):
            return 1
    return None


def counted(never: partial[bool], taken: Term, word: HeaderWord) -> int | None:
    """The steps of a word that stops the edge."""
    if word.first is None:
        return None
    width = word.here.width
    if not never([negate(taken), negate(eq(word.later, word.here))]):
        return None
    for step in STEPS:
        if never([taken, negate(eq(word.later, add(word.here, const(step, width))))]):
            for most in range(1, MOST + 1):
                if never([taken, eq(word.here, const(word.first + most * step, width))]):
                    return most
    return None
