"""Walks of linked lists whose length a fact states.

A loop walks a list if a word of its header is followed by what it points to, at one distance:
p becomes *(p + k), or stays, or becomes 0. With at most N elements from where the walk begins,
each p has a *rank*, the elements from it to the end: at most N at first, one less for each link
that is followed, and 0 only for p = 0. The model with ranks adds a parameter n <= N and a variable
r, and the word behind an element of rank 1 is 0:

    r = n, p = (n = 0 ? 0 : p0)         p' = (r < 2 ? 0 : *(p + k)), r' = r - 1

An execution in which the fact holds is a run of it: take for n the elements that there are. Links
that the walk itself changes are part of the fact, which speaks of the words that are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopbounds.terms.bit_vectors import Term, const, either, eq, ite, sub, sym, ule, ult
from loopbounds.terms.rewrite import substitute
from loopbounds.transition.model import LoopModel, StateVariable

__all__ = ["ELEMENTS", "RANK", "ranked"]

ELEMENTS = sym("elements", 32)
RANK = sym("rank", 32)
NULL = const(0, 32)


def ranked(model: LoopModel, links: Mapping[Term, Term], most: int) -> LoopModel | None:
    """``model`` of a walk of at most ``most`` elements; None unless it walks one list.

    ``links``: the addresses of inputs that are words from memory.
    """
    walks = [walk for v in model.state if (walk := _Walk.of(v, links)) is not None]
    if len(walks) != 1:
        return None
    [walk] = walks
    null_behind_last = {
        word: ite(ult(rank, const(2, 32)), NULL, word) for word, rank in walk.bases.items()
    }

    def told(term: Term) -> Term:
        return substitute(term, null_behind_last)

    state = [StateVariable(v.symbol, v.initial, told(v.next)) for v in model.state]
    at = model.state.index(walk.variable)
    begins = ite(eq(ELEMENTS, NULL), NULL, walk.variable.initial)
    state[at] = replace(state[at], initial=begins)
    state.append(StateVariable(RANK, ELEMENTS, told(walk.following)))
    some = either(eq(walk.variable.symbol, NULL), ule(const(1, 32), RANK))
    return LoopModel(
        (*model.parameters, ELEMENTS),
        tuple(state),
        model.inputs,
        (*model.constraints, ule(ELEMENTS, const(most, 32))),
        told(model.again),
        (*model.hints, some),
        tuple(map(told, model.exits)),
    )


class _Walk:
    """A variable that follows links, and the ranks that go with it."""

    def __init__(self, variable: StateVariable, links: Mapping[Term, Term]) -> None:
        self.variable, self._links = variable, links
        self.bases: dict[Term, Term] = {}  # word from memory -> rank of the element it is in
        self._distances: set[int] = set()
        self.following = NULL

    @staticmethod
    def of(variable: StateVariable, links: Mapping[Term, Term]) -> _Walk | None:
        """The walk of a variable; None if it is none."""
        if variable.symbol.width != 32:
            return None
        walk = _Walk(variable, links)
        following = walk._rank(variable.next)
        if following is None or len(walk._distances) != 1:
            return None
        walk.following = following
        return walk

    def _rank(self, term: Term) -> Term | None:
        """The rank of a word that the variable may become, over the rank that it has."""
        if term is self.variable.symbol:
            return RANK
        if term is NULL:
            return NULL
        if term.op == "ite":
            condition, *ways = term.args
            ranks = [rank for way in ways if (rank := self._rank(way)) is not None]
            return ite(condition, *ranks) if len(ranks) == len(ways) else None
        address = self._links.get(term)
        return None if address is None else self._behind(term, address)

    def _behind(self, word: Term, address: Term) -> Term | None:
        """The rank of ``word``, which is loaded from ``address``."""
        for element in (self.variable.symbol, *self._links):
            distance = sub(address, element).constant
            if distance is not None and element is not word:
                rank = self._rank(element)
                if rank is None:
                    return None
                self.bases[word] = rank
                self._distances.add(distance)
                return ite(eq(rank, NULL), NULL, sub(rank, const(1, 32)))
        return None
