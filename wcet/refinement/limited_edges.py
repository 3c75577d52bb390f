"""The most executions of an edge for each entry of a loop, by a word that only the edge changes.

Let T be the condition that an iteration takes the edge, w a word at the header, w' the same word at
the next execution of the header, and v the word when the loop is entered. If

    T implies w' = w + s,    not T implies w' = w,    T implies w != v + n * s

in every iteration, where the first two need to hold only if it returns to the header, w is v plus s
for each iteration so far that took the edge. So no entry of the loop takes it more than n times: a
counter that saturates. If A is a part of T about w alone, and

    T implies not A(w'),    not A(w) implies not A(w')

an entry takes the edge once at most: a bit that is cleared when it is handled, and not set again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    ranges = partial(conditions.ranges, loop)
    proof = LimitProof(
        taken, conditions.returning(loop), lambda terms: contradictory(terms, ranges)
    )
    found = [
        most
        for word in conditions.header_words(loop, [taken])
        if (most := proof.once(word) or proof.counted(word)) is not None
    ]
    return min(found, default=None)


@dataclass(frozen=True, slots=True)
class LimitProof:
    """``taken``: T; ``returns``: the iteration returns to the header; ``never``: are exclusive."""

    taken: Term
    returns: Term
    never: Callable[[Sequence[Term]], bool]

    def once(self, word: HeaderWord) -> int | None:
        """1 if taking the edge makes a part of its condition false for good."""
        for part in conjuncts(self.taken):
            if rewrite.symbols([part]) != {word.here}:
                continue
            later = rewrite.substitute(part, {word.here: word.later})
            if self._never_later(self.taken, later) and self._never_later(negate(part), later):
                return 1
        return None

    def counted(self, word: HeaderWord) -> int | None:
        """The steps of a word that stops the edge."""
        stays = eq(word.later, word.here)
        if word.first is None or not self._never_later(negate(self.taken), negate(stays)):
            return None
        width = word.here.width
        for step in STEPS:
            moves = eq(word.later, add(word.here, const(step, width)))
            if self._never_later(self.taken, negate(moves)):
                ends = (const(word.first + n * step, width) for n in range(1, MOST + 1))
                return next((n for n, end in enumerate(ends, 1) if self._stops(word, end)), None)
        return None

    def _stops(self, word: HeaderWord, end: Term) -> bool:
        return self.never([self.taken, eq(word.here, end)])

    def _never_later(self, *terms: Term) -> bool:
        return self.never([*terms, self.returns])
